/* SPDX-License-Identifier: MIT-0 */
/* A GPU's step's library calls: cuBLASLt's products, cuDNN's convolutions. See stint_rt_gpu.h. */
#include <stdio.h>
#include <stdlib.h>

#include "stint_lib.h"
#include "stint_rt_gpu.h"

struct stint_lib {
	stint_gpu *g;
	struct stint_gpu_matmul *product; /* or */
	struct stint_gpu_conv *conv;
	const struct stint_lib_call *call;
};

static int product_run(
	struct stint_lib *l, const void *const *in, void *const *out, stint_gpu_ptr ws)
{
	const enum stint_product_extra what = l->call->product.extra;
	const int reads = what == STINT_PRODUCT_BIAS || what == STINT_PRODUCT_ADD;
	const stint_gpu_ptr extra = reads                         ? gpu_address(in[2])
				    : what != STINT_PRODUCT_PLAIN ? gpu_address(out[1])
								  : 0;
	return stint_gpu_matmul_run(l->g, STINT_GPU_MAIN, l->product, gpu_address(in[0]),
		gpu_address(in[1]), gpu_address(out[0]), extra, ws);
}

int stint_lib_run(struct stint_lib *l, const void *const *in, void *const *out, void *workspace)
{
	const stint_gpu_ptr a = gpu_address(in[0]), b = gpu_address(in[1]), y = gpu_address(out[0]);
	const stint_gpu_ptr ws = gpu_address(workspace);
	switch (l->call->kind) {
	case STINT_CALL_PRODUCT:
		return product_run(l, in, out, ws);
	case STINT_CALL_CONV_FORWARD:
		return stint_gpu_conv_run(l->g, STINT_GPU_MAIN, l->conv, a, b, y, ws);
	case STINT_CALL_CONV_DATA:
		return stint_gpu_conv_run(l->g, STINT_GPU_MAIN, l->conv, y, b, a, ws);
	case STINT_CALL_CONV_WEIGHT:
		return stint_gpu_conv_run(l->g, STINT_GPU_MAIN, l->conv, a, y, b, ws);
	}
	return STINT_BAD_DATA;
}

/* Within the workspace that the plan has for it. */
static int call_make(stint_step *s, const struct stint_lib_planned *planned, struct stint_lib *l)
{
	struct stint_gpu_product p;
	struct stint_gpu_convolution c;
	l->call = &planned->call;
	if (!stint_gpu_product_of(l->call, stint_gpu_facts_of(l->g)->arch, &p)) {
		p.cap = planned->workspace;
		p.tf32 = s->model->gpu->tf32;
		return stint_rt_gpu_told(s, l->g, stint_gpu_matmul_new(l->g, &p, &l->product));
	}
	if (stint_gpu_convolution_of(l->call, &c)) {
		snprintf(s->message, sizeof s->message, "no library does %s on a GPU",
			stint_lib_call_name(l->call));
		return STINT_BAD_MACHINE;
	}
	c.cap = planned->workspace;
	c.tf32 = s->model->gpu->tf32;
	c.strict = s->model->gpu->strict;
	return stint_rt_gpu_told(s, l->g, stint_gpu_conv_new(l->g, &c, &l->conv));
}

static int calls_make(stint_step *s, stint_gpu *g)
{
	s->lib = calloc((size_t)s->model->nlib + 1, sizeof *s->lib);
	if (!s->lib)
		return stint_rt_no_memory(s);
	for (int i = 0; i < s->model->nlib; i++) {
		s->lib[i] = calloc(1, sizeof **s->lib);
		if (!s->lib[i])
			return stint_rt_no_memory(s);
		s->lib[i]->g = g;
		const int rc = call_make(s, &s->model->lib[i], s->lib[i]);
		if (rc)
			return rc;
	}
	return STINT_OK;
}

/* Libraries load their kernels, and take memory, when they are first used: now rather than while
 * the step is being recorded. What this computes is of no use: every operand is at one place, and
 * the arena is cleared afterwards. But the workspace is a place of its own, as in a step: counters
 * may stand there that a kernel waits for. A step has both at once, so that there is room. */
static int calls_use(stint_step *s, stint_gpu *g)
{
	enum { OPERANDS = 4, ALIGNMENT = 256 };
	void *at[OPERANDS];
	const void *in[OPERANDS];
	int rc = STINT_OK;
	for (int i = 0; i < s->model->nlib && !rc; i++) {
		const size_t workspace = s->model->lib[i].workspace;
		for (int k = 0; k < OPERANDS; k++)
			in[k] = at[k] = s->arena +
					(workspace + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
		rc = stint_lib_run(s->lib[i], in, at, s->arena);
	}
	if (!rc)
		rc = stint_gpu_sync(g, STINT_GPU_MAIN);
	if (!rc)
		rc = stint_gpu_memory_note(g, "libraries' kernels");
	return stint_rt_gpu_told(s, g, rc);
}

/* Plans the model's library calls and makes each once: the arena holds anything afterwards. */
static int make(stint_step *s)
{
	stint_gpu *g = stint_rt_gpu_of(s);
	const int rc = calls_make(s, g);
	return rc ? rc : calls_use(s, g);
}

static void release(stint_step *s)
{
	for (int i = 0; s->lib && i < s->model->nlib && s->lib[i]; i++) {
		if (s->lib[i]->product)
			stint_gpu_matmul_free(s->lib[i]->product);
		if (s->lib[i]->conv)
			stint_gpu_conv_free(s->lib[i]->conv);
		free(s->lib[i]);
	}
	free(s->lib);
	s->lib = NULL;
}

const struct stint_library stint_rt_library = {.make = make, .free = release};

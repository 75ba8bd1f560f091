#include "compile/gpu_ask.h"

#include "graph/cost.h"
#include "runtime/stint_gpu_paper.h"
#include "runtime/stint_lib.h"

static bool same(const struct stint_gpu_convolution *a, const struct stint_gpu_convolution *b)
{
	return a->kind == b->kind && stint_convolution_same(&a->shape, &b->shape) &&
	       a->type[0] == b->type[0] && a->type[1] == b->type[1] && a->type[2] == b->type[2] &&
	       a->cap == b->cap;
}

/* One that every cuDNN which is whole can do. */
static bool does_ordinary(stint_gpu *g)
{
	const struct stint_gpu_convolution c = {.kind = STINT_CALL_CONV_FORWARD,
		.shape = {.axes = 2,
			.n = 2,
			.c = 8,
			.k = 8,
			.groups = 1,
			.size = {8, 8},
			.kernel = {3, 3},
			.stride = {1, 1},
			.dilation = {1, 1},
			.before = {1, 1},
			.out = {8, 8}},
		.cap = (size_t)32 << 20};
	struct stint_gpu_conv *conv;
	if (stint_gpu_conv_new(g, &c, &conv))
		return false;
	stint_gpu_conv_free(conv);
	return true;
}

/* Whether cuDNN could be asked. */
static bool plan(struct gpu_asked *a, stint_gpu *g, struct gpu_answer *out)
{
	struct stint_gpu_conv *conv;
	if (stint_gpu_paper(g, a->arch))
		return false;
	a->version = stint_gpu_library_version(g, STINT_GPU_CUDNN);
	out->refused = stint_gpu_conv_new(g, &out->c, &conv) != STINT_OK;
	if (out->refused && !a->sound)
		a->sound = does_ordinary(g);
	if (out->refused)
		return a->sound;
	out->engine = stint_gpu_conv_engine(conv);
	out->workspace = (int64_t)stint_gpu_conv_workspace(conv);
	stint_gpu_conv_free(conv);
	return true;
}

static struct gpu_answer *find(const struct gpu_asked *a, const struct stint_gpu_convolution *c)
{
	struct gpu_answer *x = a->answer;
	while (x && !same(&x->c, c))
		x = x->next;
	return x;
}

const struct gpu_answer *gpu_ask(struct gpu_asked *a, const struct stint_gpu_convolution *c)
{
	struct gpu_answer *x = a->none ? NULL : find(a, c);
	stint_gpu *g;
	if (x || a->none)
		return x;
	x = ARENA_NEW(a->arena, struct gpu_answer);
	if (!x || stint_gpu_new(&g, NULL))
		return NULL;
	x->c = *c;
	x->c.tf32 = a->tf32;
	x->c.strict = a->strict;
	a->none = !plan(a, g, x);
	stint_gpu_free(g);
	if (a->none)
		return NULL;
	x->next = a->answer;
	return a->answer = x;
}

/* What cuDNN said of a node; NULL: it is no convolution, or nothing. */
static struct gpu_answer *answer_of(const struct gpu_asked *a, const struct node *n)
{
	struct lib_call call = {0};
	struct stint_gpu_convolution c;
	return n->op->library && n->op->library(n, 0, &call) &&
			       !stint_gpu_convolution_of(&call.call, &c)
		       ? find(a, &c)
		       : NULL;
}

void gpu_asked_tell(const struct gpu_asked *a, const struct graph *g)
{
	for (int i = 0; g && i < g->nnode; i++) {
		const struct node *n = g->node[i];
		struct gpu_answer *x = answer_of(a, n);
		const struct where w = {.node = n->name};
		if (!x || !x->refused || x->told)
			continue;
		x->told = true;
		diag_warn(g->diag, &w, "plain loops compute it, which are slow",
			"cuDNN %d.%d has no deterministic engine for %s on sm_%d",
			a->version / 10000, a->version / 100 % 100, n->op->name, a->arch);
	}
}

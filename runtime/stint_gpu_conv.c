/* SPDX-License-Identifier: MIT-0 */
/* Convolutions by cuDNN's backend interface: an operation graph of one convolution, the heuristic's
 * engine configurations in its order, and the first of them that may be used as a plan. */
#include <stdio.h>
#include <stdlib.h>

#include "stint_gpu_api.h"

enum { MAX_CONFIGS = 64, MAX_NOTES = 32, MAX_RANK = 5, ALIGNED = 16 };

struct stint_gpu_conv {
	stint_gpu *g;
	struct stint_gpu_convolution c;
	void *tensor[3], *conv, *op, *graph, *config, *plan;
	int64_t workspace, engine;
};

const char *stint_gpu_cudnn_more(const stint_gpu *g, char buf[256])
{
	char last[240] = "";
	if (g->dnn.cudnnGetLastErrorString)
		g->dnn.cudnnGetLastErrorString(last, sizeof last);
	last[sizeof last - 1] = 0;
	snprintf(buf, 256, "%s%s%s", last[0] ? " (" : "", last, last[0] ? ")" : "");
	return buf;
}

static int dnn_check(stint_gpu *g, int status, const char *what)
{
	if (!status)
		return STINT_OK;
	char more[256];
	return stint_gpu_fail(g, STINT_BAD_MACHINE, "cuDNN: %s: %s%s", what,
		g->dnn.cudnnGetErrorString(status), stint_gpu_cudnn_more(g, more));
}

/* --- Numbers --- */

static int sensible(const struct stint_convolution *c)
{
	if (c->axes < 2 || c->axes > 3 || c->n < 1 || c->c < 1 || c->k < 1 || c->groups < 1 ||
		c->c % c->groups || c->k % c->groups)
		return 0;
	for (int i = 0; i < c->axes; i++)
		if (c->size[i] < 1 || c->kernel[i] < 1 || c->out[i] < 1 || c->stride[i] < 1 ||
			c->dilation[i] < 1 || c->before[i] < 0)
			return 0;
	return 1;
}

/* Engines for channels last work in place or on parts of sums, which are as large as the tensors or
 * smaller; the small ones are paid for by every plan. */
static size_t cap_of(const struct stint_convolution *c)
{
	enum { MIB = 1 << 20, LEAST = 4, MOST = 32 };
	double x = (double)c->n * (double)c->c, w = (double)c->k * (double)(c->c / c->groups);
	double y = (double)c->n * (double)c->k;
	for (int i = 0; i < c->axes; i++) {
		x *= (double)c->size[i];
		w *= (double)c->kernel[i];
		y *= (double)c->out[i];
	}
	const double mib = (x + w + y) * 4 / MIB;
	return (size_t)(mib < MOST - LEAST ? LEAST + (int)mib : MOST) * MIB;
}

/* Which of x, w and y the call's x0, x1 and y0 are. */
static const int *roles_of(enum stint_call_kind kind)
{
	static const int forward[] = {0, 1, 2}, data[] = {2, 1, 0}, weight[] = {0, 2, 1};
	return kind == STINT_CALL_CONV_FORWARD ? forward
	       : kind == STINT_CALL_CONV_DATA  ? data
					       : weight;
}

int stint_gpu_convolution_of(const struct stint_lib_call *call, struct stint_gpu_convolution *out)
{
	const struct stint_convolution *c = &call->conv;
	const enum stint_gpu_type narrow = call->types & STINT_NARROW_IS_FP16 ? STINT_GPU_F16
									      : STINT_GPU_BF16;
	if (call->kind == STINT_CALL_PRODUCT || c->bias || c->x_blocked || c->y_blocked ||
		!sensible(c))
		return STINT_BAD_DATA;
	struct stint_gpu_convolution r = {.kind = call->kind, .shape = *c, .cap = cap_of(c)};
	const int *role = roles_of(call->kind);
	for (int i = 0; i < 3; i++)
		r.type[role[i]] = call->types & STINT_X0_NARROW << i ? narrow : STINT_GPU_F32;
	/* no engine mixes types (tests/gpu/engines.sh) */
	if (r.type[0] != r.type[1] || r.type[0] != r.type[2])
		return STINT_BAD_DATA;
	*out = r;
	return STINT_OK;
}

/* --- Descriptors --- */

static int make(const struct stint_gpu_conv *c, int type, void **out)
{
	const int status = c->g->dnn.cudnnBackendCreateDescriptor(type, out);
	if (status)
		*out = NULL;
	return status;
}

static void drop(const struct stint_gpu_conv *c, void *descriptor)
{
	if (descriptor)
		c->g->dnn.cudnnBackendDestroyDescriptor(descriptor);
}

static int set(const struct stint_gpu_conv *c, void *descriptor, int what, int type, int64_t count,
	const void *values)
{
	return c->g->dnn.cudnnBackendSetAttribute(descriptor, what, type, count, values);
}

/* One attribute after another, to the first that fails. */
struct attribute {
	int what, type;
	int64_t count;
	const void *values;
};

static int set_all(
	const struct stint_gpu_conv *c, void *descriptor, const struct attribute *list, size_t n)
{
	int status = 0;
	for (size_t i = 0; !status && i < n; i++)
		status = set(
			c, descriptor, list[i].what, list[i].type, list[i].count, list[i].values);
	return status ? status : c->g->dnn.cudnnBackendFinalize(descriptor);
}

/* dim: batch or outputs, channels, spatial axes; cuDNN names them in that order whatever the
 * storage, which the strides tell. -1: too large. */
static int strides_of(const struct stint_convolution *c, const int64_t *dim, int64_t *stride)
{
	const int rank = c->axes + 2;
	int order[MAX_RANK], n = 0;
	int64_t step = 1;
	order[n++] = 0;
	if (!c->last)
		order[n++] = 1;
	for (int i = 0; i < c->axes; i++)
		order[n++] = 2 + i;
	if (c->last)
		order[n++] = 1;
	for (int i = rank - 1; i >= 0; i--) {
		stride[order[i]] = step;
		if (__builtin_mul_overflow(step, dim[order[i]], &step))
			return -1;
	}
	return 0;
}

static int tensor_make(struct stint_gpu_conv *c, int which)
{
	const struct stint_convolution *v = &c->c.shape;
	const int64_t *axis[] = {v->size, v->kernel, v->out}, id = which + 1, align = ALIGNED;
	const int types[] = {GPU_DNN_FLOAT, GPU_DNN_BFLOAT16, GPU_DNN_HALF};
	int64_t dim[MAX_RANK], stride[MAX_RANK];
	const int type = types[c->c.type[which]];
	dim[0] = which == 1 ? v->k : v->n;
	dim[1] = which == 0 ? v->c : which == 1 ? v->c / v->groups : v->k;
	for (int i = 0; i < v->axes; i++)
		dim[2 + i] = axis[which][i];
	const struct attribute list[] = {
		{GPU_DNN_TENSOR_TYPE, GPU_DNN_T_DATA_TYPE, 1, &type},
		{GPU_DNN_TENSOR_DIMS, GPU_DNN_T_INT64, v->axes + 2, dim},
		{GPU_DNN_TENSOR_STRIDES, GPU_DNN_T_INT64, v->axes + 2, stride},
		{GPU_DNN_TENSOR_ID, GPU_DNN_T_INT64, 1, &id},
		{GPU_DNN_TENSOR_ALIGNMENT, GPU_DNN_T_INT64, 1, &align},
	};
	if (strides_of(v, dim, stride))
		return -1;
	const int status = make(c, GPU_DNN_TENSOR, &c->tensor[which]);
	return status ? status : set_all(c, c->tensor[which], list, sizeof list / sizeof *list);
}

/* As much as before where that gives as many outputs, which most engines want; else what the last
 * output reads beyond x. */
static int64_t padding_after(const struct stint_convolution *c, int i)
{
	const int64_t reach = (c->kernel[i] - 1) * c->dilation[i] + 1;
	const int64_t room = c->size[i] + 2 * c->before[i] - reach;
	if (room >= 0 && room / c->stride[i] + 1 == c->out[i])
		return c->before[i];
	const int64_t after = (c->out[i] - 1) * c->stride[i] + reach - c->size[i] - c->before[i];
	return after < 0 ? 0 : after;
}

static int conv_make(struct stint_gpu_conv *c)
{
	const struct stint_convolution *v = &c->c.shape;
	const int type = GPU_DNN_FLOAT, mode = GPU_DNN_CROSS_CORRELATION;
	const int64_t axes = v->axes;
	int64_t after[3];
	for (int i = 0; i < v->axes; i++)
		after[i] = padding_after(v, i);
	const struct attribute list[] = {
		{GPU_DNN_CONV_TYPE, GPU_DNN_T_DATA_TYPE, 1, &type},
		{GPU_DNN_CONV_MODE, GPU_DNN_T_CONV_MODE, 1, &mode},
		{GPU_DNN_CONV_AXES, GPU_DNN_T_INT64, 1, &axes},
		{GPU_DNN_CONV_DILATIONS, GPU_DNN_T_INT64, axes, v->dilation},
		{GPU_DNN_CONV_STRIDES, GPU_DNN_T_INT64, axes, v->stride},
		{GPU_DNN_CONV_BEFORE, GPU_DNN_T_INT64, axes, v->before},
		{GPU_DNN_CONV_AFTER, GPU_DNN_T_INT64, axes, after},
	};
	const int status = make(c, GPU_DNN_CONV, &c->conv);
	return status ? status : set_all(c, c->conv, list, sizeof list / sizeof *list);
}

static int op_make(struct stint_gpu_conv *c)
{
	static const int names[][7] = {
		[STINT_CALL_CONV_FORWARD] = {GPU_DNN_FORWARD, GPU_DNN_FORWARD_CONV,
			GPU_DNN_FORWARD_X, GPU_DNN_FORWARD_W, GPU_DNN_FORWARD_Y,
			GPU_DNN_FORWARD_ALPHA, GPU_DNN_FORWARD_BETA},
		[STINT_CALL_CONV_DATA] = {GPU_DNN_DATA, GPU_DNN_DATA_CONV, GPU_DNN_DATA_X,
			GPU_DNN_DATA_W, GPU_DNN_DATA_Y, GPU_DNN_DATA_ALPHA, GPU_DNN_DATA_BETA},
		[STINT_CALL_CONV_WEIGHT] = {GPU_DNN_WEIGHT, GPU_DNN_WEIGHT_CONV, GPU_DNN_WEIGHT_X,
			GPU_DNN_WEIGHT_W, GPU_DNN_WEIGHT_Y, GPU_DNN_WEIGHT_ALPHA,
			GPU_DNN_WEIGHT_BETA}};
	const int *name = names[c->c.kind];
	const float one = 1, zero = 0;
	const struct attribute list[] = {
		{name[1], GPU_DNN_T_DESCRIPTOR, 1, &c->conv},
		{name[2], GPU_DNN_T_DESCRIPTOR, 1, &c->tensor[0]},
		{name[3], GPU_DNN_T_DESCRIPTOR, 1, &c->tensor[1]},
		{name[4], GPU_DNN_T_DESCRIPTOR, 1, &c->tensor[2]},
		{name[5], GPU_DNN_T_FLOAT, 1, &one},
		{name[6], GPU_DNN_T_FLOAT, 1, &zero},
	};
	const int status = make(c, name[0], &c->op);
	return status ? status : set_all(c, c->op, list, sizeof list / sizeof *list);
}

/* What is computed; needs no device. */
static int describe(struct stint_gpu_conv *c)
{
	int status = 0;
	for (int i = 0; !status && i < 3; i++)
		status = tensor_make(c, i);
	if (!status)
		status = conv_make(c);
	return status ? status : op_make(c);
}

/* What plans are for: the device, by the library's handle, or one on paper. */
static struct attribute device_of(const struct stint_gpu_conv *c, int handle, int paper)
{
	return c->g->dnn_paper
		       ? (struct attribute){paper, GPU_DNN_T_DESCRIPTOR, 1, &c->g->dnn_paper}
		       : (struct attribute){handle, GPU_DNN_T_HANDLE, 1, &c->g->dnn_handle};
}

static int graph_make(struct stint_gpu_conv *c)
{
	const struct attribute list[] = {
		{GPU_DNN_GRAPH_OPS, GPU_DNN_T_DESCRIPTOR, 1, &c->op},
		{GPU_DNN_GRAPH_HANDLE, GPU_DNN_T_HANDLE, 1, &c->g->dnn_handle},
	};
	const int status = make(c, GPU_DNN_GRAPH, &c->graph);
	return status ? status : set_all(c, c->graph, list, c->g->dnn_paper ? 1 : 2);
}

/* --- The choice --- */

/* Whether an engine's numerical notes allow it here. */
static int allowed(const struct stint_gpu_convolution *c, const int *note, int64_t n)
{
	const int single = c->type[0] == STINT_GPU_F32 && c->type[1] == STINT_GPU_F32 &&
			   c->type[2] == STINT_GPU_F32;
	for (int64_t i = 0; i < n; i++) {
		const int fast = note[i] == GPU_DNN_NOTE_FFT ||
				 (note[i] >= GPU_DNN_NOTE_WINOGRAD &&
					 note[i] <= GPU_DNN_NOTE_WINOGRAD_13);
		if (note[i] == GPU_DNN_NOTE_NONDETERMINISTIC || note[i] == GPU_DNN_NOTE_REDUCED)
			return 0;
		if (note[i] == GPU_DNN_NOTE_DOWN_CONVERT && !(single && c->tf32))
			return 0;
		if (note[i] == GPU_DNN_NOTE_TENSOR_CORE && single && !c->tf32)
			return 0;
		if (fast && c->strict)
			return 0;
	}
	return 1;
}

static int config_allowed(struct stint_gpu_conv *c, void *config)
{
	const struct gpu_cudnn *dnn = &c->g->dnn;
	int note[MAX_NOTES];
	int64_t n = 0, got = 0;
	void *engine = NULL;
	int status = make(c, GPU_DNN_ENGINE, &engine);
	if (!status)
		status = dnn->cudnnBackendGetAttribute(
			config, GPU_DNN_CONFIG_ENGINE, GPU_DNN_T_DESCRIPTOR, 1, &got, &engine);
	if (!status)
		status = dnn->cudnnBackendGetAttribute(
			engine, GPU_DNN_ENGINE_NOTES, GPU_DNN_T_NOTE, MAX_NOTES, &n, note);
	if (!status)
		status = dnn->cudnnBackendGetAttribute(
			engine, GPU_DNN_ENGINE_INDEX, GPU_DNN_T_INT64, 1, &got, &c->engine);
	drop(c, engine);
	return !status && n <= MAX_NOTES && allowed(&c->c, note, n);
}

/* 1: the configuration makes a plan within the cap, which is kept. */
static int plan_make(struct stint_gpu_conv *c, void *config)
{
	const struct attribute list[] = {
		device_of(c, GPU_DNN_PLAN_HANDLE, GPU_DNN_PLAN_DEVICE),
		{GPU_DNN_PLAN_CONFIG, GPU_DNN_T_DESCRIPTOR, 1, &config},
	};
	void *plan = NULL;
	int64_t bytes = 0, got = 0;
	int status = make(c, GPU_DNN_PLAN, &plan);
	if (!status)
		status = set_all(c, plan, list, sizeof list / sizeof *list);
	if (!status)
		status = c->g->dnn.cudnnBackendGetAttribute(
			plan, GPU_DNN_PLAN_WORKSPACE, GPU_DNN_T_INT64, 1, &got, &bytes);
	if (status || bytes < 0 || (uint64_t)bytes > c->c.cap) {
		drop(c, plan);
		return 0;
	}
	c->plan = plan;
	c->workspace = bytes;
	return 1;
}

/* The first of a heuristic's configurations that will do. 0, also when there is none. */
static int choose_from(struct stint_gpu_conv *c, void *heuristic)
{
	void *config[MAX_CONFIGS] = {NULL};
	int64_t got = 0;
	int status = 0, n = 0;
	while (!status && n < MAX_CONFIGS)
		status = make(c, GPU_DNN_CONFIG, &config[n++]);
	if (!status)
		status = c->g->dnn.cudnnBackendGetAttribute(heuristic, GPU_DNN_HEUR_RESULTS,
			GPU_DNN_T_DESCRIPTOR, MAX_CONFIGS, &got, config);
	for (int i = 0; !status && !c->plan && i < got && i < n; i++)
		if (config_allowed(c, config[i]) && plan_make(c, config[i])) {
			c->config = config[i];
			config[i] = NULL;
		}
	for (int i = 0; i < n; i++)
		drop(c, config[i]);
	return status;
}

static int choose(struct stint_gpu_conv *c)
{
	static const int modes[] = {GPU_DNN_HEUR_A, GPU_DNN_HEUR_FALLBACK};
	int status = graph_make(c);
	for (int i = 0; !status && !c->plan && i < 2; i++) {
		void *heuristic = NULL;
		const struct attribute list[] = {
			{GPU_DNN_HEUR_GRAPH, GPU_DNN_T_DESCRIPTOR, 1, &c->graph},
			{GPU_DNN_HEUR_MODE, GPU_DNN_T_HEUR_MODE, 1, &modes[i]},
			{GPU_DNN_HEUR_DEVICE, GPU_DNN_T_DESCRIPTOR, 1, &c->g->dnn_paper},
		};
		status = make(c, GPU_DNN_HEUR, &heuristic);
		/* that a mode knows nothing of this graph is no error */
		if (!status && !set_all(c, heuristic, list, c->g->dnn_paper ? 3 : 2))
			(void)choose_from(c, heuristic);
		drop(c, heuristic);
	}
	if (status)
		return dnn_check(c->g, status, "planning a convolution");
	if (c->plan)
		return STINT_OK;
	return stint_gpu_fail(c->g, STINT_BAD_MACHINE,
		"cuDNN has no deterministic convolution of %lld x %lld channels to %lld within %zu "
		"bytes "
		"of workspace",
		(long long)c->c.shape.n, (long long)c->c.shape.c, (long long)c->c.shape.k,
		c->c.cap);
}

/* The library's handle, made once. */
static int handle_make(stint_gpu *g)
{
	if (g->dnn_handle)
		return STINT_OK;
	int rc = dnn_check(g, g->dnn.cudnnCreate(&g->dnn_handle), "starting");
	if (rc) {
		g->dnn_handle = NULL;
		return rc;
	}
	return stint_gpu_measure(g, "cuDNN", 0);
}

int stint_gpu_need_cudnn(stint_gpu *g)
{
	/* cuDNN asks for these by name alone and then finds the ones that are loaded */
	if (!g->library[STINT_GPU_CUDNN].handle) {
		(void)stint_gpu_need(g, STINT_GPU_CUBLASLT);
		(void)stint_gpu_need(g, STINT_GPU_NVRTC);
	}
	return stint_gpu_need(g, STINT_GPU_CUDNN);
}

int stint_gpu_conv_new(
	stint_gpu *g, const struct stint_gpu_convolution *c, struct stint_gpu_conv **out)
{
	const int device = !g->dnn_paper;
	if (c->kind == STINT_CALL_PRODUCT || !sensible(&c->shape))
		return stint_gpu_fail(g, STINT_BAD_DATA, "not a convolution");
	int rc = stint_gpu_need_cudnn(g);
	if (!rc && device)
		rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	struct stint_gpu_conv *m = calloc(1, sizeof *m);
	if (m) {
		m->g = g;
		m->c = *c;
		rc = dnn_check(g, describe(m), "describing a convolution");
	} else {
		rc = stint_gpu_fail(g, STINT_NO_MEMORY, "out of memory");
	}
	if (!rc && device)
		rc = handle_make(g);
	if (!rc)
		rc = choose(m);
	stint_gpu_time_note(g, "choosing convolutions");
	if (!rc && device)
		rc = stint_gpu_measure(g, "cuDNN", 0);
	if (device)
		stint_gpu_leave(g, rc);
	if (rc)
		stint_gpu_conv_free(m);
	else
		*out = m;
	return rc;
}

void stint_gpu_conv_free(struct stint_gpu_conv *c)
{
	if (!c)
		return;
	/* a plan unloads kernels of its own */
	const int entered = !c->g->dnn_paper && !stint_gpu_enter(c->g);
	void *const all[] = {c->plan, c->config, c->graph, c->op, c->conv, c->tensor[0],
		c->tensor[1], c->tensor[2]};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		drop(c, all[i]);
	if (entered)
		stint_gpu_leave(c->g, 0);
	free(c);
}

size_t stint_gpu_conv_workspace(const struct stint_gpu_conv *c)
{
	return (size_t)c->workspace;
}

int64_t stint_gpu_conv_engine(const struct stint_gpu_conv *c)
{
	return c->engine;
}

int stint_gpu_conv_run(stint_gpu *g, int stream, struct stint_gpu_conv *c, stint_gpu_ptr x,
	stint_gpu_ptr w, stint_gpu_ptr y, stint_gpu_ptr workspace)
{
	static const int64_t ids[3] = {1, 2, 3};
	const stint_gpu_ptr at[3] = {x, w, y};
	const struct attribute list[] = {
		{GPU_DNN_PACK_IDS, GPU_DNN_T_INT64, 3, ids},
		{GPU_DNN_PACK_POINTERS, GPU_DNN_T_POINTER, 3, at},
		{GPU_DNN_PACK_WORKSPACE, GPU_DNN_T_POINTER, 1, &workspace},
	};
	void *pack = NULL;
	_Static_assert(sizeof(stint_gpu_ptr) == sizeof(void *), "addresses are passed as pointers");
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	int status = g->dnn.cudnnSetStream(g->dnn_handle, g->stream[stream]);
	if (!status)
		status = make(c, GPU_DNN_PACK, &pack);
	if (!status)
		status = set_all(c, pack, list, sizeof list / sizeof *list);
	if (!status)
		status = g->dnn.cudnnBackendExecute(g->dnn_handle, c->plan, pack);
	drop(c, pack);
	return stint_gpu_leave(g, dnn_check(g, status, "running a convolution"));
}

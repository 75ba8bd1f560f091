/* A stand-in for libcudnn.so.9: convolutions by the backend interface, in plain loops over the
 * tensors' strides. Its heuristic offers engines that must not be taken before one that may. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fake_later.h"
#include "runtime/stint_gpu_api.h"
#include "tests/gpu/elements.h"

#define GPU_PROTOTYPE(type, name, parameters) type name parameters;
GPU_CUDNN(GPU_PROTOTYPE)
GPU_CUDNN_NEWER(GPU_PROTOTYPE)

enum { BAD_PARAM = 2000, NOT_SUPPORTED = 3000, MAX_ATTRIBUTES = 12, WORKSPACE = 1024 };

/* Engines, in the heuristic's order. */
enum { RANDOM, ROUNDING, TENSOR, BIG, UNSUPPORTED, WINOGRAD, GOOD, ENGINES };

struct descriptor {
	int type, final, engine;
	int n;
	struct attribute {
		int what, type;
		int64_t count;
		unsigned char value[64];
	} at[MAX_ATTRIBUTES];
};

size_t cudnnGetVersion(void)
{
	return 91900;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
	return status == NOT_SUPPORTED ? "not supported" : "made up";
}

size_t cudnnGetCudartVersion(void)
{
	return 1000 * FAKE_CUDA; /* CMakeLists.txt: there is one for each CUDA */
}

/* "cudnn" in STINT_FAKE_FAIL: nothing can be begun. */
static int told_to_fail(void)
{
	const char *who = getenv("STINT_FAKE_FAIL");
	return who && !strcmp(who, "cudnn");
}

void cudnnGetLastErrorString(char *message, size_t room)
{
	static const char words[] = "the stand-in was told to fail";
	if (room >= sizeof words)
		memcpy(message, told_to_fail() ? words : "", told_to_fail() ? sizeof words : 1);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *out)
{
	if (told_to_fail())
		return BAD_PARAM;
	return !(*out = calloc(1, sizeof(void *))); /* its stream */
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
	free(handle);
	return 0;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	if (!handle || !stream)
		return BAD_PARAM;
	*(void **)handle = stream;
	return 0;
}

cudnnStatus_t cudnnBackendCreateDescriptor(
	cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
	struct descriptor *d = *out = calloc(1, sizeof *d);
	d->type = type;
	return 0;
}

static int has(const struct descriptor *d, int what)
{
	for (int i = 0; i < d->n; i++)
		if (d->at[i].what == what)
			return 1;
	return 0;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
	const struct descriptor *d = descriptor;
	if (d->type == GPU_DNN_PLAN && has(d, GPU_DNN_PLAN_HANDLE) && !fake_in_context())
		abort(); /* a bug of the caller: the library would make some context current */
	free(descriptor);
	return 0;
}

static const struct attribute *find(const struct descriptor *d, int what)
{
	for (int i = 0; i < d->n; i++)
		if (d->at[i].what == what)
			return &d->at[i];
	abort(); /* asked for before it was set: a bug of the caller, or of this file */
}

static const struct descriptor *part(const struct descriptor *d, int what)
{
	struct descriptor *p;
	memcpy(&p, find(d, what)->value, sizeof p);
	if (!p->final)
		abort();
	return p;
}

/* No engine of the real one takes tensors of different types in one convolution; with
 * STINT_FAKE_NO_ENGINE none computes a weight's gradient. */
static int has_engines(const struct descriptor *op)
{
	int seen = -1, mixed = op->type == GPU_DNN_WEIGHT && getenv("STINT_FAKE_NO_ENGINE");
	for (int i = 0; i < op->n; i++) {
		const struct descriptor *t;
		int type;
		if (op->at[i].type != GPU_DNN_T_DESCRIPTOR)
			continue;
		memcpy(&t, op->at[i].value, sizeof t);
		if (t->type != GPU_DNN_TENSOR)
			continue;
		memcpy(&type, find(t, GPU_DNN_TENSOR_TYPE)->value, sizeof type);
		mixed = mixed || (seen >= 0 && type != seen);
		seen = type;
	}
	return !mixed;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
	struct descriptor *d = descriptor;
	if (d->final)
		return BAD_PARAM;
	d->final = 1;
	if (d->type == GPU_DNN_HEUR &&
		!has_engines(part(part(d, GPU_DNN_HEUR_GRAPH), GPU_DNN_GRAPH_OPS)))
		return NOT_SUPPORTED;
	if (d->type == GPU_DNN_PLAN && part(d, GPU_DNN_PLAN_CONFIG)->engine == UNSUPPORTED)
		return NOT_SUPPORTED;
	return 0;
}

static size_t size_of(int type)
{
	return type == GPU_DNN_T_DATA_TYPE || type == GPU_DNN_T_FLOAT ||
			       type == GPU_DNN_T_CONV_MODE || type == GPU_DNN_T_HEUR_MODE
		       ? 4
	       : type == GPU_DNN_T_CHAR ? 1
					: 8;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
	cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t count,
	const void *values)
{
	struct descriptor *d = descriptor;
	/* of a device on paper only that it is one */
	const size_t bytes = what == GPU_DNN_DEVICE_JSON ? 0 : (size_t)count * size_of(type);
	if (d->final || d->n == MAX_ATTRIBUTES || bytes > sizeof d->at[0].value)
		return BAD_PARAM;
	struct attribute *a = &d->at[d->n++];
	*a = (struct attribute){.what = what, .type = type, .count = count};
	memcpy(a->value, values, bytes);
	return 0;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
	cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t asked,
	int64_t *count, void *values)
{
	static const int notes[ENGINES] = {GPU_DNN_NOTE_NONDETERMINISTIC, GPU_DNN_NOTE_REDUCED,
		GPU_DNN_NOTE_TENSOR_CORE, -1, -1, GPU_DNN_NOTE_WINOGRAD, -1};
	const struct descriptor *d = descriptor;
	struct descriptor *out[ENGINES];
	const int64_t plan_bytes = d->type != GPU_DNN_PLAN ? 0
				   : part(d, GPU_DNN_PLAN_CONFIG)->engine == BIG
					   ? (int64_t)1 << 40
					   : WORKSPACE + part(d, GPU_DNN_PLAN_CONFIG)->engine;
	if (what == GPU_DNN_HEUR_RESULTS && type == GPU_DNN_T_DESCRIPTOR && asked >= ENGINES) {
		const struct descriptor *op = part(part(d, GPU_DNN_HEUR_GRAPH), GPU_DNN_GRAPH_OPS);
		memcpy(out, values, sizeof out);
		for (int i = 0; i < ENGINES; i++) {
			out[i]->engine = i;
			out[i]->final = 1;
			out[i]->at[out[i]->n++] = (struct attribute){.what = GPU_DNN_GRAPH_OPS};
			memcpy(out[i]->at[0].value, &op, sizeof op);
		}
		*count = ENGINES;
	} else if (what == GPU_DNN_CONFIG_ENGINE && type == GPU_DNN_T_DESCRIPTOR && asked == 1) {
		memcpy(out, values, sizeof *out);
		out[0]->engine = d->engine;
		out[0]->final = 1;
		*count = 1;
	} else if (what == GPU_DNN_ENGINE_INDEX && type == GPU_DNN_T_INT64) {
		const int64_t index = d->engine;
		*count = 1;
		memcpy(values, &index, sizeof index);
	} else if (what == GPU_DNN_ENGINE_NOTES && type == GPU_DNN_T_NOTE) {
		*count = notes[d->engine] >= 0;
		if (*count)
			memcpy(values, &notes[d->engine], sizeof(int));
	} else if (what == GPU_DNN_PLAN_WORKSPACE && type == GPU_DNN_T_INT64) {
		*count = 1;
		memcpy(values, &plan_bytes, sizeof plan_bytes);
	} else
		return BAD_PARAM;
	return 0;
}

/* --- Running --- */

struct tensor {
	int rank, type;
	int64_t dim[5], step[5];
	unsigned char *data;
};

struct conv {
	int kind, axes;
	int64_t stride[3], dilation[3], before[3], after[3];
	struct tensor t[3]; /* x, w, y */
	unsigned char *workspace;
	int rough; /* Winograd's way rounds more */
};

static void numbers(const struct descriptor *d, int what, int64_t *out)
{
	const struct attribute *a = find(d, what);
	memcpy(out, a->value, (size_t)a->count * sizeof *out);
}

static struct tensor tensor_read(const struct descriptor *d, const struct descriptor *pack)
{
	struct tensor t = {0};
	int64_t id, ids[3];
	unsigned char *at[3];
	numbers(d, GPU_DNN_TENSOR_DIMS, t.dim);
	numbers(d, GPU_DNN_TENSOR_STRIDES, t.step);
	numbers(d, GPU_DNN_TENSOR_ID, &id);
	memcpy(&t.type, find(d, GPU_DNN_TENSOR_TYPE)->value, sizeof t.type);
	t.rank = (int)find(d, GPU_DNN_TENSOR_DIMS)->count;
	memcpy(ids, find(pack, GPU_DNN_PACK_IDS)->value, sizeof ids);
	memcpy(at, find(pack, GPU_DNN_PACK_POINTERS)->value, sizeof at);
	for (int i = 0; i < 3; i++)
		if (ids[i] == id)
			t.data = at[i];
	return t;
}

/* Without gaps, in the order of the dimensions, or with dimension 1 behind the others. */
static int is_dense(const struct tensor *t, int last)
{
	int64_t step = 1;
	for (int k = t->rank - 1; k >= 0; k--) {
		const int axis = !last || !k ? k : k == t->rank - 1 ? 1 : k + 1;
		if (t->step[axis] != step)
			return 0;
		step *= t->dim[axis];
	}
	return 1;
}

/* What engines are there for: all three tensors in one of the two orders. */
static int alike(const struct tensor *t)
{
	for (int last = 0; last < 2; last++)
		if (is_dense(&t[0], last) && is_dense(&t[1], last) && is_dense(&t[2], last))
			return 1;
	return 0;
}

static enum element element_of(const struct tensor *t)
{
	return t->type == GPU_DNN_FLOAT  ? ELEMENT_FLOAT
	       : t->type == GPU_DNN_HALF ? ELEMENT_FP16
					 : ELEMENT_BF16;
}

static int64_t place(const struct tensor *t, const int64_t *i)
{
	int64_t at = 0;
	for (int a = 0; a < t->rank; a++)
		at += i[a] * t->step[a];
	return at;
}

static double get(const struct tensor *t, const int64_t *i)
{
	return element_get(t->data, element_of(t), place(t, i));
}

static void put(const struct tensor *t, const int64_t *i, double v)
{
	element_set(t->data, element_of(t), place(t, i), v);
}

/* Counts i up to the tensor's sizes, its first `from` numbers staying; 0 after the last. */
static int next(const struct tensor *t, int64_t *i, int from)
{
	for (int a = t->rank - 1; a >= from; a--) {
		if (++i[a] < t->dim[a])
			return 1;
		i[a] = 0;
	}
	return 0;
}

static const struct tensor *result_of(const struct conv *c)
{
	return &c->t[c->kind == GPU_DNN_FORWARD ? 2 : c->kind == GPU_DNN_DATA ? 0 : 1];
}

/* All terms x w y of the convolution: adds to the output's sums, which hold one number for each
 * element in the order of its dimensions. */
static void terms(const struct conv *c, double *sum)
{
	const struct tensor *x = &c->t[0], *w = &c->t[1], *y = &c->t[2];
	const int64_t groups = x->dim[1] / w->dim[1];
	const struct tensor *out = result_of(c);
	int64_t iy[5] = {0};
	do {
		int64_t iw[5] = {iy[1]}, ix[5];
		do {
			int inside = 1;
			ix[0] = iy[0];
			ix[1] = iy[1] / (y->dim[1] / groups) * w->dim[1] + iw[1];
			for (int a = 0; a < c->axes; a++) {
				ix[2 + a] = iy[2 + a] * c->stride[a] + iw[2 + a] * c->dilation[a] -
					    c->before[a];
				inside = inside && ix[2 + a] >= 0 && ix[2 + a] < x->dim[2 + a];
			}
			if (!inside)
				continue;
			const int64_t *io = out == y ? iy : out == x ? ix : iw;
			int64_t at = 0;
			for (int a = 0; a < out->rank; a++)
				at = at * out->dim[a] + io[a];
			sum[at] += (out == x ? 1 : get(x, ix)) * (out == w ? 1 : get(w, iw)) *
				   (out == y ? 1 : get(y, iy));
		} while (next(w, iw, 1));
	} while (next(y, iy, 0));
}

static size_t elements(const struct tensor *t)
{
	size_t n = 1;
	for (int a = 0; a < t->rank; a++)
		n *= (size_t)t->dim[a];
	return n;
}

/* A kernel may wait for what it keeps in the workspace: nothing else is written there. */
static int workspace_is_apart(const struct conv *c)
{
	const struct tensor *out = result_of(c);
	const uintptr_t data = (uintptr_t)out->data, workspace = (uintptr_t)c->workspace;
	return workspace + WORKSPACE <= data ||
	       data + elements(out) * (out->type == GPU_DNN_FLOAT ? 4 : 2) <= workspace;
}

static void run(void *data)
{
	const struct conv *c = data;
	const struct tensor *out = result_of(c);
	int64_t i[5] = {0};
	size_t at = 0;
	double *sum = calloc(elements(out), sizeof *sum);
	memset(c->workspace, 0xff, WORKSPACE); /* it may hold anything afterwards */
	terms(c, sum);
	do {
		put(out, i, sum[at++] * (c->rough ? 1 + 1e-6 : 1));
	} while (next(out, i, 0));
	free(sum);
}

cudnnStatus_t cudnnBackendExecute(
	cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
	static const int names[][4] = {
		{GPU_DNN_FORWARD_CONV, GPU_DNN_FORWARD_X, GPU_DNN_FORWARD_W, GPU_DNN_FORWARD_Y},
		{GPU_DNN_WEIGHT_CONV, GPU_DNN_WEIGHT_X, GPU_DNN_WEIGHT_W, GPU_DNN_WEIGHT_Y},
		{GPU_DNN_DATA_CONV, GPU_DNN_DATA_X, GPU_DNN_DATA_W, GPU_DNN_DATA_Y}};
	const struct descriptor *config = part(plan, GPU_DNN_PLAN_CONFIG), *op;
	struct conv c = {0};
	if (!handle ||
		(config->engine != GOOD && config->engine != TENSOR && config->engine != WINOGRAD))
		return BAD_PARAM;
	memcpy(&c.workspace, find(pack, GPU_DNN_PACK_WORKSPACE)->value, sizeof c.workspace);
	op = part(config, GPU_DNN_GRAPH_OPS);
	c.kind = op->type;
	c.rough = config->engine == WINOGRAD;
	const int *name = names[op->type - GPU_DNN_FORWARD];
	const struct descriptor *conv = part(op, name[0]);
	c.axes = (int)find(conv, GPU_DNN_CONV_STRIDES)->count;
	numbers(conv, GPU_DNN_CONV_STRIDES, c.stride);
	numbers(conv, GPU_DNN_CONV_DILATIONS, c.dilation);
	numbers(conv, GPU_DNN_CONV_BEFORE, c.before);
	numbers(conv, GPU_DNN_CONV_AFTER, c.after);
	for (int i = 0; i < 3; i++)
		c.t[i] = tensor_read(part(op, name[1 + i]), pack);
	if (!alike(c.t) || !workspace_is_apart(&c))
		return BAD_PARAM;
	for (int a = 0; a < c.axes; a++) /* as the library checks sizes */
		if ((c.t[0].dim[2 + a] + c.before[a] + c.after[a] -
			    (c.t[1].dim[2 + a] - 1) * c.dilation[a] - 1) /
					c.stride[a] +
				1 !=
			c.t[2].dim[2 + a])
			return BAD_PARAM;
	return fake_later(*(void **)handle, run, &c, sizeof c) ? BAD_PARAM : 0;
}

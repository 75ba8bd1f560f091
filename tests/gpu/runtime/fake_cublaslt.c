/* A stand-in for libcublasLt.so.13: products as its documentation has them, matrices counted by
 * columns, in plain loops. Its heuristic offers algorithms that must not be taken before one that
 * may. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fake_later.h"
#include "runtime/stint_gpu_api.h"
#include "tests/gpu/elements.h"

#define GPU_PROTOTYPE(type, name, parameters) type name parameters;
GPU_CUBLASLT(GPU_PROTOTYPE)

enum { BAD_VALUE = 7, NOT_SUPPORTED = 15 };

/* What algo.data[0] says: */
enum { UNAVAILABLE, LARGE, IN_PLACE, ROUNDED, GOOD };

struct desc {
	int compute, ta, tb, epilogue, bias_type;
	void *bias;
};

struct layout {
	int type;
	int64_t rows, cols, ld, batch, step;
};

struct preference {
	uint64_t workspace;
	uint32_t reduction, align[4];
};

size_t cublasLtGetVersion(void)
{
	return 130100;
}

const char *cublasLtGetStatusString(int status)
{
	return status == NOT_SUPPORTED ? "not supported" : "made up";
}

int cublasLtCreate(void **out)
{
	const char *who = getenv("STINT_FAKE_FAIL");
	if (who && !strcmp(who, "cublaslt"))
		return BAD_VALUE;
	return !(*out = calloc(1, 1));
}

int cublasLtDestroy(void *handle)
{
	free(handle);
	return 0;
}

int cublasLtMatmulDescCreate(void **out, int compute, int scale)
{
	struct desc *d = *out = calloc(1, sizeof *d);
	d->compute = compute;
	d->epilogue = 1;
	d->bias_type = -1;
	return scale == GPU_LT_R_32F &&
			       (compute == GPU_LT_COMPUTE_32F || compute == GPU_LT_COMPUTE_TF32)
		       ? 0
		       : BAD_VALUE;
}

int cublasLtMatmulDescDestroy(void *desc)
{
	free(desc);
	return 0;
}

/* As the library: a value of another size is an error. */
static int set(void *to, size_t size, const void *value, size_t bytes)
{
	if (size != bytes)
		return BAD_VALUE;
	memcpy(to, value, bytes);
	return 0;
}

int cublasLtMatmulDescSetAttribute(void *desc, int what, const void *value, size_t bytes)
{
	struct desc *d = desc;
	switch (what) {
	case GPU_LT_TRANSA:
		return set(&d->ta, sizeof d->ta, value, bytes);
	case GPU_LT_TRANSB:
		return set(&d->tb, sizeof d->tb, value, bytes);
	case GPU_LT_EPILOGUE:
		return set(&d->epilogue, sizeof d->epilogue, value, bytes);
	case GPU_LT_BIAS:
		return set(&d->bias, sizeof d->bias, value, bytes);
	case GPU_LT_BIAS_TYPE:
		return set(&d->bias_type, sizeof d->bias_type, value, bytes);
	}
	return BAD_VALUE;
}

int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
	struct layout *l = *out = calloc(1, sizeof *l);
	*l = (struct layout){type, (int64_t)rows, (int64_t)cols, ld, 1, 0};
	return ld < (int64_t)rows ? BAD_VALUE : 0;
}

int cublasLtMatrixLayoutDestroy(void *layout)
{
	free(layout);
	return 0;
}

int cublasLtMatrixLayoutSetAttribute(void *layout, int what, const void *value, size_t bytes)
{
	struct layout *l = layout;
	int32_t batch = 0;
	if (what == GPU_LT_STEP)
		return set(&l->step, sizeof l->step, value, bytes);
	if (what != GPU_LT_BATCH || set(&batch, sizeof batch, value, bytes))
		return BAD_VALUE;
	l->batch = batch;
	return 0;
}

int cublasLtMatmulPreferenceCreate(void **out)
{
	return !(*out = calloc(1, sizeof(struct preference)));
}

int cublasLtMatmulPreferenceDestroy(void *preference)
{
	free(preference);
	return 0;
}

int cublasLtMatmulPreferenceSetAttribute(
	void *preference, int what, const void *value, size_t bytes)
{
	struct preference *p = preference;
	if (what == GPU_LT_PREF_WORKSPACE)
		return set(&p->workspace, sizeof p->workspace, value, bytes);
	if (what == GPU_LT_PREF_REDUCTION)
		return set(&p->reduction, sizeof p->reduction, value, bytes);
	if (what < GPU_LT_PREF_ALIGN_A || what > GPU_LT_PREF_ALIGN_D)
		return BAD_VALUE;
	return set(&p->align[what - GPU_LT_PREF_ALIGN_A], sizeof p->align[0], value, bytes);
}

static int shapes_fit(const struct desc *e, const struct layout *a, const struct layout *b,
	const struct layout *c, const struct layout *d)
{
	const int64_t m = e->ta ? a->cols : a->rows, k = e->ta ? a->rows : a->cols;
	const int64_t kb = e->tb ? b->cols : b->rows, n = e->tb ? b->rows : b->cols;
	return m == d->rows && n == d->cols && k == kb && c->rows == m && c->cols == n &&
	       a->type == b->type && a->batch == d->batch && b->batch == d->batch &&
	       (e->epilogue == 1 || (e->bias_type == d->type && (uintptr_t)e->bias % 256 == 0));
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d,
	void *preference, int asked, cublasLtMatmulHeuristicResult_t *result, int *got)
{
	const struct preference *p = preference;
	if (!handle || !shapes_fit(desc, a, b, c, d) || p->reduction != GPU_LT_REDUCTION_COMPUTE)
		return BAD_VALUE;
	for (int i = 0; i < 4; i++)
		if (p->align[i] != 256)
			return BAD_VALUE;
	for (*got = 0; *got <= GOOD && *got < asked; ++*got) {
		cublasLtMatmulHeuristicResult_t *r = &result[*got];
		memset(r, 0, sizeof *r);
		r->algo.data[0] = (uint64_t)*got;
		r->state = *got == UNAVAILABLE ? NOT_SUPPORTED : 0;
		r->workspaceSize = *got == LARGE ? (size_t)p->workspace + 1 : 512;
	}
	return 0;
}

int cublasLtMatmulAlgoCheck(void *handle, void *desc, void *a, void *b, void *c, void *d,
	const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)
{
	if (!handle || !shapes_fit(desc, a, b, c, d) || algo->data[0] != GOOD)
		return BAD_VALUE;
	result->workspaceSize = 512;
	return 0;
}

int cublasLtMatmulAlgoConfigGetAttribute(
	const cublasLtMatmulAlgo_t *algo, int what, void *value, size_t bytes, size_t *written)
{
	const uint32_t scheme = algo->data[0] == IN_PLACE ? 1 : algo->data[0] == ROUNDED ? 4 : 2;
	const uint32_t id = (uint32_t)algo->data[0];
	if ((what != GPU_LT_CONFIG_REDUCTION && what != GPU_LT_CONFIG_ID) || bytes != sizeof scheme)
		return BAD_VALUE;
	memcpy(value, what == GPU_LT_CONFIG_ID ? &id : &scheme, bytes);
	*written = bytes;
	return 0;
}

static enum element element_of(int type)
{
	return type == GPU_LT_R_32F   ? ELEMENT_FLOAT
	       : type == GPU_LT_R_16F ? ELEMENT_FP16
				      : ELEMENT_BF16;
}

static double read_at(const void *p, int type, int64_t i)
{
	return element_get(p, element_of(type), i);
}

static void write_at(void *p, int type, int64_t i, double v)
{
	element_set(p, element_of(type), i, v);
}

/* Sum over k of one row of op(A) or one column of op(B), for the bias gradients. */
static double sum_k(const void *p, const struct layout *l, int k_is_rows, int64_t at)
{
	const int64_t k = k_is_rows ? l->rows : l->cols;
	double sum = 0;
	for (int64_t i = 0; i < k; i++)
		sum += read_at(p, l->type, k_is_rows ? i + at * l->ld : at + i * l->ld);
	return sum;
}

/* An operand as the product takes it: tf32 has 10 bits behind the point. */
static double operand_at(const struct desc *e, const void *p, int type, int64_t i)
{
	float f = (float)read_at(p, type, i);
	uint32_t bits;
	if (e->compute == GPU_LT_COMPUTE_TF32 && type == GPU_LT_R_32F) {
		memcpy(&bits, &f, 4);
		bits = (bits + 0x1000) & ~(uint32_t)0x1fff;
		memcpy(&f, &bits, 4);
	}
	return (double)f;
}

static double dot(const struct desc *e, const void *a, const struct layout *la, const void *b,
	const struct layout *lb, int64_t batch, int64_t row, int64_t col)
{
	const int64_t k = e->ta ? la->rows : la->cols;
	double sum = 0;
	for (int64_t i = 0; i < k; i++) {
		const int64_t at = e->ta ? i + row * la->ld : row + i * la->ld;
		const int64_t bt = e->tb ? col + i * lb->ld : i + col * lb->ld;
		sum += operand_at(e, a, la->type, batch * la->step + at) *
		       operand_at(e, b, lb->type, batch * lb->step + bt);
	}
	return sum;
}

struct product {
	struct desc desc;
	struct layout x, y, out;
	const void *a, *b, *c;
	void *d, *workspace;
	size_t bytes;
	float scale, keep;
};

static void multiply(void *data)
{
	struct product *p = data;
	const struct desc *e = &p->desc;
	const struct layout *x = &p->x, *y = &p->y, *out = &p->out;
	memset(p->workspace, 0xff, p->bytes); /* it may hold anything afterwards */
	for (int64_t s = 0; s < out->batch; s++)
		for (int64_t col = 0; col < out->cols; col++)
			for (int64_t row = 0; row < out->rows; row++) {
				const int64_t at = s * out->step + row + col * out->ld;
				double v = (double)p->scale * dot(e, p->a, x, p->b, y, s, row, col);
				if (p->keep != 0)
					v += (double)p->keep * read_at(p->c, out->type, at);
				if (e->epilogue == GPU_LT_EPILOGUE_BIAS)
					v += read_at(e->bias, out->type, row);
				write_at(p->d, out->type, at, v);
			}
	if (e->epilogue == GPU_LT_EPILOGUE_BGRADA)
		for (int64_t row = 0; row < out->rows; row++)
			write_at(e->bias, out->type, row, sum_k(p->a, x, e->ta, row));
	if (e->epilogue == GPU_LT_EPILOGUE_BGRADB)
		for (int64_t col = 0; col < out->cols; col++)
			write_at(e->bias, out->type, col, sum_k(p->b, y, !e->tb, col));
}

/* A kernel may wait for what it keeps in the workspace: nothing else is written there. */
static int workspace_is_apart(const struct product *p)
{
	const struct layout *l = &p->out;
	const size_t element = l->type == GPU_LT_R_32F ? 4 : 2;
	const size_t n = (size_t)((l->batch - 1) * l->step + (l->cols - 1) * l->ld + l->rows);
	const uintptr_t d = (uintptr_t)p->d, workspace = (uintptr_t)p->workspace;
	return workspace + p->bytes <= d || d + n * element <= workspace;
}

int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *la,
	const void *b, void *lb, const void *beta, const void *c, void *lc, void *d, void *ld,
	const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, void *stream)
{
	if (!handle || !stream || !shapes_fit(desc, la, lb, lc, ld) || algo->data[0] != GOOD ||
		bytes < 512 || !workspace || !c)
		return BAD_VALUE;
	struct product p = {*(const struct desc *)desc, *(const struct layout *)la,
		*(const struct layout *)lb, *(const struct layout *)ld, a, b, c, d, workspace,
		bytes, 0, 0};
	memcpy(&p.scale, alpha, sizeof p.scale);
	memcpy(&p.keep, beta, sizeof p.keep);
	if (!workspace_is_apart(&p))
		return BAD_VALUE;
	return fake_later(stream, multiply, &p, sizeof p) ? BAD_VALUE : 0;
}

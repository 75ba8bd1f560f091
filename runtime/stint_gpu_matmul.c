/* SPDX-License-Identifier: MIT-0 */
/* Products by cuBLASLt.
 *
 * The library counts by columns: a row-major m by n matrix is its n by m one. So y = x0 x1 is asked
 * for as y' = x1' x0': its A is our x1, its B our x0, its m our n. That way a bias along n lies
 * along the rows of its D, the only direction it knows, and the sums of x1 and x0 over k are its
 * BGRADA and BGRADB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stint_gpu_api.h"

enum { ASKED = 32, ALIGNED = 256 };

struct stint_gpu_matmul {
	stint_gpu *g;
	struct stint_gpu_product p;
	void *desc, *a, *b, *d, *preference;
	cublasLtMatmulAlgo_t algo;
	size_t workspace;
};

static int lt_check(stint_gpu *g, int status, const char *what)
{
	if (!status)
		return STINT_OK;
	return stint_gpu_fail(g, status == GPU_LT_NO_MEMORY ? STINT_NO_MEMORY : STINT_BAD_MACHINE,
		"cuBLASLt: %s: %s", what, g->lt.cublasLtGetStatusString(status));
}

/* --- Numbers --- */

/* 0 when a * b fits. */
static int times(int64_t a, int64_t b, int64_t *out)
{
	return __builtin_mul_overflow(a, b, out);
}

/* Dense rows and steps where none are given. -1: numbers that make no sense. */
static int product_complete(struct stint_gpu_product *q)
{
	struct stint_product *p = &q->shape;
	const int64_t width0 = p->t0 ? p->m : p->k, width1 = p->t1 ? p->k : p->n;
	const int64_t rows0 = p->t0 ? p->k : p->m, rows1 = p->t1 ? p->n : p->k;
	int64_t all0, all1, all;
	if (p->batch < 1 || p->m < 1 || p->n < 1 || p->k < 1 || p->batch > INT32_MAX)
		return -1;
	q->ld0 = q->ld0 ? q->ld0 : width0;
	q->ld1 = q->ld1 ? q->ld1 : width1;
	q->ldy = q->ldy ? q->ldy : p->n;
	if (q->ld0 < width0 || q->ld1 < width1 || q->ldy < p->n || q->step0 < 0 || q->step1 < 0 ||
		q->stepy < 0)
		return -1;
	if (times(p->m, q->ldy, &all) || times(rows0, q->ld0, &all0) || times(rows1, q->ld1, &all1))
		return -1;
	q->stepy = q->stepy ? q->stepy : all;
	q->step0 = !p->each0 ? 0 : q->step0 ? q->step0 : all0;
	q->step1 = !p->each1 ? 0 : q->step1 ? q->step1 : all1;
	if (times(p->batch, q->stepy, &all) || times(p->batch, q->step0, &all) ||
		times(p->batch, q->step1, &all))
		return -1;
	if ((p->extra == STINT_PRODUCT_SUM0 || p->extra == STINT_PRODUCT_SUM1) && p->batch > 1)
		return -1;
	/* rows of all products after each other, times one matrix: a single product */
	if (p->batch > 1 && !p->t0 && !p->each1 && q->step0 == p->m * q->ld0 &&
		q->stepy == p->m * q->ldy) {
		p->m *= p->batch;
		p->batch = 1;
	}
	return 0;
}

size_t stint_gpu_matmul_cap(int arch, const struct stint_product *p)
{
	/* What NVIDIA's own front end, cuBLAS, sets aside: 32 MiB since Hopper, 4 MiB before
	 * (its documentation of cublasSetWorkspace), and no more than eight copies of y in fp32:
	 * a workspace holds partial sums of y. */
	const int64_t most = arch >= 90 ? 32 << 20 : 4 << 20;
	int64_t bytes;
	if (times(p->m, p->n, &bytes) || times(bytes, p->batch, &bytes) ||
		times(bytes, 8 * 4, &bytes) || bytes > most)
		return (size_t)most;
	return (size_t)(bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

int stint_gpu_product_of(const struct stint_lib_call *call, int arch, struct stint_gpu_product *out)
{
	const int types = call->types;
	const enum stint_gpu_type narrow = types & STINT_NARROW_IS_FP16 ? STINT_GPU_F16
									: STINT_GPU_BF16;
	if (call->kind != STINT_CALL_PRODUCT ||
		!(types & STINT_X0_NARROW) != !(types & STINT_X1_NARROW))
		return STINT_BAD_DATA;
	struct stint_gpu_product r = {.shape = call->product,
		.in = types & STINT_X0_NARROW ? narrow : STINT_GPU_F32,
		.out = types & STINT_Y0_NARROW ? narrow : STINT_GPU_F32,
		.cap = stint_gpu_matmul_cap(arch, &call->product)};
	if (product_complete(&r))
		return STINT_BAD_DATA;
	*out = r;
	return STINT_OK;
}

/* --- Descriptors --- */

static int type_of(enum stint_gpu_type type)
{
	return type == STINT_GPU_BF16  ? GPU_LT_R_16BF
	       : type == STINT_GPU_F16 ? GPU_LT_R_16F
				       : GPU_LT_R_32F;
}

/* A row-major matrix of rows by width at ld, as columns. */
static int layout_make(const struct stint_gpu_matmul *m, void **out, enum stint_gpu_type type,
	int64_t rows, int64_t width, int64_t ld, int64_t step)
{
	const struct gpu_cublaslt *lt = &m->g->lt;
	const int32_t batch = (int32_t)m->p.shape.batch;
	int status = lt->cublasLtMatrixLayoutCreate(
		out, type_of(type), (uint64_t)width, (uint64_t)rows, ld);
	if (status)
		*out = NULL;
	if (!status)
		status = lt->cublasLtMatrixLayoutSetAttribute(
			*out, GPU_LT_BATCH, &batch, sizeof batch);
	if (!status)
		status = lt->cublasLtMatrixLayoutSetAttribute(
			*out, GPU_LT_STEP, &step, sizeof step);
	return status;
}

static int desc_set(const struct stint_gpu_matmul *m, int what, const void *value, size_t bytes)
{
	return m->g->lt.cublasLtMatmulDescSetAttribute(m->desc, what, value, bytes);
}

static int desc_make(struct stint_gpu_matmul *m)
{
	const struct stint_gpu_product *p = &m->p;
	const int32_t ta = p->shape.t1 ? GPU_LT_OP_T : GPU_LT_OP_N,
		      tb = p->shape.t0 ? GPU_LT_OP_T : GPU_LT_OP_N;
	static const int32_t epilogues[] = {[STINT_PRODUCT_BIAS] = GPU_LT_EPILOGUE_BIAS,
		[STINT_PRODUCT_SUM0] = GPU_LT_EPILOGUE_BGRADB,
		[STINT_PRODUCT_SUM1] = GPU_LT_EPILOGUE_BGRADA};
	const int32_t epilogue = epilogues[p->shape.extra], type = type_of(p->out);
	/* Heuristics look at the address for its alignment only. */
	void *const extra = (void *)(uintptr_t)ALIGNED;
	int status = m->g->lt.cublasLtMatmulDescCreate(
		&m->desc, p->tf32 ? GPU_LT_COMPUTE_TF32 : GPU_LT_COMPUTE_32F, GPU_LT_R_32F);
	if (status)
		m->desc = NULL;
	if (!status)
		status = desc_set(m, GPU_LT_TRANSA, &ta, sizeof ta);
	if (!status)
		status = desc_set(m, GPU_LT_TRANSB, &tb, sizeof tb);
	if (!status && epilogue) {
		status = desc_set(m, GPU_LT_EPILOGUE, &epilogue, sizeof epilogue);
		if (!status)
			status = desc_set(m, GPU_LT_BIAS_TYPE, &type, sizeof type);
		if (!status)
			status = desc_set(m, GPU_LT_BIAS, &extra, sizeof extra);
	}
	return status;
}

static int preference_make(struct stint_gpu_matmul *m)
{
	const struct gpu_cublaslt *lt = &m->g->lt;
	const uint64_t cap = m->p.cap;
	const uint32_t reduction = GPU_LT_REDUCTION_COMPUTE, align = ALIGNED;
	int status = lt->cublasLtMatmulPreferenceCreate(&m->preference);
	if (status)
		m->preference = NULL;
	if (!status)
		status = lt->cublasLtMatmulPreferenceSetAttribute(
			m->preference, GPU_LT_PREF_WORKSPACE, &cap, sizeof cap);
	if (!status)
		status = lt->cublasLtMatmulPreferenceSetAttribute(
			m->preference, GPU_LT_PREF_REDUCTION, &reduction, sizeof reduction);
	for (int what = GPU_LT_PREF_ALIGN_A; !status && what <= GPU_LT_PREF_ALIGN_D; what++)
		status = lt->cublasLtMatmulPreferenceSetAttribute(
			m->preference, what, &align, sizeof align);
	return status;
}

/* What the library is told; it needs no device for that. */
static int describe(struct stint_gpu_matmul *m)
{
	const struct stint_gpu_product *p = &m->p;
	const struct stint_product *s = &p->shape;
	int status = desc_make(m);
	if (!status)
		status = layout_make(m, &m->a, p->in, s->t1 ? s->n : s->k, s->t1 ? s->k : s->n,
			p->ld1, p->step1);
	if (!status)
		status = layout_make(m, &m->b, p->in, s->t0 ? s->k : s->m, s->t0 ? s->m : s->k,
			p->ld0, p->step0);
	if (!status)
		status = layout_make(m, &m->d, p->out, s->m, s->n, p->ldy, p->stepy);
	return status ? status : preference_make(m);
}

/* --- The choice --- */

/* Partial sums that are added in a step of their own, in fp32, or none: not in the output as blocks
 * finish, and not rounded to its type on the way. */
static int settled(const struct stint_gpu_matmul *m, const cublasLtMatmulAlgo_t *algo)
{
	uint32_t scheme = 0;
	size_t written;
	return !m->g->lt.cublasLtMatmulAlgoConfigGetAttribute(
		       algo, GPU_LT_CONFIG_REDUCTION, &scheme, sizeof scheme, &written) &&
	       !(scheme & ~(uint32_t)GPU_LT_REDUCTION_COMPUTE);
}

static int ask(struct stint_gpu_matmul *m)
{
	stint_gpu *g = m->g;
	const struct stint_gpu_product *p = &m->p;
	cublasLtMatmulHeuristicResult_t result[ASKED];
	int got = 0;
	memset(result, 0, sizeof result);
	const int status = g->lt.cublasLtMatmulAlgoGetHeuristic(
		g->lt_handle, m->desc, m->a, m->b, m->d, m->d, m->preference, ASKED, result, &got);
	if (status && status != GPU_LT_NOT_SUPPORTED)
		return lt_check(g, status, "asking for an algorithm");
	for (int i = 0; !status && i < got && i < ASKED; i++)
		if (!result[i].state && result[i].workspaceSize <= p->cap &&
			settled(m, &result[i].algo)) {
			m->algo = result[i].algo;
			m->workspace = result[i].workspaceSize;
			return STINT_OK;
		}
	return stint_gpu_fail(g, STINT_BAD_MACHINE,
		"cuBLASLt has no deterministic product of %lld x %lld x %lld x %lld within %zu "
		"bytes of "
		"workspace",
		(long long)p->shape.batch, (long long)p->shape.m, (long long)p->shape.n,
		(long long)p->shape.k, p->cap);
}

static void key_make(struct stint_gpu_matmul *m, unsigned char key[STINT_SHA])
{
	const struct stint_gpu_product *p = &m->p;
	const struct stint_product *q = &p->shape;
	const int64_t number[] = {q->batch, q->m, q->n, q->k, q->t0, q->t1, p->ld0, p->ld1, p->ldy,
		p->step0, p->step1, p->stepy, p->in, p->out, p->tf32, q->extra, (int64_t)p->cap};
	char identity[192], text[32];
	struct stint_sha s;
	stint_gpu_identity(m->g, identity);
	stint_sha_start(&s);
	stint_cache_field(&s, "matmul 2", 8);
	stint_cache_field(&s, identity, strlen(identity));
	for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
		const int n = snprintf(text, sizeof text, "%lld", (long long)number[i]);
		stint_cache_field(&s, text, (size_t)n);
	}
	stint_sha_end(&s, key);
}

/* 1: the cache had a choice that the library takes. */
static int recall(struct stint_gpu_matmul *m, const unsigned char key[STINT_SHA])
{
	stint_gpu *g = m->g;
	cublasLtMatmulHeuristicResult_t result;
	size_t bytes = 0;
	void *data = stint_cache_read(g->cache, key, &bytes);
	int good = data && bytes == sizeof m->algo;
	if (good) {
		memset(&result, 0, sizeof result);
		memcpy(&m->algo, data, sizeof m->algo);
		good = settled(m, &m->algo) &&
		       !g->lt.cublasLtMatmulAlgoCheck(
			       g->lt_handle, m->desc, m->a, m->b, m->d, m->d, &m->algo, &result) &&
		       result.workspaceSize <= m->p.cap;
		m->workspace = result.workspaceSize;
	}
	free(data);
	return good;
}

static int choose(struct stint_gpu_matmul *m)
{
	unsigned char key[STINT_SHA];
	key_make(m, key);
	if (recall(m, key))
		return STINT_OK;
	int rc = ask(m);
	if (!rc)
		stint_cache_write(m->g->cache, key, &m->algo, sizeof m->algo);
	return rc;
}

/* The library's handle, made once. */
static int handle_make(stint_gpu *g)
{
	if (g->lt_handle)
		return STINT_OK;
	int rc = lt_check(g, g->lt.cublasLtCreate(&g->lt_handle), "starting");
	if (rc) {
		g->lt_handle = NULL;
		return rc;
	}
	return stint_gpu_measure(g, "cuBLASLt", 0);
}

int stint_gpu_matmul_new(
	stint_gpu *g, const struct stint_gpu_product *p, struct stint_gpu_matmul **out)
{
	struct stint_gpu_product whole = *p;
	if (product_complete(&whole))
		return stint_gpu_fail(g, STINT_BAD_DATA, "not a product: %lld x %lld x %lld x %lld",
			(long long)p->shape.batch, (long long)p->shape.m, (long long)p->shape.n,
			(long long)p->shape.k);
	int rc = stint_gpu_need(g, STINT_GPU_CUBLASLT);
	if (!rc)
		rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	struct stint_gpu_matmul *m = calloc(1, sizeof *m);
	if (!m)
		return stint_gpu_leave(g, stint_gpu_fail(g, STINT_NO_MEMORY, "out of memory"));
	m->g = g;
	m->p = whole;
	rc = lt_check(g, describe(m), "describing a product");
	if (!rc)
		rc = handle_make(g);
	if (!rc)
		rc = choose(m);
	stint_gpu_time_note(g, "choosing products");
	if (!rc)
		rc = stint_gpu_measure(g, "cuBLASLt", 0);
	stint_gpu_leave(g, rc);
	if (rc)
		stint_gpu_matmul_free(m);
	else
		*out = m;
	return rc;
}

void stint_gpu_matmul_free(struct stint_gpu_matmul *m)
{
	if (!m)
		return;
	const struct gpu_cublaslt *lt = &m->g->lt;
	void *const layout[] = {m->a, m->b, m->d};
	for (int i = 0; i < 3; i++)
		if (layout[i])
			lt->cublasLtMatrixLayoutDestroy(layout[i]);
	if (m->preference)
		lt->cublasLtMatmulPreferenceDestroy(m->preference);
	if (m->desc)
		lt->cublasLtMatmulDescDestroy(m->desc);
	free(m);
}

size_t stint_gpu_matmul_workspace(const struct stint_gpu_matmul *m)
{
	return m->workspace;
}

void stint_gpu_matmul_algo(const struct stint_gpu_matmul *m, unsigned char algo[STINT_GPU_ALGO])
{
	memcpy(algo, &m->algo, STINT_GPU_ALGO);
}

const char *stint_gpu_matmul_words(const struct stint_gpu_matmul *m, char buf[96])
{
	static const int what[] = {
		GPU_LT_CONFIG_ID, GPU_LT_CONFIG_TILE, GPU_LT_CONFIG_STAGES, GPU_LT_CONFIG_SPLIT};
	static const char *const name[] = {"algorithm", "tile", "stages", "split"};
	size_t used = 0;
	buf[0] = 0;
	for (int i = 0; i < 4; i++) {
		int32_t value = 0;
		size_t written;
		if (m->g->lt.cublasLtMatmulAlgoConfigGetAttribute(
			    &m->algo, what[i], &value, sizeof value, &written))
			continue;
		used += (size_t)snprintf(
			buf + used, 96 - used, "%s%s %d", used ? ", " : "", name[i], (int)value);
	}
	return buf;
}

static const void *at(stint_gpu_ptr p)
{
	return (const void *)(uintptr_t)p;
}

int stint_gpu_matmul_run(stint_gpu *g, int stream, struct stint_gpu_matmul *m, stint_gpu_ptr x0,
	stint_gpu_ptr x1, stint_gpu_ptr y, stint_gpu_ptr extra, stint_gpu_ptr workspace)
{
	const enum stint_product_extra what = m->p.shape.extra;
	const int adds = what == STINT_PRODUCT_ADD;
	const float alpha = 1, beta = adds ? 1 : 0;
	const void *bias = at(extra);
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	int status = 0;
	if (what != STINT_PRODUCT_PLAIN && !adds)
		status = desc_set(m, GPU_LT_BIAS, &bias, sizeof bias);
	if (!status)
		status = g->lt.cublasLtMatmul(g->lt_handle, m->desc, &alpha, at(x1), m->a, at(x0),
			m->b, &beta, at(adds ? extra : y), m->d, (void *)(uintptr_t)y, m->d,
			&m->algo, (void *)(uintptr_t)workspace, m->workspace, g->stream[stream]);
	return stint_gpu_leave(g, lt_check(g, status, "running a product"));
}

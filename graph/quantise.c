/* Weights in 8 and 4 bits (struct stored). */
#include <math.h>
#include <string.h>

#include "graph/graph_parts.h"
#include "kernels/dynamic_map.h"

/* Quantiles of the normal distribution, as bitsandbytes has them. */
static const float nf4[16] = {-1.0f, -0.6961928009986877f, -0.5250730514526367f,
	-0.39491748809814453f, -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f,
	0.0f, 0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f,
	0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f};

const char *stored_name(enum stored_form f)
{
	return f == STORED_INT8 ? "int8" : f == STORED_INT4 ? "int4" : "nf4";
}

int64_t stored_small_bytes(const struct stored *s)
{
	const int64_t n = s->rows * s->columns;
	return s->form == STORED_INT8 ? n : n / 2 + n % 2;
}

int64_t stored_coarse(const struct stored *s)
{
	return (s->scales + SCALES_BLOCK - 1) / SCALES_BLOCK;
}

int64_t stored_bytes(const struct stored *s)
{
	const int64_t scales = s->code ? s->scales + stored_coarse(s) * (int64_t)sizeof *s->coarse
				       : s->scales * (int64_t)sizeof *s->scale;
	return stored_small_bytes(s) + scales + (s->zero ? s->scales : 0);
}

/* Where element i of the matrix, in its order, is among the small numbers, and its scale. */
static int64_t small_of(const struct stored *s, int64_t i)
{
	return i / s->columns * s->row + i % s->columns * s->column;
}

static int64_t scale_of(const struct stored *s, int64_t i)
{
	return s->flat ? small_of(s, i) / s->flat
		       : i / s->columns / s->row_block * s->row_scale +
				 i % s->columns / s->column_block * s->column_scale;
}

float stored_value(const struct stored *s, int64_t i)
{
	const int64_t at = small_of(s, i), of = scale_of(s, i);
	const int zero = s->zero ? s->zero[of] : s->middle;
	if (s->form == STORED_INT8)
		return (float)(((const signed char *)s->small)[at] - zero) * s->scale[of];
	const int byte = ((const unsigned char *)s->small)[at / 2];
	const int small = at % 2 ? byte & 15 : byte >> 4;
	return (s->form == STORED_NF4 ? nf4[small] : (float)(small - zero)) * s->scale[of];
}

/* --- How a matrix lies --- */

/* Element (i, j) of t, a matrix or several behind one another, as number i * row + j * column. */
static struct stored *stored_new(
	struct graph *g, const struct tensor *t, enum stored_form form, int64_t rows, bool turned)
{
	struct stored *s = ARENA_NEW(g->arena, struct stored);
	if (!s) {
		diag_nomem(g->diag);
		return NULL;
	}
	const int64_t columns = t->numel / rows;
	*s = (struct stored){.form = form,
		.rows = rows,
		.columns = columns,
		.row = turned ? 1 : columns,
		.column = turned ? rows : 1,
		.row_block = 1,
		.column_block = 1};
	return s;
}

static bool allocate(struct graph *g, struct stored *s, void **small, float **scale)
{
	*small = arena_alloc(g->arena, (size_t)stored_small_bytes(s), 1);
	*scale = arena_alloc(g->arena, (size_t)s->scales, sizeof **scale);
	s->small = *small;
	s->scale = *scale;
	if (!*small || !*scale)
		diag_nomem(g->diag);
	return *small && *scale;
}

static bool all_finite(struct graph *g, const struct tensor *t, const char *form)
{
	const float *v = t->data;
	int64_t i = 0;
	while (i < t->numel && isfinite(v[i]))
		i++;
	if (i < t->numel)
		diag_fail(g->diag, ST_INVALID, &(struct where){g->file, t->name, "weight"},
			"a model that holds such numbers is of no use",
			"holds %g, for which %s has no scale", (double)v[i], form);
	return i == t->numel;
}

/* --- int8 --- */

struct stored *store_int8(struct graph *g, const struct tensor *t, int axis, bool turned)
{
	const float *v = t->data;
	int64_t rows = 1, last = axis == t->rank - 1;
	if (!all_finite(g, t, "int8"))
		return NULL;
	for (int i = 0; i < axis + !last; i++)
		rows *= t->dim[i];
	struct stored *s = stored_new(g, t, STORED_INT8, rows, turned && last && t->rank == 2);
	void *small;
	float *scale;
	if (!s)
		return NULL;
	/* a channel is a row; or, behind others, a column of a matrix */
	if (last) {
		s->row_block = axis ? t->dim[axis - 1] : 1;
		s->row_scale = s->columns;
		s->column_scale = 1;
		s->scales = s->rows / s->row_block * s->columns;
	} else {
		s->row_scale = 1;
		s->column_block = s->columns;
		s->scales = s->rows;
	}
	if (!allocate(g, s, &small, &scale))
		return NULL;
	for (int64_t i = 0; i < t->numel; i++) {
		float *of = &scale[scale_of(s, i)];
		*of = fmaxf(*of, fabsf(v[i]));
	}
	for (int64_t k = 0; k < s->scales; k++)
		scale[k] /= 127;
	for (int64_t i = 0; i < t->numel; i++) {
		const float of = scale[scale_of(s, i)];
		/* nearest, to even; the least scales are not as exact */
		const float near = of > 0 ? fminf(fmaxf(rintf(v[i] / of), -127), 127) : 0;
		((signed char *)small)[small_of(s, i)] = (signed char)near;
	}
	return s;
}

/* --- nf4 --- */

/* The nearest of the table; of two as near, the lower. The middles are rounded, as torch's. */
static int nf4_nearest(float v)
{
	int k = 0;
	while (k < 15 && v > (nf4[k] + nf4[k + 1]) / 2)
		k++;
	return k;
}

/* The scale of a block of n numbers. One that is not whole is divided where others are multiplied.
 */
static float nf4_block(const float *v, int64_t n, unsigned char *out)
{
	const float least = 1e-38f;
	float most = 0;
	for (int64_t i = 0; i < n; i++)
		most = fmaxf(most, fabsf(v[i]));
	const float divisor = fmaxf(most, least), factor = 1 / divisor;
	for (int64_t i = 0; i < n; i++)
		out[i] = (unsigned char)nf4_nearest(
			n == NF4_BLOCK ? v[i] * factor : v[i] / divisor);
	return n == NF4_BLOCK ? most : divisor;
}

/* Where blocks follow matrix or row, scales can be found by row and column. */
static void nf4_scales(struct stored *s, bool turned)
{
	const int64_t run = turned ? s->rows : s->columns;
	int64_t *along[] = {&s->column_block, &s->column_scale},
		*across[] = {&s->row_block, &s->row_scale};
	int64_t **in = turned ? across : along, **over = turned ? along : across;
	if (run % NF4_BLOCK == 0) {
		*in[0] = NF4_BLOCK;
		*in[1] = 1;
		*over[1] = run / NF4_BLOCK;
	} else if (NF4_BLOCK % run == 0) {
		*in[0] = run;
		*over[0] = NF4_BLOCK / run;
		*over[1] = 1;
	} else {
		s->flat = NF4_BLOCK;
	}
}

/* The place of the nearest number of a table that rises; of two as near, the lower one. */
static unsigned char place_of(const float *table, double x)
{
	int at = 0;
	for (int step = 128; step; step /= 2)
		at += (double)table[at + step] <= x ? step : 0;
	const bool up = at < 255 && (double)table[at + 1] - x < x - (double)table[at];
	return (unsigned char)(at + up);
}

/* The scales' own: blocks of what is left when their mean is taken off. */
static enum status store_scales(struct graph *g, struct stored *s, float *scale)
{
	const int64_t n = s->scales;
	unsigned char *code = arena_alloc(g->arena, (size_t)n, 1);
	float *coarse = arena_alloc(g->arena, (size_t)stored_coarse(s), sizeof *coarse);
	double sum = 0;
	if (!code || !coarse)
		return diag_nomem(g->diag);
	for (int64_t i = 0; i < n; i++)
		sum += (double)scale[i];
	s->offset = n ? (float)(sum / (double)n) : 0;
	for (int64_t i = 0; i < n; i++)
		coarse[i / SCALES_BLOCK] = fmaxf(
			coarse[i / SCALES_BLOCK], fabsf(scale[i] - s->offset));
	for (int64_t i = 0; i < n; i++) {
		const float most = coarse[i / SCALES_BLOCK];
		code[i] = place_of(
			signed_map, most > 0 ? (double)(scale[i] - s->offset) / (double)most : 0);
		scale[i] = signed_map[code[i]] * most + s->offset;
	}
	s->code = code;
	s->coarse = coarse;
	return ST_OK;
}

struct stored *store_nf4(struct graph *g, const struct tensor *t, bool turned, bool twice)
{
	const float *v = t->data;
	unsigned char code[NF4_BLOCK];
	void *small;
	float *scale;
	struct stored *s = stored_new(g, t, STORED_NF4, t->rank > 1 ? t->dim[0] : 1, turned);
	if (!s || !all_finite(g, t, "nf4"))
		return NULL;
	nf4_scales(s, turned);
	s->scales = (t->numel + NF4_BLOCK - 1) / NF4_BLOCK;
	if (!allocate(g, s, &small, &scale))
		return NULL;
	unsigned char *byte = small;
	float block[NF4_BLOCK];
	for (int64_t k = 0; k < s->scales; k++) {
		const int64_t first = k * NF4_BLOCK, left = t->numel - first;
		const int64_t n = left < NF4_BLOCK ? left : NF4_BLOCK;
		for (int64_t i = 0; i < n; i++) {
			const int64_t at = first + i;
			block[i] = v[turned ? at % s->rows * s->columns + at / s->rows : at];
		}
		scale[k] = nf4_block(block, n, code);
		for (int64_t i = 0; i < n; i += 2)
			byte[(first + i) / 2] = (unsigned char)(code[i] << 4 |
								(i + 1 < n ? code[i + 1] : 7));
	}
	return twice && store_scales(g, s, scale) != ST_OK ? NULL : s;
}

/* --- As attributes --- */

enum { LAYOUT = 9 };

enum status stored_attributes(struct graph *g, const struct stored *s, struct attr *attr)
{
	const int64_t layout[LAYOUT] = {s->rows, s->columns, s->row, s->column, s->row_block,
		s->row_scale, s->column_block, s->column_scale, s->flat};
	const int64_t *v = arena_memdup(g->arena, layout, LAYOUT, sizeof *layout);
	attr[0] = ATTR_I("form", s->form);
	attr[1] = ATTR_I("middle", s->middle);
	attr[2] = ATTR_IS("layout", LAYOUT, v);
	return v ? ST_OK : diag_nomem(g->diag);
}

void stored_of(const struct node *n, struct stored *out)
{
	const int64_t *v = node_attr(n, "layout")->ints;
	*out = (struct stored){.form = (enum stored_form)node_int(n, "form", 0),
		.middle = (int)node_int(n, "middle", 0),
		.rows = v[0],
		.columns = v[1],
		.row = v[2],
		.column = v[3],
		.row_block = v[4],
		.row_scale = v[5],
		.column_block = v[6],
		.column_scale = v[7],
		.flat = v[8]};
}

/* --- A matrix that is transposed --- */

struct stored stored_turned(const struct stored *s)
{
	struct stored t = *s;
	t.rows = s->columns;
	t.columns = s->rows;
	t.row = s->column;
	t.column = s->row;
	t.row_block = s->column_block;
	t.row_scale = s->column_scale;
	t.column_block = s->row_block;
	t.column_scale = s->row_scale;
	return t;
}

enum status stored_transpose(struct graph *g, const struct node *n)
{
	const struct tensor *x = n->in[0];
	struct tensor *y = n->out[0];
	const struct attr *perm = node_attr(n, "perm");
	if (x->rank != 2 || x->stored->rows != x->dim[0] || !perm || perm->n != 2)
		return ST_OK;
	if (perm->ints[0] == 0) { /* it moves nothing */
		y->stored = x->stored;
		return ST_OK;
	}
	struct stored *s = ARENA_NEW(g->arena, struct stored);
	if (!s)
		return diag_nomem(g->diag);
	*s = stored_turned(x->stored);
	y->stored = s;
	return ST_OK;
}

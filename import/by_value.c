/* Which function of which parameter a constant's values are.
 *
 * Three places of a vector say (v1 - v0) / (v2 - v0), which no factor and no summand change. So for
 * each function u of one number that the operator table has, and each parameter p of as many
 * elements, these three of u(p) are a key in a table, and a constant's are looked up there: time in
 * proportion to the file, not to its pairs. What is found is then compared whole.
 *
 * Rows are found by their hash, and the longest run of rows is taken from there. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "import/by_value.h"

enum {
	FEW = 4,      /* distinct values that say nothing */
	MANY = 8,     /* that say which factor and summand, whatever they are */
	TRIPLES = 16, /* places that are tried */
	STEPS = 2048, /* of a key */
	DIGITS = 4    /* of factors and summands as people write them */
};

struct entry {
	struct form form;
	struct entry *next;
};

struct row_at {
	const struct values *of;
	int64_t row;
	struct row_at *next;
};

/* --- What says nothing --- */

/* Up to `most`. */
static int distinct(const struct values *c, int most)
{
	float seen[MANY];
	int n = 0;
	for (int64_t i = 0; i < c->numel && n < most; i++) {
		int k = 0;
		while (k < n && seen[k] != c->v[i])
			k++;
		if (k == n)
			seen[n++] = c->v[i];
	}
	return n;
}

/* Along the last axis that has any: equal steps, or each the same multiple of the one before. */
static bool is_progression(const struct values *c)
{
	int64_t n = 1;
	for (int i = c->rank; i-- > 0 && n == 1;)
		n = c->dim[i];
	n = n < FEW ? c->numel : n;
	const double step = (double)c->v[1] - c->v[0], ratio = (double)c->v[1] / c->v[0];
	bool even = true, powers = isfinite(ratio) && ratio != 0;
	for (int64_t i = 1; i < n && (even || powers); i++) {
		const double v = c->v[i], before = c->v[i - 1],
			     near = 1e-5 * (fabs(v) + fabs(before));
		even &= fabs(v - before - step) <= near;
		powers &= fabs(v - before * ratio) <= near;
	}
	return even || powers;
}

bool by_value_plain(const struct values *c)
{
	bool whole = true;
	if (c->numel < FEW || distinct(c, FEW) < FEW)
		return true;
	for (int64_t i = 0; i < c->numel; i++) {
		if (!(fabsf(c->v[i]) < 1e30f)) /* a mask */
			return true;
		whole &= c->v[i] == floorf(c->v[i]);
	}
	return whole || is_progression(c);
}

/* --- Without repetition --- */

static bool repeats_along(const struct values *c, int axis)
{
	int64_t inner = 1, n = c->dim[axis];
	for (int i = axis + 1; i < c->rank; i++)
		inner *= c->dim[i];
	for (int64_t o = 0; o < c->numel; o += n * inner)
		for (int64_t i = inner; i < n * inner; i++)
			if (c->v[o + i] != c->v[o + i - inner])
				return false;
	return n > 1;
}

const struct values *by_value_once(struct arena *a, const struct values *c)
{
	struct values *once = arena_memdup(a, c, 1, sizeof *c);
	for (int axis = 0; once && axis < c->rank; axis++) {
		if (!repeats_along(once, axis))
			continue;
		const int64_t n = once->dim[axis];
		int64_t inner = 1;
		for (int i = axis + 1; i < c->rank; i++)
			inner *= once->dim[i];
		float *v = ARENA_ARRAY(a, float, once->numel / n);
		if (!v)
			return NULL;
		for (int64_t o = 0; o < once->numel / (n * inner); o++)
			memcpy(v + o * inner, once->v + o * n * inner, (size_t)inner * sizeof *v);
		once->v = v;
		once->numel /= n;
		once->dim[axis] = 1;
	}
	return once;
}

/* --- Functions --- */

/* Of one number, from files, with a gradient, and what its options are where a node says nothing.
 */
static bool is_function(const struct op_def *op, int opset)
{
	return (op->traits & OP_POINTWISE) && !(op->traits & (OP_STOP | OP_BOOL | OP_ONCE)) &&
	       op->ref && op->grad && op->since && op->since <= opset &&
	       (!op->until || opset < op->until) && op->min_in == 1 && op_max_in(op) == 1 &&
	       !op->option && !strchr(op->name, '.');
}

enum status by_value_begin(struct by_value *b, struct importer *im)
{
	*b = (struct by_value){.im = im};
	b->sources.arena = b->keys.arena = b->rows.arena = im->m.arena;
	int n = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (int f = 0; f < im->table->nfamily; f++)
			for (const struct op_def *op = im->table->family[f]; op->name; op++) {
				if (!is_function(op, im->top.opset))
					continue;
				if (pass)
					b->op[b->nop++] = op;
				else
					n++;
			}
		if (!pass && !(b->op = ARENA_ARRAY(im->m.arena, const struct op_def *, n + 1)))
			return diag_nomem(im->d);
	}
	return ST_OK;
}

static const char *size_key(const struct by_value *b, int64_t numel)
{
	return arena_printf(b->im->m.arena, "%" PRId64, numel);
}

enum status by_value_source(struct by_value *b, struct values *v)
{
	const char *key = size_key(b, v->numel);
	void **at = key ? names_at(&b->sources, key) : NULL;
	if (!at)
		return diag_nomem(b->im->d);
	v->next = *at;
	*at = v;
	return ST_OK;
}

static double apply(const struct form *f, double x)
{
	const double in[POINTWISE_INPUTS] = {f->negated ? -x : x};
	return f->squared ? x * x : f->op ? f->op->ref(in, NULL) : in[0];
}

/* The simplest of those that fit is taken. */
static int work(const struct form *f)
{
	return f->negated ? 3 : f->op ? 2 : f->squared;
}

/* --- Keys --- */

static void triple(int64_t numel, int k, int64_t at[3])
{
	const int64_t first[3] = {0, numel / 2, numel - 1};
	for (int i = 0; i < 3; i++) {
		const uint64_t mixed = ((uint64_t)(k * 3 + i) + 1) * UINT64_C(0x9e3779b97f4a7c15);
		at[i] = k ? (int64_t)((mixed >> 20) % (uint64_t)numel) : first[i];
	}
}

/* false: these three do not say it, being too near each other: `apart` times the largest. */
static bool ratio_of(const double v[3], double apart, int *step)
{
	const double one = v[1] - v[0], two = v[2] - v[0], sum = fabs(one) + fabs(two);
	const double size = fmax(fabs(v[0]), fmax(fabs(v[1]), fabs(v[2])));
	if (!isfinite(one) || !isfinite(two) || fabs(one) <= apart * size ||
		fabs(two) <= apart * size || fabs(one - two) <= apart * size)
		return false;
	*step = (int)lround(one / sum * (two < 0 ? -1 : 1) * STEPS);
	return true;
}

static const char *form_key(const struct by_value *b, int64_t numel, int k, int step)
{
	return arena_printf(b->im->m.arena, "%" PRId64 " %d %d", numel, k, step);
}

static enum status add_entry(struct by_value *b, const struct form *f, int k)
{
	int64_t at[3];
	double v[3];
	int step;
	triple(f->of->numel, k, at);
	for (int i = 0; i < 3; i++)
		v[i] = apply(f, f->of->v[at[i]]);
	if (!ratio_of(v, 1e-4, &step)) /* what is near 1 has differences of its own still */
		return ST_OK;
	const char *key = form_key(b, f->of->numel, k, step);
	void **slot = key ? names_at(&b->keys, key) : NULL;
	struct entry *e = ARENA_NEW(b->im->m.arena, struct entry);
	if (!slot || !e)
		return diag_nomem(b->im->d);
	*e = (struct entry){*f, *slot};
	*slot = e;
	return ST_OK;
}

/* The forms of all sources of so many elements, by these three places; once. */
static enum status fill_keys(struct by_value *b, int64_t numel, int k)
{
	const char *key = arena_printf(b->im->m.arena, "%" PRId64 " %d", numel, k);
	const char *size = size_key(b, numel);
	void **done = key && size ? names_at(&b->keys, key) : NULL;
	if (!done)
		return diag_nomem(b->im->d);
	if (*done)
		return ST_OK;
	*done = b;
	for (const struct values *p = names_get(&b->sources, size); p; p = p->next) {
		for (int i = 0; i < b->nop; i++)
			for (int sign = 0; sign < 2; sign++)
				TRY(add_entry(b,
					&(struct form){.of = p, .op = b->op[i], .negated = sign},
					k));
		TRY(add_entry(b, &(struct form){.of = p, .squared = true}, k));
		TRY(add_entry(b, &(struct form){.of = p}, k));
	}
	return ST_OK;
}

/* --- The whole of it --- */

static bool fits(const struct values *c, const struct form *f)
{
	const double slack = 4 * fmax(c->epsilon, f->of->epsilon);
	for (int64_t i = 0; i < c->numel; i++) {
		const double u = f->scale * apply(f, f->of->v[i]);
		if (!(fabs(c->v[i] - u - f->shift) <=
			    slack * (fabs(c->v[i]) + fabs(u) + fabs(f->shift))))
			return false;
	}
	return true;
}

/* As a person would have written it, where that is as near. */
static double rounded(double v, double error)
{
	double ten = 1;
	for (int i = 0; i <= DIGITS; i++, ten *= 10)
		if (fabs(round(v * ten) / ten - v) <= error)
			return round(v * ten) / ten;
	return v;
}

/* The factor and summand by which c would be u(p), from its ends. */
static bool solve(const struct values *c, struct form *f)
{
	int64_t low = 0, high = 0;
	for (int64_t i = 1; i < c->numel; i++) {
		low = c->v[i] < c->v[low] ? i : low;
		high = c->v[i] > c->v[high] ? i : high;
	}
	const double u0 = apply(f, f->of->v[low]), u1 = apply(f, f->of->v[high]);
	const double size = fmax(fabs(c->v[low]), fabs(c->v[high]));
	const double a = ((double)c->v[high] - c->v[low]) / (u1 - u0), raw = c->v[low] - a * u0;
	if (!isfinite(a) || a == 0)
		return false;
	const double error = 8 * fmax(c->epsilon, f->of->epsilon) *
			     (size + fabs(raw) + fabs(a * u0));
	f->scale = rounded(a, error / fabs(u1 - u0));
	f->shift = rounded(c->v[low] - f->scale * u0, error);
	const bool nice = f->scale * 1e4 == round(f->scale * 1e4) && fits(c, f);
	if (!nice) {
		f->scale = a;
		f->shift = raw;
	}
	const int n = distinct(c, MANY);
	double most = 0; /* of a parameter near 0 all functions are straight lines */
	for (int64_t i = 0; i < c->numel; i++)
		most = fmax(most, fabs((double)f->of->v[i]));
	const bool same = !f->op && !f->squared && f->scale == 1 && f->shift == 0;
	f->sure = n >= (nice ? FEW : MANY) && (same || most >= 2e-3);
	return nice || (n >= MANY && fits(c, f));
}

enum status by_value_form(struct by_value *b, const struct values *c, struct form *form)
{
	int64_t at[3];
	double v[3];
	int step, k = 0;
	*form = (struct form){0};
	const char *size = size_key(b, c->numel);
	if (!size)
		return diag_nomem(b->im->d);
	if (!names_get(&b->sources, size))
		return ST_OK;
	for (bool said = false; !said; k++) {
		if (k == TRIPLES)
			return ST_OK;
		triple(c->numel, k, at);
		for (int i = 0; i < 3; i++)
			v[i] = c->v[at[i]];
		said = ratio_of(v, 1e-3, &step);
	}
	TRY(fill_keys(b, c->numel, --k));
	for (int s = -1; s <= 1; s++) {
		const char *key = form_key(b, c->numel, k, step + s);
		if (!key)
			return diag_nomem(b->im->d);
		for (const struct entry *e = names_get(&b->keys, key); e; e = e->next) {
			struct form f = e->form;
			if ((!form->of || work(&f) < work(form)) && solve(c, &f))
				*form = f;
		}
	}
	return ST_OK;
}

/* --- Rows --- */

static int64_t row_of(const struct values *v)
{
	return v->rank && v->dim[0] ? v->numel / v->dim[0] : 0;
}

/* Of a vector, so many of its numbers. */
static int64_t hashed(const struct values *v)
{
	return row_of(v) == 1 ? FEW : row_of(v);
}

static const char *row_key(const struct by_value *b, const struct values *v, int64_t row)
{
	const int64_t n = row_of(v);
	const uint64_t h = hash_bytes(HASH_BEGIN, v->v + row * n, (size_t)hashed(v) * sizeof *v->v);
	return arena_printf(b->im->m.arena, "%" PRId64 " %" PRIx64, n, h);
}

static bool has_row(const struct values *v, int64_t row)
{
	return row * row_of(v) + hashed(v) <= v->numel;
}

/* Rows of all sources that have such rows, once. */
static enum status fill_rows(struct by_value *b, int64_t n)
{
	const char *key = arena_printf(b->im->m.arena, "%" PRId64, n);
	void **done = key ? names_at(&b->rows, key) : NULL;
	if (!done)
		return diag_nomem(b->im->d);
	if (*done)
		return ST_OK;
	*done = b;
	for (int i = 0; i < b->sources.cap; i++)
		for (const struct values *p = b->sources.slot[i].value; p; p = p->next)
			for (int64_t r = 0; row_of(p) == n && r < p->dim[0] && has_row(p, r); r++) {
				const char *k = row_key(b, p, r);
				void **at = k ? names_at(&b->rows, k) : NULL;
				struct row_at *x = ARENA_NEW(b->im->m.arena, struct row_at);
				if (!at || !x)
					return diag_nomem(b->im->d);
				*x = (struct row_at){p, r, *at};
				*at = x;
			}
	return ST_OK;
}

static bool varies(const float *v, int64_t n)
{
	for (int64_t i = 1; i < n; i++)
		if (v[i] != v[0])
			return true;
	return false;
}

/* The longest run of a source's rows that begins with c's row `from`; count 0: there is none. */
static enum status longest(
	struct by_value *b, const struct values *c, int64_t from, struct part *part)
{
	const int64_t n = row_of(c);
	const char *key = row_key(b, c, from);
	if (!key)
		return diag_nomem(b->im->d);
	*part = (struct part){0};
	int tried = 0;
	for (const struct row_at *x = names_get(&b->rows, key); x && tried < PARTS_MAX;
		x = x->next, tried++) {
		int64_t count = 0;
		while (from + count < c->dim[0] && x->row + count < x->of->dim[0] &&
			!memcmp(c->v + (from + count) * n, x->of->v + (x->row + count) * n,
				(size_t)n * sizeof *c->v))
			count++;
		if (count > part->count)
			*part = (struct part){x->of, x->row, count};
	}
	return ST_OK;
}

enum status by_value_parts(
	struct by_value *b, const struct values *c, struct part part[PARTS_MAX], int *n)
{
	const int64_t row = row_of(c), rows = c->rank ? c->dim[0] : 0;
	*n = 0;
	if (!row)
		return ST_OK;
	TRY(fill_rows(b, row));
	for (int64_t from = 0; from < rows;) {
		struct part *p = part + *n;
		if (*n == PARTS_MAX || !has_row(c, from)) {
			*n = 0;
			return ST_OK;
		}
		TRY(longest(b, c, from, p));
		const float *v = c->v + from * row;
		if (p->count * row < FEW || !varies(v, p->count * row)) {
			*n = 0;
			return ST_OK;
		}
		from += p->count;
		++*n;
	}
	return ST_OK;
}

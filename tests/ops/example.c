/* The mini language of struct op_example (graph/op.h). */
#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ops/ops_test.h"

void case_error(struct test_case *c, const char *fmt, ...)
{
	if (*c->error)
		return;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(c->error, sizeof c->error, fmt, ap);
	va_end(ap);
}

/* splitmix64: https://prng.di.unimi.it/splitmix64.c */
double case_draw(uint64_t key, uint64_t i)
{
	uint64_t z = key * 0x9e3779b97f4a7c15u + (i + 1) * 0xd1342543de82ef95u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (double)((z ^ (z >> 31)) >> 40) / (double)(1 << 24);
}

double *case_doubles(struct arena *a, int dtype, const void *data, int64_t n)
{
	double *v = ARENA_ARRAY(a, double, n);
	for (int64_t i = 0; v && i < n; i++)
		v[i] = dtype == STINT_F32   ? (double)((const float *)data)[i]
		       : dtype == STINT_F64 ? ((const double *)data)[i]
		       : dtype == STINT_I64 ? (double)((const int64_t *)data)[i]
					    : ((const unsigned char *)data)[i];
	return v;
}

/* --- Letters for sizes --- */

/* Where a letter stands as a size: by itself, perhaps after a factor, between separators. */
static bool is_size(const char *text, const char *p)
{
	if (!((*p >= 'a' && *p <= 'h') || (*p >= 'A' && *p <= 'H')) || !strchr(",:]> ", p[1]))
		return false;
	while (p > text && isdigit((unsigned char)p[-1]))
		p--;
	return p == text || strchr(",[<= ", p[-1]) != NULL;
}

static bool has_sizes(const char *text)
{
	for (const char *p = text; p && *p; p++)
		if (is_size(text, p))
			return true;
	return false;
}

int example_draws(const struct op_example *ex)
{
	const char *asked = getenv("STINT_TEST_DRAWS");
	const int draws = asked ? atoi(asked) : 3;
	return has_sizes(ex->in) || has_sizes(ex->attr) ? draws : 1;
}

static int64_t size_of(char letter, int draw)
{
	bool large = isupper((unsigned char)letter);
	double u = case_draw((uint64_t)letter, (uint64_t)draw);
	return large ? 5 + (int64_t)(5 * u) : 2 + (int64_t)(5 * u);
}

/* The text with every letter replaced by its size in this draw. */
static char *with_sizes(struct test_case *c, const char *text)
{
	struct text out = {0};
	for (const char *p = text; *p; p++) {
		if (is_size(text, p)) {
			int digits = 0;
			while (digits < (int)out.len &&
				isdigit((unsigned char)out.s[out.len - 1 - (size_t)digits]))
				digits++;
			int64_t factor = digits ? strtoll(out.s + out.len - digits, NULL, 10) : 1;
			out.len -= (size_t)digits;
			text_add(&out, "%lld", (long long)(factor * size_of(*p, c->draw)));
		} else {
			text_add(&out, "%c", *p);
		}
	}
	char *s = out.failed ? NULL : arena_strdup(c->arena, out.s ? out.s : "");
	text_free(&out);
	return s;
}

/* --- Inputs and attributes --- */

/* "2,3,8" into dim; where it ends. */
static const char *read_dims(struct example_input *v, const char *s)
{
	if (!strncmp(s, "()", 2))
		return s + 2;
	while (isdigit((unsigned char)*s) && v->rank < RANK_MAX) {
		char *end;
		v->dim[v->rank++] = strtoll(s, &end, 10);
		s = *end == ',' ? end + 1 : end;
	}
	return s;
}

static bool room(struct test_case *c, struct example_input *v)
{
	v->numel = 1;
	for (int i = 0; i < v->rank; i++)
		v->numel *= v->dim[i];
	v->v = ARENA_ARRAY(c->arena, double, v->numel);
	return v->v != NULL;
}

/* "[1,-1]", "3", "f0.5" or "f[1,0.5]" */
static bool read_known(struct test_case *c, struct example_input *v, const char *s)
{
	v->kind = VALUE_KNOWN;
	v->integer = *s != 'f';
	s += !v->integer;
	if (*s != '[') {
		if (!room(c, v))
			return false;
		v->v[0] = strtod(s, NULL);
		return true;
	}
	v->rank = 1;
	for (const char *p = s; *p; p++)
		v->dim[0] += *p == ',' || (*p == ']' && p > s + 1);
	if (!room(c, v))
		return false;
	char *p = (char *)(uintptr_t)s;
	for (int64_t i = 0; i < v->numel; i++)
		v->v[i] = strtod(p + 1, &p);
	return true;
}

static bool read_drawn(struct test_case *c, int k, const char *s)
{
	struct example_input *v = &c->in[k];
	const struct op_example *ex = c->example;
	double low = ex->low, high = ex->high;
	if (low == 0 && high == 0) {
		low = -1;
		high = 1;
	}
	const char *type = read_dims(v, s);
	bool whole = !strcmp(type, ":whole");
	v->kind = VALUE_REAL;
	if (!strncmp(type, ":i64<", 5)) {
		v->kind = VALUE_INT;
		low = 0;
		high = strtod(type + 5, NULL);
	} else if (!strcmp(type, ":bool")) {
		v->kind = VALUE_BOOL;
		low = 0;
		high = 2;
	} else if (!strcmp(type, ":data")) {
		v->data = true;
	} else if (*type && !whole) {
		return false;
	}
	if (!room(c, v))
		return false;
	for (int64_t i = 0; i < v->numel; i++) {
		double x = low +
			   (high - low) * case_draw((uint64_t)(k + 1 + 100 * c->draw), (uint64_t)i);
		v->v[i] = whole                   ? floor(x)
			  : v->kind == VALUE_REAL ? (double)(float)x
						  : (double)(int64_t)x;
	}
	return true;
}

static bool read_inputs(struct test_case *c)
{
	char *text = arena_strdup(c->arena, c->in_text), *rest = text;
	for (char *s; text && (s = strtok_r(rest, " ", &rest));) {
		if (c->nin == CASE_INPUTS)
			return false;
		int k = c->nin++;
		bool ok = *s == '-' && !s[1] ? true
			  : *s == '='        ? read_known(c, &c->in[k], s + 1)
					     : read_drawn(c, k, s);
		if (!ok)
			return false;
	}
	return text != NULL;
}

static bool read_list(struct test_case *c, struct attr *a, char *s)
{
	bool real = strchr(s, '.') != NULL;
	int n = 1;
	for (char *p = s; *p; p++)
		n += *p == ',';
	int64_t *ints = ARENA_ARRAY(c->arena, int64_t, n);
	double *floats = ARENA_ARRAY(c->arena, double, n);
	if (!ints || !floats)
		return false;
	for (int i = 0; i < n; i++) {
		floats[i] = strtod(s, NULL);
		ints[i] = strtoll(s, &s, 10);
		s += strcspn(s, ",");
		s += *s == ',';
	}
	a->n = n;
	a->ints = real ? NULL : ints;
	a->floats = real ? floats : NULL;
	a->i = ints[0];
	a->f = floats[0];
	a->kind = n > 1 ? (real ? ATTR_FLOATS : ATTR_INTS) : (real ? ATTR_FLOAT : ATTR_INT);
	return true;
}

static bool read_attrs(struct test_case *c)
{
	char *text = arena_strdup(c->arena, c->attr_text), *rest = text;
	for (char *s; text && (s = strtok_r(rest, " ", &rest));) {
		char *value = strchr(s, '=');
		if (!value || c->nattr == CASE_ATTRS)
			return false;
		*value++ = 0;
		struct attr *a = &c->attr[c->nattr++];
		a->name = s;
		const char *digit = *value == '-' || *value == '.' ? value + 1 : value;
		if (!isdigit((unsigned char)*digit)) {
			a->kind = ATTR_STRING;
			a->s = value;
		} else if (!read_list(c, a, value)) {
			return false;
		}
	}
	return text != NULL;
}

bool case_parse(struct test_case *c)
{
	const struct op_example *ex = c->example;
	c->arena = arena_new();
	c->in_text = c->arena ? with_sizes(c, ex->in) : NULL;
	c->attr_text = c->arena ? with_sizes(c, ex->attr ? ex->attr : "") : NULL;
	bool ok = c->in_text && c->attr_text && read_inputs(c) && read_attrs(c);
	char opset[24] = "";
	if (c->op->until)
		snprintf(opset, sizeof opset, ", opset %d", c->op->until - 1);
	snprintf(c->name, sizeof c->name, "%s%s (%s)%s%s", c->op->name, opset,
		ok ? c->in_text : ex->in, ex->attr ? " " : "", ok ? c->attr_text : "");
	if (!ok)
		case_error(c, "the example cannot be read");
	return ok;
}

void case_free(struct test_case *c)
{
	for (int v = 0; v < VAR_COUNT; v++) {
		stint_free(c->variant[v].step);
		if (c->variant[v].object)
			dlclose(c->variant[v].object);
	}
	arena_free(c->arena);
}

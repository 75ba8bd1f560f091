/* A step's times, kernel by kernel. */
#include <stdlib.h>
#include <string.h>

#include "base/safe.h"
#include "cli/bench.h"

static int slowest_first(const void *x, const void *y)
{
	const struct bench_kernel *a = x, *b = y;
	return a->us != b->us ? (a->us < b->us) - (a->us > b->us) : strcmp(a->name, b->name);
}

static void add(struct bench_kernel *sum, const struct bench_kernel *k)
{
	sum->calls += k->calls;
	sum->again += k->again;
	sum->us += k->us;
	sum->again_us += k->again_us;
	sum->alone_us += k->alone_us;
	sum->predicted_us += k->predicted_us;
	sum->flops += k->flops;
	sum->bytes += k->bytes;
	sum->roof_us += k->roof_us;
}

enum status bench_wanted(struct bench *b, bool **wanted, struct diag *d)
{
	*wanted = ARENA_ARRAY(b->arena, bool, b->t.nop);
	if (!*wanted)
		return diag_nomem(d);
	for (int i = 0; i < b->t.nop; i++) {
		(*wanted)[i] = true;
		for (int k = 0; k < i && (*wanted)[i]; k++)
			(*wanted)[i] = b->t.info[k].kernel != b->t.info[i].kernel;
	}
	return ST_OK;
}

static struct bench_kernel one_call(const struct timing *t, int i)
{
	const struct stint_step_info *x = &t->info[i];
	struct bench_kernel k = {.name = *x->kernel,
		.op = x->op,
		.key = timing_key(t, i),
		.calls = 1,
		.again = x->run > 0,
		.phase = (int)x->phase,
		.us = t->op_us[i],
		.again_us = x->run > 0 ? t->op_us[i] : 0,
		.flops = x->flops,
		.bytes = x->bytes};
	k.predicted_us = t->plan ? timing_predicted(t, i) : 0;
	return k;
}

enum status bench_kernels(struct bench *b, struct diag *d)
{
	const struct timing *t = &b->t;
	struct bench_kernel *k = ARENA_ARRAY(b->arena, struct bench_kernel, t->nop);
	double *alone = ARENA_ARRAY(b->arena, double, t->nop);
	if (!k || !alone)
		return diag_nomem(d);
	int n = 0;
	for (int s = 0; s < t->nop; s++) {
		const struct bench_kernel call = one_call(t, s);
		int i = 0;
		while (i < n && strcmp(k[i].name, call.name) != 0)
			i++;
		if (i == n) {
			k[n] = call;
			alone[n++] = t->alone_us && t->alone_us[s] >= 0 ? t->alone_us[s] : 0;
		} else {
			add(&k[i], &call);
		}
	}
	for (int i = 0; i < n; i++)
		k[i].alone_us = alone[i] * k[i].calls;
	qsort(k, (size_t)n, sizeof *k, slowest_first);
	b->kernel = k;
	b->nkernel = n;
	b->all = (struct bench_kernel){.name = "all", .op = "all"};
	for (int i = 0; i < n; i++)
		add(&b->all, &k[i]);
	return ST_OK;
}

void bench_roof(struct bench *b)
{
	b->all.roof_us = 0;
	for (int i = 0; i < b->nkernel; i++) {
		struct bench_kernel *k = &b->kernel[i];
		k->roof_us = k->calls * roof_us(&b->roof, k->flops / k->calls, k->bytes / k->calls);
		b->all.roof_us += k->roof_us;
	}
}

/* --- In few words --- */

/* The next of "f32[1,3], f32[] -> f32[2]": its dimensions as "1x3" into shape; how many. */
static int next_shape(const char **at, char *shape, size_t room)
{
	const char *p = strchr(*at, '[');
	int rank = 0;
	size_t n = 0;
	if (!p)
		return -1;
	for (p++; *p && *p != ']'; p++) {
		if (n + 1 < room)
			shape[n++] = *p == ',' ? 'x' : *p;
		rank += *p == ',' || rank == 0;
	}
	shape[n] = 0;
	*at = *p ? p + 1 : p;
	return rank;
}

/* Adds `before` and the shapes between `from` and `to`: those of two axes and more, or the first;
 * none twice in a row, none that is `last` already. */
static void add_shapes(
	struct text *t, const char *before, const char *from, const char *to, char last[static 64])
{
	char shape[64], first[64] = "";
	bool any = false;
	for (int rank; (rank = next_shape(&from, shape, sizeof shape)) >= 0 && from <= to;) {
		if (!*first)
			memcpy(first, shape, sizeof first);
		any |= rank >= 2;
		if (rank < 2 || !strcmp(shape, last))
			continue;
		text_add(t, "%s %s", before, shape);
		before = "";
		memcpy(last, shape, sizeof shape);
	}
	if (!any && *first && strcmp(first, last) != 0) {
		text_add(t, "%s %s", before, first);
		memcpy(last, first, sizeof first);
	}
}

static void say(struct text *t, const struct bench_kernel *k)
{
	const char *op = strncmp(k->op, "stint.", 6) == 0 ? k->op + 6 : k->op;
	char last[64] = "", shape[64];
	const char *in = k->key ? strchr(k->key, '(') : NULL;
	const char *out = in ? strstr(in, ") -> ") : NULL;
	if (!out) {
		text_puts(t, k->name);
		return;
	}
	text_write(t, k->name, strcspn(k->name, "_"));
	text_add(t, " %s", op);
	add_shapes(t, "", in, out, last);
	const char *end = out;
	if (next_shape(&end, shape, sizeof shape) >= 0) /* the first output's */
		add_shapes(t, " ->", out, end, last);
}

const char *bench_words(struct arena *a, const struct bench_kernel *k)
{
	struct text t = {0};
	say(&t, k);
	const char *s = t.failed ? NULL : arena_strdup(a, t.s);
	text_free(&t);
	return s ? s : k->name;
}

const char *bench_brief(const struct bench_kernel *k, int width, char buf[static 128])
{
	struct text t = {0};
	char shown[SAFE_MAX];
	int columns = 0, wide;
	size_t len = 0;
	say(&t, k);
	for (const char *s = t.failed ? k->name : t.s; *s;) {
		s += safe_char(s, shown, &wide);
		bool fits = columns + wide <= width - (*s ? 2 : 0) && len + SAFE_MAX + 4 < 128;
		const char *more = fits ? shown : "..";
		memcpy(buf + len, more, strlen(more));
		len += strlen(more);
		columns += fits ? wide : 2;
		if (!fits)
			break;
	}
	for (; columns < width && len < 127; columns++)
		buf[len++] = ' ';
	buf[len] = 0;
	text_free(&t);
	return buf;
}

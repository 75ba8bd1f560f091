/* What operators' hooks write C text with. */
#include "codegen/emit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/parts.h"

void emit(struct emit *e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	text_vadd(&e->out, fmt, ap);
	va_end(ap);
}

/* --- What the node's function takes, and which of its numbers kernels may differ in --- */

static void use_input(struct emit *e, int k)
{
	e->uses->told = e->uses->x[k] = true;
}

void use_output(struct emit *e, int k)
{
	e->uses->told = e->uses->y[k] = true;
}

void use_scratch(struct emit *e)
{
	e->uses->told = e->uses->ws = true;
}

static struct number *new_number(struct emit *e)
{
	struct body_uses *u = e->uses;
	if (u->nnumber == u->cap) {
		const int cap = u->cap ? 2 * u->cap : 16;
		struct number *grown = ARENA_ARRAY(e->g->arena, struct number, cap);
		if (!grown) {
			e->out.failed = true;
			return NULL;
		}
		if (u->nnumber)
			memcpy(grown, u->number, (size_t)u->nnumber * sizeof *grown);
		u->number = grown, u->cap = cap;
	}
	return &u->number[u->nnumber++];
}

void note_number(struct emit *e, size_t at, char kind)
{
	struct number *x = e->uses ? new_number(e) : NULL;
	if (x)
		*x = (struct number){.at = at, .len = e->out.len - at, .kind = kind};
}

void emit_size(struct emit *e, int64_t v)
{
	const size_t at = e->out.len;
	emit(e, "%" PRId64, v);
	note_number(e, at, 'i');
}

void emit_number(struct emit *e, double v)
{
	char buf[40];
	const size_t at = e->out.len;
	emit(e, "%s", emit_real(e, v, buf));
	if (isfinite(v) && strpbrk(buf, "0123456789"))
		note_number(e, at, e->g->real == DT_F32 ? 'f' : 'd');
}

/* The output whose bytes input k has in this run; -1: none. */
static int emit_place_of(const struct emit *e, int k)
{
	return e->place_of ? e->place_of[k] : -1;
}

void emit_input(struct emit *e, int k)
{
	const int o = emit_place_of(e, k);
	emit(e, "%c%d", o < 0 ? 'x' : 'y', o < 0 ? k : o);
	if (o < 0)
		use_input(e, k);
	else
		use_output(e, o);
}

/* --- What stands beside it --- */

static void types_of(int n, const struct tensor *const *t, const char **type)
{
	for (int i = 0; i < n; i++)
		type[i] = emit_type(t[i]);
}

const char *emit_source(struct emit *e, const char *file, int n, const struct tensor *const *t)
{
	const char *type[SOURCE_TYPES];
	if (!e->helpers)
		return "";
	types_of(n, t, type);
	e->out.failed |= !sources_add(&e->helpers->sources, file, n, type);
	struct text suffix = {0};
	print_types_suffix(n, type, &suffix);
	const char *s = emit_text(e, "%s", suffix.s ? suffix.s : "");
	e->out.failed |= suffix.failed;
	text_free(&suffix);
	return s;
}

void emit_helper(struct emit *e, const char *name, const char *text)
{
	struct emit_helpers *h = e->helpers;
	if (strstr(text, "vector_size")) /* vectors as C's compilers have them */
		emit_c_only(e);
	if (!h)
		return;
	struct helper **end = &h->first;
	for (; *end; end = &(*end)->next)
		if (!strcmp((*end)->name, name))
			return;
	struct helper *x = ARENA_NEW(h->arena, struct helper);
	if (x) {
		x->name = arena_strdup(h->arena, name);
		x->text = arena_strdup(h->arena, text);
	}
	if (x && x->name && x->text)
		*end = x;
	else
		e->out.failed = true;
}

void emit_given(struct emit *e, const struct node *n, const char *body)
{
	char word[16];
	for (int k = 0; k < n->nout; k++) {
		snprintf(word, sizeof word, "y%d", k);
		if (text_mentions(body, word))
			use_output(e, k);
	}
	for (int k = 0; k < n->nin; k++) {
		snprintf(word, sizeof word, "x%d", k);
		if (!n->in[k] || !text_mentions(body, word))
			continue;
		const int o = emit_place_of(e, k);
		if (o < 0) {
			use_input(e, k);
			continue;
		}
		use_output(e, o);
		emit(e, "\tconst %s *x%d = y%d;\n", emit_type(n->in[k]), k, o);
	}
	if (text_mentions(body, "ws"))
		use_scratch(e);
	e->uses->told = true;
	e->uses->threads |= text_mentions(body, "PARALLEL_FOR");
	emit(e, "%s%s", body, body[strlen(body) - 1] == '\n' ? "" : "\n");
	if (e->g->target->cuda)
		e->stage[e->nstage++] = (struct launch_shape){.blocks = 1, .threads = 1};
}

/* Below this much work, waking the other threads costs more than they save. Part of what makes
 * results repeat: never measured. */
static const double PARALLEL_WORK = 32768;

bool emit_is_shared(const struct emit *e, double work)
{
	return work >= PARALLEL_WORK && e->g->target->threads > 1 && !e->g->target->cuda;
}

void emit_c_only(struct emit *e)
{
	e->c_only = true;
}

void emit_parallel(struct emit *e, double work, int levels)
{
	if (emit_is_shared(e, work))
		emit(e, "\tPARALLEL_FOR(%d)\n", levels < 1 ? 1 : levels);
}

/* --- How a kernel is launched --- */

enum { MOST_BLOCKS = 1 << 16 };

int launch_blocks(int64_t blocks)
{
	return blocks < 1 ? 1 : blocks < MOST_BLOCKS ? (int)blocks : MOST_BLOCKS;
}

struct launch_shape launch_of_turns(int64_t turns, bool own_scratch, int threads)
{
	if (own_scratch)
		return (struct launch_shape){
			.blocks = 1, .threads = threads < BLOCK_THREADS ? threads : BLOCK_THREADS};
	return (struct launch_shape){
		.blocks = launch_blocks((turns + BLOCK_THREADS - 1) / BLOCK_THREADS),
		.threads = BLOCK_THREADS,
		.spread = turns};
}

/* --- Numbers and types --- */

const char *emit_real(const struct emit *e, double v, char buf[static LITERAL_TEXT])
{
	const bool is_float = e->g->real == DT_F32;
	literal_text(is_float ? (double)(float)v : v, is_float, buf);
	if (is_float && strpbrk(buf, "0123456789"))
		snprintf(buf + strlen(buf), LITERAL_TEXT - strlen(buf), "f");
	return buf;
}

const char *emit_type(const struct tensor *t)
{
	return t->dtype == DT_I64    ? "int64_t"
	       : t->dtype == DT_BOOL ? "unsigned char"
	       : t->dtype == DT_U8   ? "unsigned char"
	       : t->dtype == DT_BF16 ? "bf16"
	       : t->dtype == DT_F16  ? "fp16"
	       : t->dtype == DT_I8   ? "int8_t"
				     : "real";
}

const char *emit_value_type(const struct tensor *t)
{
	return dtype_is_narrow(t->dtype) ? "real" : emit_type(t);
}

const char *emit_text(struct emit *e, const char *fmt, ...)
{
	struct text t = {0};
	va_list ap;
	va_start(ap, fmt);
	text_vadd(&t, fmt, ap);
	va_end(ap);
	const char *s = t.failed ? NULL : arena_strdup(e->g->arena, t.s ? t.s : "");
	text_free(&t);
	e->out.failed |= !s;
	return s ? s : "";
}

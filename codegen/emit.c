/* What operators' hooks write C text with. */
#include "codegen/emit.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/call.h"
#include "codegen/parts.h"

void emit(struct emit *e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	text_vadd(&e->out, fmt, ap);
	va_end(ap);
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

void emit_packs(struct emit *e)
{
	emit_source(e, "elements.cuh", 0, NULL);
}

/* A line of text: where it lies, the tabs it begins with, its last character. */
struct line {
	size_t start, end;
	int tabs;
	char last;
};

/* Where the text of a line ends that a comment follows. */
static size_t before_comment(const char *s, size_t start, size_t end)
{
	if (end < start + 4 || strncmp(s + end - 2, "*/", 2) != 0)
		return end;
	for (size_t i = end - 3; i > start; i--)
		if (!strncmp(s + i - 1, "/*", 2)) {
			for (i--; i > start && s[i - 1] == ' ';)
				i--;
			return i;
		}
	return end;
}

/* The line that ends before `end`; one of no length where there is none. */
static struct line line_before(const struct text *t, size_t end)
{
	while (end > 0 && t->s[end - 1] == '\n')
		end--;
	struct line l = {end, end, 0, '\n'};
	while (l.start > 0 && t->s[l.start - 1] != '\n')
		l.start--;
	while (l.start + (size_t)l.tabs < end && t->s[l.start + (size_t)l.tabs] == '\t')
		l.tabs++;
	end = before_comment(t->s, l.start, end);
	if (end > l.start) /* a line that is all comment ends nothing that is still open */
		l.last = end > l.start + (size_t)l.tabs ? t->s[end - 1] : ';';
	return l;
}

static bool ends_statement(char last)
{
	return last == ';' || last == '}' || last == '{';
}

/* The tabs that the next line should begin with: one more than the last line's where that opens a
 * brace or a loop; else those of the statement that the last line ends, which may begin with the
 * heads of loops without braces. */
static int indent_here(const struct text *t)
{
	struct line l = line_before(t, t->len);
	int tabs = l.tabs;
	if (l.end == l.start)
		return 1;
	if (l.last == '{' || !ends_statement(l.last))
		return tabs + 1;
	for (l = line_before(t, l.start); l.end > l.start; l = line_before(t, l.start)) {
		if (l.tabs > tabs || (l.tabs == tabs && l.last != ';' && l.last != '}'))
			continue;
		if (l.tabs == tabs || ends_statement(l.last))
			break;
		tabs = l.tabs;
	}
	return tabs > 0 ? tabs : 1;
}

/* Below this much work, waking the other threads costs more than they save. Part of what makes
 * results repeat: never measured. */
static const double PARALLEL_WORK = 32768;

bool emit_is_shared(const struct emit *e, double work)
{
	return work >= PARALLEL_WORK && e->g->target->threads > 1 && !e->g->target->cuda;
}

static void emit_line(struct emit *e, const char *line)
{
	for (int i = indent_here(&e->out); i > 0; i--)
		text_puts(&e->out, "\t");
	emit(e, "%s\n", line);
}

void emit_c_only(struct emit *e)
{
	e->c_only = true;
}

void emit_parallel(struct emit *e, double work, int collapse)
{
	char line[40];
	snprintf(line, sizeof line, "PARALLEL_FOR(%d)", collapse < 1 ? 1 : collapse);
	if (emit_is_shared(e, work))
		emit_line(e, line);
}

void emit_tabs(struct emit *e, int tabs)
{
	while (tabs-- > 0)
		text_puts(&e->out, "\t");
}

static void emit_head(struct emit *e, int tabs, const struct emit_loop *loop)
{
	const char *i = loop->variable;
	emit_tabs(e, tabs);
	emit(e, "for (int64_t %s = 0; %s < %" PRId64 "; ", i, i, loop->end);
	if (loop->step > 1)
		emit(e, "%s += %" PRId64 ")", i, loop->step);
	else
		emit(e, "%s++)", i);
}

static int64_t turns_of(const struct emit_loop *loop)
{
	return (loop->end + loop->step - 1) / loop->step;
}

/* Where the variable of a loop is at turn number `turn` of `turns`: "turn / 12 % 8 * 4". Where 32
 * bits hold what they come to, a division of them is several times as fast. */
static void emit_turn(
	struct emit *e, const struct emit_loop *loop, int64_t turns, int64_t inner, bool outermost)
{
	const bool short_enough = turns <= INT32_MAX && loop->end <= INT32_MAX;
	emit(e, short_enough && (inner > 1 || !outermost) ? "(uint32_t)turn" : "turn");
	if (inner > 1)
		emit(e, " / %" PRId64, inner);
	if (!outermost)
		emit(e, " %% %" PRId64, turns_of(loop));
	if (loop->step > 1)
		emit(e, " * %" PRId64, loop->step);
}

/* "for (int64_t turn = THREAD, b; turn < 96 && (b = (uint32_t)turn / 12, true); turn += THREADS)",
 * and "ONCE(i, (uint32_t)turn % 12)" inside: as many heads as there are loops. Between two such
 * nests a block's threads wait for each other. */
static void emit_shared_heads(struct emit *e, int tabs, int n, const struct emit_loop *loop)
{
	int64_t turns = 1, inner;
	for (int k = 0; k < n; k++)
		turns *= turns_of(&loop[k]);
	if (e->nloop++ > 0)
		emit_line(e, "__syncthreads();");
	e->turns = turns > e->turns ? turns : e->turns;
	emit_tabs(e, tabs);
	const char *i = loop->variable;
	if (n == 1 && loop->step == 1) {
		emit(e, "for (int64_t %s = THREAD; %s < %" PRId64 "; %s += THREADS)", i, i, turns,
			i);
		return;
	}
	inner = turns_of(loop) ? turns / turns_of(loop) : 1;
	emit(e, "for (int64_t turn = THREAD, %s; turn < %" PRId64 " && (%s = ", i, turns, i);
	emit_turn(e, loop, turns, inner, true);
	emit(e, ", true); turn += THREADS)");
	for (int k = 1; k < n; k++) {
		text_puts(&e->out, "\n");
		emit_tabs(e, tabs + k);
		emit(e, "ONCE(%s, ", loop[k].variable);
		inner = turns_of(&loop[k]) ? inner / turns_of(&loop[k]) : 1;
		emit_turn(e, &loop[k], turns, inner, false);
		emit(e, ")");
	}
}

void emit_loops(struct emit *e, double work, int n, const struct emit_loop *loop)
{
	const int tabs = indent_here(&e->out);
	if (n > 0 && tabs == 1 && e->g->target->cuda) {
		emit_shared_heads(e, tabs, n, loop);
		return;
	}
	if (n > 0)
		emit_parallel(e, work, n);
	for (int k = 0; k < n; k++) {
		emit_head(e, tabs + k, &loop[k]);
		if (k + 1 < n)
			text_puts(&e->out, "\n");
	}
}

void emit_launch(struct emit *e, int64_t tasks, int threads)
{
	assert(threads > 0 && threads % 32 == 0 && threads <= 256);
	e->tasks = tasks > 1 ? tasks : 1;
	e->task_threads = threads;
}

/* The count stands in the text, as what no number of another size replaces (sizes.c). */
void emit_repeat(struct emit *e, int64_t turns)
{
	assert(e->g->target->cuda && turns > 0);
	e->launch_turns = turns;
	emit(e, "\tenum : int64_t { TURNS = %" PRId64 " };\n", turns);
}

void emit_stage(struct emit *e)
{
	assert(e->g->target->cuda && e->nstage + 1 < STAGES_MAX);
	cuda_end_stage(e);
	e->stage_from = e->out.len;
}

/* The fewest digits that read back as v. */
static void shortest(bool is_float, double v, char *buf, size_t size)
{
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(buf, size, "%.*g", digits, v);
		if (is_float ? strtof(buf, NULL) == (float)v : strtod(buf, NULL) == v)
			break;
	}
	for (char *p = buf; *p; p++)
		if (*p == ',') /* a caller's locale must not reach the text */
			*p = '.';
	if (!strpbrk(buf, ".e"))
		snprintf(buf + strlen(buf), size - strlen(buf), ".0");
}

const char *emit_real(const struct emit *e, double v, char buf[static 40])
{
	bool is_float = e->g->real == DT_F32;
	if (is_float)
		v = (double)(float)v;
	if (isnan(v))
		return strcpy(buf, "NAN");
	if (isinf(v))
		return strcpy(buf, v < 0 ? "-INFINITY" : "INFINITY");
	shortest(is_float, v, buf, 40);
	if (is_float)
		snprintf(buf + strlen(buf), 40 - strlen(buf), "f");
	return buf;
}

const char *emit_type(const struct tensor *t)
{
	return t->dtype == DT_I64    ? "int64_t"
	       : t->dtype == DT_BOOL ? "unsigned char"
	       : t->dtype == DT_BF16 ? "bf16"
	       : t->dtype == DT_F16  ? "fp16"
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

const char *emit_value(struct emit *e, const struct tensor *t, const char *element)
{
	return dtype_is_narrow(t->dtype) ? emit_text(e, "WIDE(%s)", element) : element;
}

const char *emit_stored(struct emit *e, const struct tensor *t, const char *value)
{
	return dtype_is_narrow(t->dtype) ? emit_text(e, "NARROW(%s)", value) : value;
}

/* Where every byte lies: a drawing for people, and the offsets' names for the steps. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/parts.h"

enum { COLUMNS = 56, ROWS = 24 };

static int column(const struct schedule *s, int step)
{
	int n = s->plan->nstep;
	return n <= COLUMNS ? step : (int)((int64_t)step * COLUMNS / n);
}

static int width(const struct schedule *s)
{
	return s->plan->nstep < COLUMNS ? s->plan->nstep : COLUMNS;
}

static bool is_resident(const struct schedule *s, int b)
{
	return s->place[b].name[0] == 'R';
}

/* --- Which buffers are drawn --- */

struct row {
	const struct plan_buffer *buffer;
	int index;
};

static int larger_first(const void *x, const void *y)
{
	const struct row *a = x, *b = y;
	if (a->buffer->bytes != b->buffer->bytes)
		return a->buffer->bytes > b->buffer->bytes ? -1 : 1;
	return a->index - b->index;
}

static int by_address(const void *x, const void *y)
{
	const struct row *a = x, *b = y;
	if (a->buffer->offset != b->buffer->offset)
		return a->buffer->offset < b->buffer->offset ? -1 : 1;
	if (a->buffer->first_step != b->buffer->first_step)
		return a->buffer->first_step - b->buffer->first_step;
	return a->index - b->index;
}

/* The ROWS largest that are not residents, by address. */
static int choose_rows(const struct schedule *s, struct row *row)
{
	int n = 0;
	for (int b = 0; b < s->plan->nbuffer; b++)
		if (!is_resident(s, b) && s->plan->buffer[b].bytes > 0)
			row[n++] = (struct row){&s->plan->buffer[b], b};
	qsort(row, (size_t)n, sizeof *row, larger_first);
	if (n > ROWS)
		n = ROWS;
	qsort(row, (size_t)n, sizeof *row, by_address);
	return n;
}

/* --- Drawing --- */

static const char *role_text(enum tensor_role r)
{
	static const char *const text[] = {[TR_VALUE] = "values",
		[TR_INPUT] = "inputs",
		[TR_PARAMETER] = "parameters",
		[TR_BUFFER] = "running statistics",
		[TR_STATE] = "optimizer state",
		[TR_SUMS] = "sums of gradients",
		[TR_ELSEWHERE] = "of another length",
		[TR_CONSTANT] = "constants",
		[TR_CONTROL] = "control"};
	return text[r];
}

static void draw(const struct schedule *s, int64_t offset, int64_t bytes, int first, int last,
	char mark, struct text *t)
{
	char line[COLUMNS + 1], human[24];
	int from = column(s, first), to = column(s, last);
	for (int i = 0; i < width(s); i++)
		line[i] = i < from || i > to ? '.' : mark;
	line[width(s)] = 0;
	text_add(t, " * %12" PRId64 " %10s  %s  ", offset, bytes_human(bytes, human), line);
}

/* One row for each run of neighbours of the same role. */
static void draw_residents(const struct schedule *s, struct text *t)
{
	for (int i = 0; i < s->nresident;) {
		enum tensor_role role = s->gp->tensor[i]->role;
		int64_t bytes = 0;
		int from = i;
		for (; i < s->nresident && s->gp->tensor[i]->role == role; i++)
			bytes += s->plan->buffer[s->head[i]].bytes;
		if (bytes == 0 && s->file_bytes > 0) /* all of them are in the file */
			continue;
		draw(s, s->plan->buffer[s->head[from]].offset, bytes, 0, s->plan->nstep - 1, '#',
			t);
		text_puts(t, s->place[s->head[from]].name);
		if (i - from > 1)
			text_add(t, " to %s", s->place[s->head[i - 1]].name);
		text_add(t, "  %s\n", role_text(role));
	}
}

/* Bytes that in-place pairs of a step would count twice. */
static int64_t paired_bytes(const struct schedule *s, int step)
{
	int64_t sum = 0;
	const struct plan *p = s->plan;
	const struct call *c = &s->call[step];
	for (int k = 0; k < c->node.nout; k++)
		for (int i = 0; i < c->node.nin && c->out[k] >= 0; i++) {
			const struct plan_buffer *y = &p->buffer[c->out[k]];
			if (c->in[i] < 0 || p->buffer[c->in[i]].offset != y->offset || !y->bytes)
				continue;
			sum += y->bytes;
			break;
		}
	return sum;
}

/* The first step at which most bytes are live; -1 when memory runs out. */
static int peak_step(const struct schedule *s)
{
	const struct plan *p = s->plan;
	int peak = 0;
	int64_t most = -1, live = 0;
	int64_t *change = calloc((size_t)p->nstep + 1, sizeof *change); /* from step to step */
	if (!change)
		return -1;
	for (int b = 0; b < p->nbuffer; b++) {
		change[p->buffer[b].first_step] += p->buffer[b].bytes;
		change[p->buffer[b].last_step + 1] -= p->buffer[b].bytes;
	}
	for (int step = 0; step < p->nstep; step++) {
		live += change[step];
		if (live - paired_bytes(s, step) > most)
			most = live - paired_bytes(s, step), peak = step;
	}
	free(change);
	return peak;
}

static void draw_foot(const struct schedule *s, struct text *t)
{
	int peak = peak_step(s);
	char human[24];
	if (peak < 0) {
		t->failed = true;
		return;
	}
	text_add(t, " * %12" PRId64 " %10s  %*s^ peak: step %d, %s", s->plan->arena_bytes, "end",
		column(s, peak), "", peak + 1, bytes_human(s->plan->peak_bytes, human));
	text_puts(t, " live\n */\n");
}

void print_arena_map(const struct schedule *s, struct text *t)
{
	const struct plan *p = s->plan;
	char human[24];
	text_add(t, "\n/* The arena in %s: %s, its addresses down, steps 1 to %d across.\n *\n",
		s->title, bytes_human(p->arena_bytes, human), p->nstep);
	if (p->nstep == 0) {
		text_puts(t, " * There is nothing to do.\n */\n");
		return;
	}
	text_add(t, " * %12s %10s  %-*s  # over all steps, = a tensor, w a workspace\n", "offset",
		"size", width(s), "");
	draw_residents(s, t);
	struct row *row = calloc((size_t)p->nbuffer + 1, sizeof *row);
	if (!row) {
		t->failed = true;
		return;
	}
	int n = choose_rows(s, row), all = 0;
	for (int i = 0; i < n; i++) {
		const struct plan_buffer *b = row[i].buffer;
		draw(s, b->offset, b->bytes, b->first_step, b->last_step, b->tensor < 0 ? 'w' : '=',
			t);
		text_puts(t, s->place[row[i].index].name);
		text_puts(t, "\n");
	}
	free(row);
	for (int b = 0; b < p->nbuffer; b++)
		all += !is_resident(s, b) && p->buffer[b].bytes > 0;
	if (all > n)
		text_add(t, " * %12s %10s  and %d smaller ones\n", "", "", all - n);
	draw_foot(s, t);
}

/* --- Offsets --- */

void print_places(const struct schedule *s, bool residents, struct text *t)
{
	char human[24];
	for (int b = 0; b < s->plan->nbuffer; b++) {
		const struct plan_buffer *x = &s->plan->buffer[b];
		if (!s->place[b].define || is_resident(s, b) != residents)
			continue;
		if (residents && resident_in_value(s, x->tensor)) {
			text_add(t, "#define %-8s STINT_VALUE + %d /* ", s->place[b].name,
				value_number(s, x->tensor));
			text_comment(t, s->gp->problem->tensor[x->tensor].name);
			text_puts(t, " */\n");
			continue;
		}
		const bool file = residents && s->file[x->tensor] >= 0;
		text_add(t, "#define %-8s %10" PRId64 " /* %9s%s", s->place[b].name,
			file ? s->file[x->tensor] : x->offset,
			bytes_human(
				file ? tensor_bytes(s->gp->tensor[x->tensor]) : x->bytes, human),
			file ? "  in the file" : "");
		if (!residents)
			text_add(t, "  steps %3d to %3d", x->first_step + 1, x->last_step + 1);
		if (x->tensor < 0) {
			text_puts(t, "  workspace */\n");
			continue;
		}
		text_puts(t, "  ");
		text_comment(t, s->gp->problem->tensor[x->tensor].name);
		if (residents && tensor_next(s->gp->graph, s->gp->tensor[x->tensor]))
			text_puts(t, ", and the next step's");
		text_puts(t, " */\n");
	}
}

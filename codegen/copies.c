/* Copies to the host and back, to a file and back, or from other processes. When each may start,
 * and what has to wait for it, is the plan's to say (planner/problem/moves.h). */
#include <inttypes.h>

#include "codegen/parts.h"
#include "planner/problem/moves.h"

/* Of a tensor in a file, or in pieces. */
static struct copy resident_copy(const struct schedule *s, const struct call *call)
{
	enum { HOME, VALUE, WHOLE };
	const struct node *n = &call->node;
	const bool stores = n->op->role == ROLE_STORE;
	const struct tensor *value = stores ? n->in[VALUE] : n->out[0];
	const int home = stores && node_int(n, "count", 0) ? WHOLE : HOME;
	return (struct copy){.kind = n->op->role == ROLE_FETCH_PIECES ? COPY_PIECES : COPY_FILE,
		.resident = s->plan->buffer[call->in[home]].tensor,
		.from = node_int(n, "from", 0) * dtype_bytes(value->dtype)};
}

/* Where a tensor's copy to the host has gone, or goes. */
static int64_t host_place(struct schedule *s, int tensor, int64_t bytes)
{
	enum { ALIGNMENT = 256 };
	for (int i = 0; i < s->ncopy; i++)
		if (s->copy[i].resident < 0 && s->plan->buffer[s->copy[i].buffer].tensor == tensor)
			return s->copy[i].host;
	const int64_t place = s->host_bytes;
	s->host_bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	return place;
}

static void add_copy(struct schedule *s, const struct plan_move *m)
{
	const struct call *call = &s->call[m->step];
	const struct plan_buffer *b = &s->plan->buffer[m->buffer];
	/* a machine without a GPU has a file in the place of its host's memory */
	struct copy c = {
		.kind = s->gp->graph->target->cuda ? COPY_HOST : COPY_FILE, .resident = -1};
	if (node_moves(&call->node))
		c = resident_copy(s, call);
	else
		c.host = host_place(s, b->tensor, b->bytes);
	c.step = m->step;
	c.away = m->away;
	c.buffer = m->buffer;
	c.bytes = b->bytes;
	c.start = m->start;
	c.wait = m->wait;
	s->copy[s->ncopy++] = c;
}

enum status copies_find(struct arena *a, struct schedule *s, struct diag *d)
{
	struct plan_move *move;
	int n;
	TRY(plan_moves(a, s->gp->problem, s->plan, &move, &n, d));
	s->copy = ARENA_ARRAY(a, struct copy, n + 1);
	if (!s->copy)
		return diag_nomem(d);
	for (int i = 0; i < n; i++)
		add_copy(s, &move[i]);
	return ST_OK;
}

/* --- As data --- */

/* Some micro-batches have nothing to copy, nor has an update that was not done. */
static const char *when_text(const struct schedule *s, const struct copy *c)
{
	const bool last = s->call[c->step].node.last, updated = c->resident >= 0 && c->away;
	return updated && last ? "LAST | UPDATED" : updated ? "UPDATED" : last ? "LAST" : "ALWAYS";
}

static void print_copy(const struct schedule *s, const struct copy *c, struct text *t)
{
	static const char *const fetch[] = {[COPY_HOST] = "stint_fetch",
		[COPY_FILE] = "stint_disk_fetch",
		[COPY_PIECES] = "stint_fetch_pieces"};
	static const char *const wait[] = {[COPY_HOST] = "stint_copied",
		[COPY_FILE] = "stint_disk_wait",
		[COPY_PIECES] = "stint_await_pieces"};
	const char *store = c->kind == COPY_FILE ? "stint_disk_store" : "stint_offload";
	const struct node *n = &s->call[c->step].node;
	const int64_t size = c->kind == COPY_PIECES ? dtype_bytes(n->out[0]->dtype) : 1;
	text_add(t, "\t{%d, %d, %s, %s, %s, %s, %s, %" PRId64 ", ", (int)(c - s->copy), c->step,
		when_text(s, c), c->kind == COPY_HOST ? "STINT_CODE" : "STINT_SAID",
		c->away ? store : fetch[c->kind], wait[c->kind], s->place[c->buffer].name,
		c->kind == COPY_PIECES ? n->out[0]->numel * size : c->bytes);
	if (c->resident >= 0)
		text_add(t, "%s", s->place[s->head[c->resident]].name);
	if (c->resident >= 0 && c->from)
		text_add(t, " + %" PRId64, c->from);
	if (c->resident < 0) /* in the file behind what lasts over steps */
		text_add(t, "%" PRId64, c->host + (c->kind == COPY_FILE ? s->file_bytes : 0));
	text_add(t, ", %" PRId64 "},\n", size);
}

static void print_moves(const struct schedule *s, int step, struct text *t)
{
	for (int i = 0; i < s->ncopy && s->at_once; i++)
		if (s->copy[i].step == step)
			text_add(t, "\t{%d, STINT_THROUGH, %d},\n", step, i);
	for (int i = 0; i < s->ncopy && !s->at_once; i++)
		if (s->copy[i].wait == step)
			text_add(t, "\t{%d, STINT_WAIT, %d},\n", step, i);
	for (int i = 0; i < s->ncopy && !s->at_once; i++)
		if (s->copy[i].start == step)
			text_add(t, "\t{%d, STINT_BEGIN, %d},\n", step, i);
}

void print_copies(const struct schedule *s, struct text *t)
{
	const char *word = schedule_word(s);
	text_add(t,
		"\n/* Copies: number, step, when, what it says, its begin and its end, where, "
		"bytes, from "
		"where or to where, bytes\n * of a number. */\n"
		"static const struct stint_copy %s_copies[] = {\n",
		word);
	for (int i = 0; i < s->ncopy; i++)
		print_copy(s, &s->copy[i], t);
	text_add(t,
		"};\n\n/* Before which step each begins, and which waits for it. */\n"
		"static const struct stint_move %s_moves[] = {\n",
		word);
	for (int step = 0; step <= s->plan->nstep; step++)
		print_moves(s, step, t);
	text_puts(t, "\t{.step = STINT_NO_STEP},\n};\n");
}

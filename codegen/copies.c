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

static void print_check(const struct copy *c, const char *info, struct text *t)
{
	if (c->kind != COPY_HOST)
		text_puts(t, "\tif (error) /* the runtime has said why */\n\t\treturn error;\n");
	else
		text_add(t, "\tif (error)\n\t\treturn library_failed(s, %d, error, &%s[%d]);\n",
			c->step, info, c->step);
}

/* Some micro-batches have nothing to copy, nor has an update that was not done. */
static void print_whether(const struct schedule *s, const struct copy *c, struct text *t)
{
	const bool last = s->call[c->step].node.last, updated = c->resident >= 0 && c->away;
	text_puts(t, updated && last ? "\tif (s->last && (!probe || !probe->gradient))\n\t"
		     : updated       ? "\tif (!probe || !probe->gradient)\n\t"
		     : last          ? "\tif (s->last)\n\t"
				     : "");
}

static void print_begun(const struct schedule *s, const struct copy *c, struct text *t)
{
	const char *place = s->place[c->buffer].name;
	const char *home = c->resident < 0 ? NULL : s->place[s->head[c->resident]].name;
	if (c->kind == COPY_PIECES) {
		const struct tensor *y = s->call[c->step].node.out[0];
		text_add(t, "\terror = stint_fetch_pieces(s, %s, %s, %" PRId64 ", %" PRId64 ");",
			place, home, y->numel, dtype_bytes(y->dtype));
		return;
	}
	const bool file = c->kind == COPY_FILE;
	text_puts(t, file ? "\terror = stint_disk_" : "\terror = stint_");
	text_add(t, "%s(s, %d, %s, %" PRId64 ", ",
		!c->away ? "fetch"
		: file   ? "store"
			 : "offload",
		(int)(c - s->copy), place, c->bytes);
	if (home)
		text_puts(t, home);
	if (home && c->from)
		text_add(t, " + %" PRId64, c->from);
	if (!home) /* in the file behind what lasts over steps */
		text_add(t, "%" PRId64, c->host + (file ? s->file_bytes : 0));
	text_puts(t, ");");
}

static void print_start(
	const struct schedule *s, const struct copy *c, const char *info, struct text *t)
{
	print_whether(s, c, t);
	print_begun(s, c, t);
	if (!s->at_once)
		text_add(t, " /* step %d */", c->step + 1);
	text_puts(t, "\n");
	print_check(c, info, t);
}

static void print_wait(
	const struct schedule *s, const struct copy *c, const char *info, struct text *t)
{
	if (c->kind == COPY_PIECES)
		text_add(t, "\terror = stint_await_pieces(s, %s);", s->place[c->buffer].name);
	else
		text_add(t, "\terror = %s(s, %d);",
			c->kind == COPY_FILE ? "stint_disk_wait" : "stint_copied",
			(int)(c - s->copy));
	if (!s->at_once)
		text_add(t, " /* of step %d */", c->step + 1);
	text_puts(t, "\n");
	print_check(c, info, t);
}

void print_copies(const struct schedule *s, int step, const char *info, struct text *t)
{
	for (int i = 0; i < s->ncopy && !s->at_once; i++)
		if (s->copy[i].wait == step)
			print_wait(s, &s->copy[i], info, t);
	for (int i = 0; i < s->ncopy && !s->at_once; i++)
		if (s->copy[i].start == step)
			print_start(s, &s->copy[i], info, t);
}

void print_copy(const struct schedule *s, int step, struct text *t)
{
	for (int i = 0; i < s->ncopy; i++)
		if (s->copy[i].step == step) {
			print_start(s, &s->copy[i], NULL, t);
			print_wait(s, &s->copy[i], NULL, t);
		}
}

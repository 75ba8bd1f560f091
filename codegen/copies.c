/* Copies to the host and back, to a file and back, or from other processes: when each may start,
 * and what has to wait for it.
 *
 * A copy to the host starts at its step and has to be over before a step writes to the bytes that
 * it reads. A copy back has to be over before the first step that reads what it brings; it starts
 * as soon as nothing else needs its place any more, which may be long before its own step. */
#include <inttypes.h>

#include "codegen/parts.h"

static bool overlap(const struct plan_buffer *a, const struct plan_buffer *b)
{
	return a->bytes > 0 && b->bytes > 0 && a->offset < b->offset + b->bytes &&
	       b->offset < a->offset + a->bytes;
}

/* The first step behind `after` that writes to the bytes of a buffer that a copy reads there. A
 * copy back that writes there comes behind it by itself, and what writes later behind that one. */
static int written_again(const struct schedule *s, int buffer, int after)
{
	const struct plan_buffer *b = &s->plan->buffer[buffer];
	int step = s->plan->nstep;
	for (int i = 0; i < s->plan->nbuffer; i++) {
		const struct plan_buffer *x = &s->plan->buffer[i];
		if (i != buffer && x->first_step > after && x->first_step < step && overlap(x, b))
			step = x->first_step;
	}
	return step < s->plan->nstep && s->call[step].kernel < 0 ? s->plan->nstep : step;
}

static int first_reader(const struct schedule *s, int buffer, int after)
{
	for (int step = after + 1; step < s->plan->nstep; step++)
		for (int k = 0; k < s->call[step].node.nin; k++)
			if (s->call[step].in[k] == buffer)
				return step;
	return s->plan->nstep;
}

/* The copy to the host of the same tensor. */
static const struct copy *copy_away(const struct schedule *s, int tensor)
{
	for (int i = 0; i < s->ncopy; i++)
		if (s->copy[i].away && s->plan->buffer[s->copy[i].buffer].tensor == tensor)
			return &s->copy[i];
	return NULL;
}

/* Of a tensor in a file: what is stored comes behind all fetches of it. Or of pieces. */
static void add_resident_copy(struct schedule *s, int step)
{
	enum { HOME, VALUE, WHOLE };
	const struct call *call = &s->call[step];
	const enum op_role role = call->node.op->role;
	struct copy c = {.kind = role == ROLE_FETCH_PIECES ? COPY_PIECES : COPY_FILE,
		.step = step,
		.away = role == ROLE_STORE};
	const struct tensor *value = c.away ? call->node.in[VALUE] : call->node.out[0];
	const int home = c.away && node_int(&call->node, "count", 0) ? WHOLE : HOME;
	c.buffer = c.away ? call->in[VALUE] : call->out[0];
	c.bytes = s->plan->buffer[c.buffer].bytes;
	c.resident = s->plan->buffer[call->in[home]].tensor;
	c.from = node_int(&call->node, "from", 0) * dtype_bytes(value->dtype);
	c.start = c.away || s->at_once ? step : plan_free_from(s->plan, c.buffer);
	c.wait = s->at_once ? step
		 : c.away   ? written_again(s, c.buffer, step)
			    : first_reader(s, c.buffer, step);
	s->copy[s->ncopy++] = c;
}

static void add_copy(struct schedule *s, int step)
{
	enum { ALIGNMENT = 256 };
	const struct call *call = &s->call[step];
	/* a machine without a GPU has a file in the place of its host's memory */
	struct copy c = {.kind = s->gp->graph->target->cuda ? COPY_HOST : COPY_FILE,
		.step = step,
		.away = s->gp->problem->op[call->op].offloads != 0,
		.resident = -1};
	c.buffer = c.away ? call->in[0] : call->out[0];
	c.bytes = s->plan->buffer[c.buffer].bytes;
	c.start = step;
	if (c.away) {
		c.host = s->host_bytes;
		c.wait = written_again(s, c.buffer, step);
		s->host_bytes += (c.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	} else {
		const struct copy *from = copy_away(s, s->plan->buffer[c.buffer].tensor);
		const int there = plan_free_from(s->plan, c.buffer);
		c.host = from->host;
		c.start = there > from->step ? there : from->step + 1;
		c.wait = first_reader(s, c.buffer, step);
	}
	s->copy[s->ncopy++] = c;
}

/* From the file, or from others, things come in the order in which they are wanted: what is wanted
 * much later would be in the way of the others. None starts before what is wanted before it, nor
 * later than its step. */
static void keep_order(struct schedule *s)
{
	for (int i = s->ncopy - 1; i >= 0; i--) {
		struct copy *c = &s->copy[i];
		for (int k = 0; k < i && !c->away && c->resident >= 0; k++) {
			const struct copy *before = &s->copy[k];
			if (!before->away && before->wait <= c->wait && before->start > c->start)
				c->start = before->start < c->step ? before->start : c->step;
		}
	}
}

enum status copies_find(struct arena *a, struct schedule *s, struct diag *d)
{
	s->copy = ARENA_ARRAY(a, struct copy, s->plan->nstep + 1);
	if (!s->copy)
		return diag_nomem(d);
	for (int step = 0; step < s->plan->nstep; step++)
		if (s->call[step].kernel >= 0)
			continue;
		else if (node_moves(&s->call[step].node))
			add_resident_copy(s, step);
		else
			add_copy(s, step);
	keep_order(s);
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
		text_add(t, "\terror = stint_fetch_pieces(s, %s, %s, %" PRId64 ");", place, home,
			s->call[c->step].node.out[0]->numel);
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

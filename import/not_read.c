/* Nodes that the loss does not read and that cannot be built: they are left out, what reads them
 * with them, and the model's outputs behind; one note tells which. */
#include <string.h>

#include "import/import_parts.h"

enum { TOLD = 6 }; /* nodes that the note names */

/* What is said while such a node is built: an error is kept, all else goes on. */
struct held {
	struct importer *im;
	struct diag outer;
	bool any;
	struct left_reason first;
};

static void hold(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct held *h = user;
	struct arena *a = h->im->m.arena;
	if (level != DIAG_ERROR) {
		if (h->outer.put)
			h->outer.put(h->outer.user, level, w, message, hint);
		return;
	}
	if (h->any)
		return;
	h->any = true;
	h->first = (struct left_reason){.node = w && w->node ? arena_strdup(a, w->node) : NULL,
		.op = w && w->op ? arena_strdup(a, w->op) : NULL,
		.message = arena_strdup(a, message),
		.hint = hint ? arena_strdup(a, hint) : NULL};
}

static bool is_left(const struct importer *im, const char *name)
{
	return names_get(&im->left_out, name) != NULL;
}

static bool reads_left(const struct importer *im, const Onnx__NodeProto *n)
{
	for (size_t i = 0; i < n->n_input; i++)
		if (is_left(im, text_of(n->input[i])))
			return true;
	return false;
}

static enum status leave(struct importer *im, const Onnx__NodeProto *n)
{
	for (size_t k = 0; k < n->n_output; k++) {
		void **at = *text_of(n->output[k]) ? names_at(&im->left_out, n->output[k]) : NULL;
		if (at)
			*at = im;
		else if (*text_of(n->output[k]))
			return diag_nomem(im->d);
	}
	im->nleft++;
	im->g->partial = true;
	return ST_OK;
}

static enum status unsupported(struct importer *im, const struct block *b, int index)
{
	const Onnx__NodeProto *n = b->node[index];
	const char *label = node_label(im->m.arena, n, index);
	const char *op = operator_label(im->m.arena, n);
	const struct where w = {im->m.path, label ? label : "", op ? op : ""};
	return diag_fail(im->d, ST_INVALID, &w, hint_without_record(im, n),
		"operator %s is not supported at opset %d", w.op, im->top.opset);
}

/* A node that failed is left out; what happened is kept where it is the cause. */
static enum status failed(
	struct importer *im, const Onnx__NodeProto *n, enum status st, const struct held *h)
{
	if (im->d->out_of_memory || !h->any)
		return st;
	if (st != ST_INVALID) {
		const struct where w = {im->m.path, h->first.node, h->first.op};
		return diag_fail(im->d, st, &w, h->first.hint, "%s", h->first.message);
	}
	struct left_reason *r = ARENA_NEW(im->m.arena, struct left_reason);
	if (!r)
		return diag_nomem(im->d);
	*r = h->first;
	*im->left_end = r;
	im->left_end = &r->next;
	return leave(im, n);
}

enum status import_or_leave(struct importer *im, const struct block *b, int index)
{
	const Onnx__NodeProto *n = b->node[index];
	if (!b->unread || !b->unread[index])
		return import_node(im, &im->top, b, index);
	if (reads_left(im, n))
		return leave(im, n);
	struct held h = {.im = im, .outer = *im->d};
	const char *scope = im->g->scope;
	im->d->put = hold;
	im->d->user = &h;
	const bool known = record_of(im, n, im->top.opset) || function_of(im, n);
	enum status st = known ? import_node(im, &im->top, b, index) : unsupported(im, b, index);
	const unsigned warnings = im->d->warnings;
	const bool nomem = im->d->out_of_memory;
	*im->d = h.outer;
	im->d->warnings = warnings;
	im->d->out_of_memory = nomem;
	if (st == ST_OK)
		return ST_OK;
	im->depth = 0;
	im->g->scope = scope;
	im->g->when = NULL;
	im->g->failed = ST_OK;
	return failed(im, n, st, &h);
}

bool output_left_out(const struct importer *im, const char *name)
{
	return is_left(im, name);
}

enum status left_out_fail(struct importer *im)
{
	for (const struct left_reason *r = im->left_first; r; r = r->next) {
		const struct where w = {im->m.path, r->node, r->op};
		diag_fail(im->d, ST_INVALID, &w, r->hint, "%s", r->message);
	}
	return ST_INVALID;
}

/* What would help: sizes where some are missing, else what the first message says. */
static const char *hint_of(const struct importer *im)
{
	for (int i = 0; im->unbound && i < im->g->ninput; i++) {
		const struct tensor *x = im->g->input[i];
		for (int k = 0; x->axis && k < x->rank; k++) {
			if (!x->axis[k] || (k == 0 && !im->o->batch))
				continue;
			if (strcmp(x->axis[k], "?") != 0)
				return arena_printf(im->m.arena,
					"some sizes are missing, which --batch and --dim give: "
					"--dim %s=N",
					x->axis[k]);
			return arena_printf(im->m.arena,
				"some sizes are missing, which --batch and --dim give: --dim "
				"%s:%d=N",
				x->name, k);
		}
	}
	return im->left_first->hint;
}

void left_out_tell(struct importer *im)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	struct text t = {0};
	int n = 0;
	if (!im->left_first)
		return;
	for (const struct left_reason *r = im->left_first; r; r = r->next) {
		if (n++ < TOLD)
			text_add(&t, "%s'%s' (%s): %s", n > 1 ? "; " : "", r->node ? r->node : "",
				r->op ? r->op : "", r->message);
	}
	if (n > TOLD)
		text_add(&t, "; and %d more", n - TOLD);
	if (im->nleft > n)
		text_add(&t, "; %d node%s behind", im->nleft - n, im->nleft == n + 1 ? "" : "s");
	const char *before = "; outputs left out: ";
	for (size_t i = 0; i < p->n_output; i++)
		if (is_left(im, text_of(p->output[i]->name))) {
			text_add(&t, "%s'%s'", before, p->output[i]->name);
			before = ", ";
		}
	diag_note(im->d, &(struct where){.file = im->m.path}, hint_of(im),
		im->o->read == IMPORT_READ_ANY ? "cannot be built and left out: %s"
					       : "not read by the loss and left out: %s",
		t.s ? t.s : "");
	text_free(&t);
}

/* Nodes: which operators a block asks for, and building. */
#include <stdio.h>
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__NodeProto Node;

/* Records of our own are not for models to use, and a point in a name is no way around. */
static bool is_for_models(const char *domain, const char *op)
{
	return !strchr(op, '.') && strcmp(domain, "stint") != 0 &&
	       strncmp(domain, "stint.", 6) != 0;
}

int domain_opset(const struct importer *im, const Node *n, int opset)
{
	const Onnx__ModelProto *m = im->m.proto;
	const char *domain = domain_of(n);
	int64_t version = *domain ? 1 : opset;
	for (size_t i = 0; *domain && i < m->n_opset_import; i++)
		if (!strcmp(text_of(m->opset_import[i]->domain), domain))
			version = m->opset_import[i]->version;
	return version < 1 ? 0 : version < OPSET_LATEST ? (int)version : OPSET_LATEST;
}

/* As records are called; NULL: none is called so. */
enum { RECORD_NAME = 256 };
static const char *record_name(const Node *n, char name[RECORD_NAME])
{
	const char *op = text_of(n->op_type), *domain = domain_of(n);
	if (!is_for_models(domain, op))
		return NULL;
	if (!*domain)
		return op;
	const int len = snprintf(name, RECORD_NAME, "%s.%s", domain, op);
	return len < 0 || len >= RECORD_NAME ? NULL : name;
}

const struct op_def *record_of(const struct importer *im, const Node *n, int opset)
{
	char text[RECORD_NAME];
	const char *name = record_name(n, text);
	return name ? op_index_find(im->index, name, domain_opset(im, n, opset)) : NULL;
}

const char *operator_label(struct arena *a, const Node *n)
{
	const char *op = text_of(n->op_type);
	return *domain_of(n) ? arena_printf(a, "%s.%s", n->domain, op) : op;
}

const char *hint_without_record(const struct importer *im, const Node *n)
{
	char text[RECORD_NAME];
	const char *name = record_name(n, text);
	const char *instead = name ? op_index_instead(im->index, name) : NULL;
	return instead         ? instead
	       : *domain_of(n) ? "operators of other domains come with --ops FILE.so"
			       : "docs/reference/operators.md lists what is supported";
}

/* --- Which operators --- */

/* An operator that is missing, in the order of first use. */
struct missing {
	const char *label; /* with its domain, if that is not ONNX's */
	const char *node, *function, *hint;
	int count, opset;
	struct missing *next;
};

/* What check_operators has met so far. */
struct check {
	struct importer *im;
	struct names seen; /* struct missing */
	struct missing *first, **last;
	struct function *todo, **end; /* called, but not looked at */
};

static enum status count_missing(
	struct check *c, const struct block *b, int opset, const Node *n, int index)
{
	struct arena *a = c->im->m.arena;
	const char *label = operator_label(a, n);
	if (c->seen.n == REPORT_MAX && label && !names_get(&c->seen, label))
		return ST_OK;
	void **at = label ? names_at(&c->seen, label) : NULL;
	if (!at)
		return diag_nomem(c->im->d);
	struct missing *k = *at;
	if (!k) {
		k = *at = *c->last = ARENA_NEW(a, struct missing);
		if (!k)
			return diag_nomem(c->im->d);
		*k = (struct missing){.label = label,
			.node = node_label(a, n, index),
			.function = b->graph ? NULL : b->what,
			.hint = hint_without_record(c->im, n),
			.opset = opset};
		c->last = &k->next;
	}
	k->count++;
	return k->node ? ST_OK : diag_nomem(c->im->d);
}

static enum status check_block(struct check *c, const struct block *b, int opset)
{
	for (int i = 0; i < b->n; i++) {
		const Node *n = b->node[i];
		if ((b->unread && b->unread[i]) || record_of(c->im, n, opset))
			continue;
		struct function *f = function_of(c->im, n);
		if (!f)
			TRY(count_missing(c, b, opset, n, i));
		if (!f || f->checked)
			continue;
		f->checked = true;
		*c->end = f;
		c->end = &f->next_check;
	}
	return ST_OK;
}

static void report_missing(const struct check *c, const struct missing *k)
{
	diag_fail(c->im->d, ST_INVALID, &(struct where){c->im->m.path, k->node, k->label}, k->hint,
		"operator %s is not supported at opset %d; used %d time%s, first here%s%s%s",
		*k->label ? k->label : "''", k->opset, k->count, k->count == 1 ? "" : "s",
		k->function ? " in function '" : "", k->function ? k->function : "",
		k->function ? "'" : "");
}

enum status check_operators(struct importer *im, const struct block *b, int opset)
{
	struct check c = {.im = im, .seen = {.arena = im->m.arena}};
	c.last = &c.first;
	c.end = &c.todo;
	TRY(check_block(&c, b, opset));
	for (; c.todo; c.todo = c.todo->next_check) {
		TRY(check_opset(im, c.todo->opset, c.todo->name));
		TRY(check_block(&c, &c.todo->block, c.todo->opset));
	}
	for (const struct missing *k = c.first; k; k = k->next)
		report_missing(&c, k);
	return c.first ? ST_INVALID : ST_OK;
}

/* --- Building --- */

/* A node being built. */
struct job {
	struct importer *im;
	const struct scope *s;
	const Node *p;
	const char *name;        /* with the scope's prefix */
	int nin, nout;           /* without those left out at the end */
	const struct op_def *op; /* or: */
	struct function *function;
};

static enum status job_fail(const struct job *j, const char *fmt, const char *arg)
{
	const struct where w = {j->im->m.path, j->name, text_of(j->p->op_type)};
	return diag_fail(j->im->d, ST_INVALID, &w, NULL, fmt, arg);
}

static int last_given(char *const *list, size_t n)
{
	while (n > 0 && !*text_of(list[n - 1]))
		n--;
	return (int)n;
}

static enum status job_input(const struct job *j, int i, struct value *out)
{
	const char *name = text_of(j->p->input[i]);
	*out = (struct value){.kind = VALUE_NONE};
	if (!*name || scope_get(j->s, name, out))
		return ST_OK;
	return job_fail(j,
		j->im->depth ? "reads '%s', which nothing makes"
			     : "reads '%s', an output that stint does not provide",
		name);
}

/* Give output k its name in the file. */
static enum status job_output(const struct job *j, int k, const struct value *v, int newest)
{
	const char *name = text_of(j->p->output[k]);
	if (!*name)
		return ST_OK;
	if (v->kind == VALUE_TENSOR && v->tensor->id >= newest && !v->tensor->from_model) {
		v->tensor->name = scope_name(j->im, j->s, name);
		if (!v->tensor->name)
			return diag_nomem(j->im->d);
	}
	return scope_set(j->im, j->s, name, v);
}

/* A node as it stands; `attr` has room for one more than the file's. */
static enum status add_node(const struct job *j, struct tensor **in, struct attr *attr)
{
	struct graph *g = j->im->g;
	int nattr, nin = 0;
	struct node *n;
	for (int i = 0; i < j->nin; i++) {
		struct value v;
		TRY(job_input(j, i, &v));
		if (v.kind == VALUE_LIST)
			return job_fail(j, "reads '%s', a sequence, but takes tensors only",
				j->p->input[i]);
		in[i] = v.kind == VALUE_TENSOR ? v.tensor : NULL;
		nin = in[i] ? i + 1 : nin; /* without those that are absent at the end */
	}
	int newest = g->ntensor;
	TRY(import_attributes(j->im, j->s, j->name, j->p, false, &nattr, attr));
	int64_t row;
	if (j->op->role == ROLE_LOOKUP && padding_of(j->im, j->p, &row))
		attr[nattr++] = ATTR_I("padding_idx", row);
	g->opset = domain_opset(j->im, j->p, j->s->opset);
	bool stop = name_matches(j->im->o->stop_pattern, j->name) || node_is_detach(j->p);
	TRY(graph_node(g, j->op->name, j->name, nin, in, j->nout, nattr, attr, NULL, &n));
	for (int k = 0; k < n->nout && k < j->nout; k++) {
		struct value v = {.kind = VALUE_TENSOR, .tensor = n->out[k]};
		const bool kept = !j->im->depth &&
				  names_get(&j->im->replacing, text_of(j->p->output[k]));
		if (v.tensor && (stop || kept) && dtype_is_real(v.tensor->dtype))
			v.tensor = OP1(g, op_by_role(g->table, ROLE_STOP)->name, v.tensor);
		if (v.tensor)
			TRY(job_output(j, k, &v, newest));
	}
	return g->failed;
}

static enum status plain_node(const struct job *j)
{
	enum { FEW = 8 };
	struct tensor *in[FEW];
	struct attr attr[FEW + 1];
	if (j->nin <= FEW && j->p->n_attribute <= FEW)
		return add_node(j, in, attr);
	struct tensor **more_in = ARENA_ARRAY(j->im->m.arena, struct tensor *, j->nin);
	struct attr *more = ARENA_ARRAY(j->im->m.arena, struct attr, j->p->n_attribute + 1);
	return more_in && more ? add_node(j, more_in, more) : diag_nomem(j->im->d);
}

/* A node that comes to others. */
static enum status expanded_node(const struct job *j)
{
	struct importer *im = j->im;
	struct value *in = ARENA_ARRAY(im->m.arena, struct value, j->nin);
	struct value *out = ARENA_ARRAY(im->m.arena, struct value, j->nout);
	struct attr *attr = ARENA_ARRAY(im->m.arena, struct attr, j->p->n_attribute);
	int nattr, newest = im->g->ntensor;
	if (!in || !out || !attr)
		return diag_nomem(im->d);
	for (int i = 0; i < j->nin; i++)
		TRY(job_input(j, i, &in[i]));
	TRY(import_attributes(im, j->s, j->name, j->p, true, &nattr, attr));
	TRY(j->function ? function_call(
				  im, j->function, j->name, j->nin, in, j->nout, out, nattr, attr)
			: graph_expand(im->g, j->op, j->name, j->nin, in, j->nout, out, nattr, attr,
				  &im->left));
	for (int k = 0; k < j->nout; k++)
		TRY(job_output(j, k, &out[k], newest));
	return ST_OK;
}

/* What a node takes beside its structures, in bytes: names, lists, texts. */
static size_t weight(const Node *p, const char *name)
{
	size_t bytes = strlen(name) + 16 * (p->n_input + p->n_output + p->n_attribute);
	for (size_t i = 0; i < p->n_attribute; i++) {
		const Onnx__AttributeProto *a = p->attribute[i];
		bytes += 8 * a->n_floats + a->s.len;
		for (size_t k = 0; k < a->n_strings; k++)
			bytes += 8 + a->strings[k].len;
	}
	return bytes;
}

static bool reads_no_tensor(const struct job *j)
{
	struct value v;
	for (int i = 0; i < j->nin; i++)
		if (*text_of(j->p->input[i]) && scope_get(j->s, j->p->input[i], &v) &&
			v.kind != VALUE_TENSOR)
			return true;
	return false;
}

enum status import_node(
	struct importer *im, const struct scope *s, const struct block *b, int index)
{
	const Node *p = b->node[index];
	const char *label = node_label(im->m.arena, p, index);
	struct job j = {.im = im,
		.s = s,
		.p = p,
		.name = label ? scope_name(im, s, label) : NULL,
		.nin = last_given(p->input, p->n_input),
		.nout = last_given(p->output, p->n_output),
		.op = record_of(im, p, s->opset)};
	if (!j.name)
		return diag_nomem(im->d);
	const struct where w = {im->m.path, j.name, text_of(p->op_type)};
	if (im->depth)
		TRY(expansion_count(im, &w, weight(p, j.name)));
	if (!j.op)
		j.function = function_of(im, p);
	if (!j.op || (j.op->expand && (!j.op->infer || reads_no_tensor(&j))))
		return expanded_node(&j);
	return plain_node(&j);
}

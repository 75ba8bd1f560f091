/* Constants that an exporter computed of parameters which the file still has (`1 - m` beside `m`,
 * exp of a logarithm, a slice, a copy in another shape): made of the parameter again, by nodes, so
 * that gradients are whole. Where the values do not say surely which function it is, a warning
 * names both.
 *
 * What has lost its parameter altogether: lost.c. Transposed matrices: ties.c, turned.c. */
#include <inttypes.h>
#include <string.h>

#include "import/by_value.h"

typedef Onnx__NodeProto Node;
typedef Onnx__TensorProto Tensor;

enum { NAMES_TOLD = 4, SLICE_SINCE = 10 };

struct folded {
	struct importer *im;
	struct by_value by_value;
	struct names known; /* read as settings: → anything */
	struct names gone;  /* constants that nodes make now: → anything */
	Node **node;        /* nodes to add */
	Tensor **tensor;    /* initializers to add */
	size_t nnode, ntensor, capnode, captensor;
	struct text list[2]; /* made again; unsure */
	int n[2];
};

/* --- Values --- */

static double epsilon_of(const Tensor *t)
{
	switch (t->data_type) {
	case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
		return 0x1p-10;
	case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
		return 0x1p-7;
	default:
		return 0x1p-23;
	}
}

/* NULL: no real numbers, none that can be had (which is reported when they are imported), or few.
 */
static struct values *values_of(const struct folded *f, const Tensor *t, const char *name)
{
	struct diag quiet = {0};
	struct values *v = ARENA_NEW(f->im->m.arena, struct values);
	enum dtype type;
	const void *data;
	if (!v || t->n_dims < 1 ||
		tensor_values(&f->im->m, t, DT_F32, &type, &v->rank, v->dim, &data, &quiet) !=
			ST_OK ||
		type != DT_F32 || tensor_is_absent(&f->im->m, t))
		return NULL;
	v->name = name;
	v->v = data;
	v->epsilon = epsilon_of(t);
	v->numel = 1;
	for (int i = 0; i < v->rank; i++)
		v->numel *= v->dim[i];
	return v->numel > 1 ? v : NULL;
}

/* A constant's, by a node; NULL: it is none. */
static Tensor *constant_of(const struct folded *f, const Node *n)
{
	const struct op_def *constant = op_by_role(f->im->table, ROLE_CONSTANT);
	return constant && !strcmp(text_of(n->op_type), constant->name) && !*domain_of(n) &&
			       n->n_output == 1 && n->n_attribute == 1 &&
			       !strcmp(text_of(n->attribute[0]->name), "value")
		       ? n->attribute[0]->t
		       : NULL;
}

static bool may_be_made(const struct folded *f, const Tensor *t, const char *name)
{
	const struct importer *im = f->im;
	const struct import_options *o = im->o;
	const bool made = im->module_first ? !names_get(&im->module, name) : name_generated(name);
	return made && t->n_dims > 0 && !names_get(&f->known, name) &&
	       !names_get(&im->copied, name) && !names_get(&im->turned, name) &&
	       !name_matches(o->untie_pattern, name) && !name_listed(o->train_name, name);
}

static bool is_source(const struct folded *f, const Tensor *t)
{
	const struct importer *im = f->im;
	const char *name = text_of(t->name);
	const struct module_tensor *origin = names_get(&im->module, name);
	return t->n_dims > 0 && !names_get(&f->known, name) &&
	       (im->module_first ? origin && origin->kind == ORIGIN_PARAMETER
				 : !name_generated(name)) &&
	       !name_matches(im->o->freeze_pattern, name) &&
	       !name_matches(im->o->untie_pattern, name);
}

/* --- Nodes --- */

static bool grow(struct arena *a, void ***list, size_t n, size_t *cap)
{
	if (n < *cap)
		return true;
	void **more = ARENA_ARRAY(a, void *, 2 * n + 16);
	if (more && n)
		memcpy(more, *list, n * sizeof *more);
	*list = more;
	*cap = 2 * n + 16;
	return more;
}

static enum status add_tensor(struct folded *f, const char *name, int type, int rank, int64_t n,
	const void *data, size_t bytes)
{
	struct arena *a = f->im->m.arena;
	Tensor *t = ARENA_NEW(a, Tensor);
	int64_t *dim = ARENA_NEW(a, int64_t);
	if (!t || !dim || !name || !data ||
		!grow(a, (void ***)&f->tensor, f->ntensor, &f->captensor))
		return diag_nomem(f->im->d);
	onnx__tensor_proto__init(t);
	*dim = n;
	t->name = (char *)(uintptr_t)name;
	t->dims = dim;
	t->n_dims = (size_t)rank;
	t->has_data_type = 1;
	t->data_type = type;
	tensor_set_raw(t, data, bytes);
	f->tensor[f->ntensor++] = t;
	return ST_OK;
}

static enum status add_node(struct folded *f, const char *op, size_t nin, const char *const *in,
	const char *out, Node **n)
{
	struct arena *a = f->im->m.arena;
	Node *x = *n = ARENA_NEW(a, Node);
	char **names = ARENA_ARRAY(a, char *, nin + 1);
	if (!x || !names || !out || !grow(a, (void ***)&f->node, f->nnode, &f->capnode))
		return diag_nomem(f->im->d);
	onnx__node_proto__init(x);
	for (size_t i = 0; i < nin; i++)
		names[i] = (char *)(uintptr_t)in[i];
	names[nin] = x->name = (char *)(uintptr_t)out;
	x->op_type = (char *)(uintptr_t)op;
	x->input = names;
	x->n_input = nin;
	x->output = names + nin;
	x->n_output = 1;
	f->node[f->nnode++] = x;
	return ST_OK;
}

/* What is made of one constant: the last name stands for what there is so far. */
struct making {
	struct folded *f;
	const char *name, *last;
	int type, steps;
};

static const char *role_name(const struct folded *f, enum op_role role)
{
	return op_by_role(f->im->table, role)->name;
}

/* One more node, whose input 1 is `with` (NULL: it has none). */
static enum status step(struct making *m, const char *op, const char *with)
{
	Node *n;
	const char *in[] = {m->last, with};
	m->last = arena_printf(m->f->im->m.arena, "%s@%d", m->name, ++m->steps);
	return add_node(m->f, op, with ? 2 : 1, in, m->last, &n);
}

/* A node with a number of the constant's type. */
static enum status step_number(struct making *m, enum op_role role, double v)
{
	struct arena *a = m->f->im->m.arena;
	const char *name = arena_printf(a, "%s@%d.by", m->name, m->steps + 1);
	const float f = (float)v;
	const uint16_t bits = narrow_bits(
		m->type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16 ? DT_BF16 : DT_F16, f);
	const void *from = m->type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT    ? (const void *)&f
			   : m->type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ? (const void *)&v
									      : &bits;
	const size_t bytes = (size_t)element_width(m->type);
	const void *data = arena_memdup(a, from, 1, bytes);
	TRY(add_tensor(m->f, name, m->type, 0, 1, data, bytes));
	return step(m, role_name(m->f, role), name);
}

static enum status step_shape(struct making *m, enum op_role role, int rank, const int64_t *dim)
{
	struct arena *a = m->f->im->m.arena;
	const char *name = arena_printf(a, "%s@%d.shape", m->name, m->steps + 1);
	const size_t bytes = (size_t)rank * sizeof *dim;
	const void *data = arena_memdup(a, dim, (size_t)rank, sizeof *dim);
	TRY(add_tensor(m->f, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, 1, rank, data, bytes));
	return step(m, role_name(m->f, role), name);
}

static bool same_shape(const struct values *a, const struct values *b)
{
	return a->rank == b->rank && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim);
}

/* The last node's output is what the constant was called. */
static enum status finish(struct making *m)
{
	if (!m->steps)
		TRY(step(m, role_name(m->f, ROLE_IDENTITY), NULL));
	Node *n = m->f->node[m->f->nnode - 1];
	n->output[0] = n->name = (char *)(uintptr_t)m->name;
	void **at = names_at(&m->f->gone, m->name);
	if (!at)
		return diag_nomem(m->f->im->d);
	*at = m->f;
	return ST_OK;
}

/* c, which is `once` repeated. */
static enum status make_form(struct making *m, const struct form *form, const struct values *once,
	const struct values *c)
{
	m->last = form->of->name;
	if (form->negated)
		TRY(step_number(m, ROLE_MUL, -1));
	if (form->squared)
		TRY(step(m, role_name(m->f, ROLE_MUL), m->last));
	if (form->op)
		TRY(step(m, form->op->name, NULL));
	if (form->scale != 1)
		TRY(step_number(m, ROLE_MUL, form->scale));
	if (form->shift != 0)
		TRY(step_number(m, ROLE_ADD, form->shift));
	if (!same_shape(form->of, once))
		TRY(step_shape(m, ROLE_RESHAPE, once->rank, once->dim));
	if (!same_shape(once, c))
		TRY(step_shape(m, ROLE_EXPAND, c->rank, c->dim));
	return finish(m);
}

static enum status step_slice(struct making *m, const struct part *p)
{
	struct arena *a = m->f->im->m.arena;
	const int64_t ends[] = {p->first, p->first + p->count};
	const char *in[3] = {m->last};
	Node *n;
	for (int i = 0; i < 2; i++) {
		in[i + 1] = arena_printf(a, "%s@%d.%s", m->name, m->steps + 1, i ? "end" : "begin");
		TRY(add_tensor(m->f, in[i + 1], ONNX__TENSOR_PROTO__DATA_TYPE__INT64, 1, 1,
			arena_memdup(a, ends + i, 1, sizeof *ends), sizeof *ends));
	}
	m->last = arena_printf(a, "%s@%d", m->name, ++m->steps);
	return add_node(m->f, role_name(m->f, ROLE_SLICE), 3, in, m->last, &n);
}

static enum status add_axis(struct folded *f, Node *n)
{
	struct arena *a = f->im->m.arena;
	Onnx__AttributeProto *axis = ARENA_NEW(a, Onnx__AttributeProto);
	n->attribute = ARENA_NEW(a, Onnx__AttributeProto *);
	if (!axis || !n->attribute)
		return diag_nomem(f->im->d);
	onnx__attribute_proto__init(axis);
	axis->name = (char *)(uintptr_t) "axis";
	axis->has_type = axis->has_i = 1;
	axis->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
	n->attribute[0] = axis;
	n->n_attribute = 1;
	return ST_OK;
}

/* Rows of c's shape but for their number. */
static enum status make_parts(
	struct making *m, const struct part *part, int npart, const struct values *c)
{
	const char *in[PARTS_MAX];
	for (int i = 0; i < npart; i++) {
		const struct values *of = part[i].of;
		struct values like = *c;
		like.dim[0] = of->dim[0];
		m->last = of->name;
		if (!same_shape(of, &like))
			TRY(step_shape(m, ROLE_RESHAPE, like.rank, like.dim));
		if (part[i].count < of->dim[0])
			TRY(step_slice(m, part + i));
		in[i] = m->last;
	}
	if (npart > 1) {
		Node *n;
		m->last = arena_printf(m->f->im->m.arena, "%s@%d", m->name, ++m->steps);
		TRY(add_node(m->f, role_name(m->f, ROLE_CONCAT), (size_t)npart, in, m->last, &n));
		TRY(add_axis(m->f, n));
	}
	return finish(m);
}

/* --- Words --- */

/* "1 - m", "exp(m)", "0.5 * m + 2". */
static void write_form(struct text *t, const struct form *f)
{
	const bool minus = f->scale == -1 && f->shift != 0;
	if (minus)
		text_add(t, "%g - ", f->shift);
	else if (f->scale == -1)
		text_add(t, "-");
	else if (f->scale != 1)
		text_add(t, "%g * ", f->scale);
	if (f->op)
		text_add(t, "%s(%s'%s')", f->op->name, f->negated ? "-" : "", f->of->name);
	else
		text_add(t, "'%s'%s", f->of->name, f->squared ? " squared" : "");
	if (f->shift != 0 && !minus)
		text_add(t, " + %g", f->shift);
}

static void tell_form(struct folded *f, const char *name, const struct form *form,
	const struct values *once, const struct values *c)
{
	struct text *t = &f->list[!form->sure];
	if (f->n[!form->sure]++ >= NAMES_TOLD)
		return;
	text_add(t, "%s'%s' = ", t->len ? ", " : "", name);
	write_form(t, form);
	if (!same_shape(once, c))
		text_puts(t, ", repeated");
	else if (!same_shape(form->of, c))
		text_puts(t, " in another shape");
}

static void tell_parts(
	struct folded *f, const char *name, const struct part *part, int n, bool sure)
{
	struct text *t = &f->list[!sure];
	if (f->n[!sure]++ >= NAMES_TOLD)
		return;
	text_add(t, "%s'%s' = ", t->len ? ", " : "", name);
	for (int i = 0; i < n; i++) {
		text_add(t, "%s'%s'", i ? " and " : "", part[i].of->name);
		if (part[i].count < part[i].of->dim[0])
			text_add(t, " from %" PRId64 " to %" PRId64, part[i].first,
				part[i].first + part[i].count);
	}
}

static void tell(struct folded *f)
{
	const struct where w = {.file = f->im->m.path};
	const char *more[2] = {
		f->n[0] > NAMES_TOLD ? ", ..." : "", f->n[1] > NAMES_TOLD ? ", ..." : ""};
	if (f->n[0] && !f->list[0].failed)
		diag_note(f->im->d, &w, "--untie NAME keeps a constant as it is",
			"what the exporter computed of parameters is computed again, so that their "
			"gradients are whole: %s%s",
			f->list[0].s, more[0]);
	if (f->n[1] && !f->list[1].failed)
		diag_warn(f->im->d, &w,
			"export with optimize=False; --freeze the parameter, or --untie the "
			"constant "
			"where it has nothing to do with it",
			"seems to be computed of parameters by the exporter: their gradients lack "
			"what goes through it: %s%s",
			f->list[1].s, more[1]);
	text_free(&f->list[0]);
	text_free(&f->list[1]);
}

/* --- All of them --- */

static enum status find_known(struct folded *f)
{
	const struct importer *im = f->im;
	const Onnx__GraphProto *g = im->m.proto->graph;
	for (size_t i = 0; i < g->n_node; i++) {
		const struct op_def *op = record_of(im, g->node[i], im->top.opset);
		for (size_t k = 0; op && k < g->node[i]->n_input && k < 32; k++) {
			void **at = op->known >> k & 1
					    ? names_at(&f->known, text_of(g->node[i]->input[k]))
					    : NULL;
			if (!at && op->known >> k & 1)
				return diag_nomem(im->d);
			if (at)
				*at = f;
		}
	}
	return ST_OK;
}

static enum status look_at(struct folded *f, const Tensor *t, const char *name)
{
	struct making m = {.f = f, .name = name, .type = t->data_type};
	struct part part[PARTS_MAX];
	struct form form;
	int n;
	const struct values *c = may_be_made(f, t, name) ? values_of(f, t, name) : NULL;
	if (!c || by_value_plain(c))
		return ST_OK;
	const struct values *once = by_value_once(f->im->m.arena, c);
	if (!once)
		return diag_nomem(f->im->d);
	TRY(by_value_form(&f->by_value, once, &form));
	if (form.of) {
		tell_form(f, name, &form, once, c);
		return form.sure ? make_form(&m, &form, once, c) : ST_OK;
	}
	/* [1, rows, ...]: the first axis that has any */
	struct values rows = *c;
	while (rows.rank > 1 && rows.dim[0] == 1)
		memmove(rows.dim, rows.dim + 1, (size_t)--rows.rank * sizeof *rows.dim);
	TRY(by_value_parts(&f->by_value, &rows, part, &n));
	if (!n)
		return ST_OK;
	const bool sure = f->im->top.opset >= SLICE_SINCE && same_shape(&rows, c);
	tell_parts(f, name, part, n, sure);
	return sure ? make_parts(&m, part, n, c) : ST_OK;
}

static enum status find_sources(struct folded *f)
{
	const Onnx__GraphProto *g = f->im->m.proto->graph;
	for (size_t i = 0; i < g->n_initializer; i++) {
		const Tensor *t = g->initializer[i];
		struct values *v = is_source(f, t) ? values_of(f, t, text_of(t->name)) : NULL;
		if (v)
			TRY(by_value_source(&f->by_value, v));
	}
	return ST_OK;
}

/* A table without them (the importer's tests have small ones) makes nothing. */
static bool has_operators(const struct op_table *t)
{
	static const enum op_role role[] = {ROLE_MUL, ROLE_ADD, ROLE_IDENTITY, ROLE_RESHAPE,
		ROLE_EXPAND, ROLE_SLICE, ROLE_CONCAT};
	for (size_t i = 0; i < sizeof role / sizeof *role; i++)
		if (!op_by_role(t, role[i]))
			return false;
	return true;
}

/* Whether any constant is to be looked at: values of large models are not read for nothing. */
static bool any_candidate(const struct folded *f)
{
	const Onnx__GraphProto *g = f->im->m.proto->graph;
	for (size_t i = 0; i < g->n_initializer; i++) {
		const Tensor *t = g->initializer[i];
		if (element_type(t->data_type, DT_F32, &(enum dtype){0}) &&
			may_be_made(f, t, text_of(t->name)) && values_of(f, t, ""))
			return true;
	}
	for (size_t i = 0; i < g->n_node; i++) {
		const Tensor *t = constant_of(f, g->node[i]);
		if (t && may_be_made(f, t, text_of(g->node[i]->output[0])) && values_of(f, t, ""))
			return true;
	}
	return false;
}

static enum status find_all(struct folded *f)
{
	const Onnx__GraphProto *g = f->im->m.proto->graph;
	TRY(by_value_begin(&f->by_value, f->im));
	TRY(find_sources(f));
	for (size_t i = 0; i < g->n_initializer; i++)
		TRY(look_at(f, g->initializer[i], text_of(g->initializer[i]->name)));
	for (size_t i = 0; i < g->n_node; i++) {
		const Tensor *t = constant_of(f, g->node[i]);
		if (t)
			TRY(look_at(f, t, text_of(g->node[i]->output[0])));
	}
	return ST_OK;
}

static enum status rebuild(struct folded *f)
{
	Onnx__GraphProto *g = f->im->m.proto->graph;
	struct arena *a = f->im->m.arena;
	Tensor **t = ARENA_ARRAY(a, Tensor *, g->n_initializer + f->ntensor);
	Node **n = ARENA_ARRAY(a, Node *, g->n_node + f->nnode);
	size_t nt = 0, nn = 0, ni = 0;
	if (!t || !n)
		return diag_nomem(f->im->d);
	for (size_t i = 0; i < g->n_initializer; i++)
		if (!names_get(&f->gone, text_of(g->initializer[i]->name)))
			t[nt++] = g->initializer[i];
	for (size_t i = 0; i < f->ntensor; i++)
		t[nt++] = f->tensor[i];
	for (size_t i = 0; i < g->n_input; i++) /* old files list initializers there too */
		if (!names_get(&f->gone, text_of(g->input[i]->name)))
			g->input[ni++] = g->input[i];
	g->n_input = ni;
	for (size_t i = 0; i < f->nnode; i++) /* of initializers: in front of who reads them */
		n[nn++] = f->node[i];
	for (size_t i = 0; i < g->n_node; i++)
		if (!constant_of(f, g->node[i]) ||
			!names_get(&f->gone, text_of(g->node[i]->output[0])))
			n[nn++] = g->node[i];
	g->initializer = t;
	g->n_initializer = nt;
	g->node = n;
	g->n_node = nn;
	return ST_OK;
}

enum status folded_rewrite(struct importer *im)
{
	struct folded f = {
		.im = im, .known = {.arena = im->m.arena}, .gone = {.arena = im->m.arena}};
	TRY(find_known(&f));
	if (!has_operators(im->table) || !any_candidate(&f))
		return ST_OK;
	enum status st = find_all(&f);
	tell(&f);
	return st == ST_OK && f.nnode ? rebuild(&f) : st;
}

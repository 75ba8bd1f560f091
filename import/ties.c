/* What exporters do to initializers, undone in the file's own terms before the graph is built.
 *
 * Equal ones get merged: the ones and zeros of freshly made layers end up as one tensor. Uniform
 * ones are given back to their layers; where the exporter noted which module a node comes from,
 * with the names that the module had. One that is not uniform and read by several layers is a real
 * tie.
 *
 * Folding breaks ties: a product with a transposed embedding becomes one with a transposed copy.
 * The copy becomes a Transpose node of the original, so that gradients add up. (What is nobody's
 * copy: turned.c.) */
#include <inttypes.h>
#include <string.h>

#include "import/ties.h"

bool tensor_is_real(const Tensor *t)
{
	switch (t->data_type) {
	case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
	case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
	case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
	case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
		return true;
	default:
		return false;
	}
}

struct item *item_at(const struct ties *s, size_t i)
{
	struct item *x = names_get(&s->item, text_of(s->graph->initializer[i]->name));
	return x->index == i ? x : NULL;
}

/* --- Who reads what --- */

static enum status list_items(struct ties *s)
{
	for (size_t i = 0; i < s->graph->n_initializer; i++) {
		Tensor *t = s->graph->initializer[i];
		void **at = names_at(&s->item, text_of(t->name));
		struct item *x = ARENA_NEW(s->im->m.arena, struct item);
		if (!at || !x)
			return diag_nomem(s->im->d);
		*x = (struct item){.t = t, .index = i};
		x->end = &x->first;
		if (!*at) /* a name that stands twice is reported later */
			*at = x;
	}
	return ST_OK;
}

static enum status list_readers(struct ties *s)
{
	for (size_t i = 0; i < s->graph->n_node; i++) {
		Node *n = s->graph->node[i];
		bool reads = false;
		for (size_t k = 0; k < n->n_input; k++) {
			struct item *x = names_get(&s->item, text_of(n->input[k]));
			if (!x)
				continue;
			reads = true;
			struct reader *r = ARENA_NEW(s->im->m.arena, struct reader);
			if (!r)
				return diag_nomem(s->im->d);
			*r = (struct reader){.node = n, .input = k};
			*x->end = r;
			x->end = &r->next;
			x->nreader++;
			owners_add(s, x, r);
		}
		for (size_t k = 0; reads && k < n->n_output; k++) {
			void **at = names_at(&s->maker, text_of(n->output[k]));
			if (!at)
				return diag_nomem(s->im->d);
			*at = n;
		}
	}
	return ST_OK;
}

bool item_load(struct ties *s, struct item *x)
{
	int rank;
	int64_t dim[RANK_MAX];
	struct diag quiet = {0};
	const Tensor *t = x->t;
	if (x->raw)
		return true;
	if (!tensor_is_real(t) ||
		tensor_shape(&s->im->m, t, &rank, dim, &x->numel, &quiet) != ST_OK ||
		x->numel == 0 || tensor_raw(&s->im->m, t, x->numel, &x->raw, &quiet) != ST_OK)
		return false;
	if (tensor_is_absent(&s->im->m, t))
		x->raw = NULL;
	x->width = element_width(t->data_type);
	if (!x->raw && (int64_t)t->n_float_data == x->numel &&
		t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT)
		x->raw = (const unsigned char *)t->float_data;
	if (!x->raw && (int64_t)t->n_double_data == x->numel &&
		t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE)
		x->raw = (const unsigned char *)t->double_data;
	return x->raw != NULL;
}

bool item_is_uniform(const struct item *x)
{
	size_t w = (size_t)x->width;
	return memcmp(x->raw, x->raw + w, (size_t)(x->numel - 1) * w) == 0;
}

/* --- Untying --- */

static enum status add_copy(struct ties *s, const struct item *x, const char *name)
{
	Tensor *t = ARENA_NEW(s->im->m.arena, Tensor);
	if (!t || !name)
		return diag_nomem(s->im->d);
	*t = *x->t;
	t->name = (char *)(uintptr_t)name;
	s->added[s->nadded++] = t;
	return ST_OK;
}

/* Parameters only: nobody misses a constant of the exporter's. */
static void tell_copy(
	struct ties *s, enum split_kind kind, const struct item *x, const char *name, bool unsure)
{
	const struct importer *im = s->im;
	struct told *told = &s->told[kind == SPLIT_UNIFORM && unsure ? SPLIT_UNSURE : kind];
	const bool form = !names_get(&im->module, text_of(x->t->name));
	if (told->n == 0 && kind != SPLIT_NONE)
		text_add(&told->tie, "--tie '%s=%s' keeps that one as it was", x->t->name, name);
	if (kind == SPLIT_UNIFORM && im->module_first && !form && !unsure &&
		!names_get(&im->module, name))
		return;
	if (told->list.len < 300)
		text_add(&told->list, "%s'%s'", told->n ? ", " : "", name);
	told->n++;
}

/* What --tie says that a copy of x is: x itself, or another copy; NULL: it is its own. */
static const char *joined_to(const struct ties *s, const struct item *x, const char *name)
{
	const struct import_options *o = s->im->o;
	for (int i = 0; i < o->ntie; i++) {
		const struct import_tie *t = &o->tie[i];
		const char *other = !strcmp(t->copy, name)   ? t->name
				    : !strcmp(t->name, name) ? t->copy
							     : NULL;
		if (other && (!strcmp(other, x->t->name) || names_get(&s->made, other) == x))
			return other;
	}
	return NULL;
}

/* A new initializer. What another one has made already gets a name that is its own. */
static enum status make_copy(struct ties *s, const struct item *x, const struct reader *r,
	enum split_kind kind, bool unsure, const char **name)
{
	struct arena *a = s->im->m.arena;
	void **at = names_at(&s->made, *name);
	if (at && *at && *at != x) {
		unsure = true;
		*name = arena_printf(
			a, "%s@%s.%zu", x->t->name, text_of(r->node->output[0]), r->input);
		at = *name ? names_at(&s->made, *name) : NULL;
	}
	if (!at)
		return diag_nomem(s->im->d);
	if (*at)
		return ST_OK;
	const char *other = joined_to(s, x, *name);
	if (other) {
		void **joined = names_at(&s->joined, *name);
		if (!joined)
			return diag_nomem(s->im->d);
		*joined = (void *)(uintptr_t)x;
		*name = other;
		return ST_OK;
	}
	*at = (void *)(uintptr_t)x;
	TRY(add_copy(s, x, *name));
	at = names_at(&s->im->copied, *name);
	struct copied *c = at ? *at = ARENA_NEW(a, struct copied) : NULL;
	if (!c)
		return diag_nomem(s->im->d);
	*c = (struct copied){x->t->name, unsure};
	tell_copy(s, kind, x, *name, unsure && s->im->module_first);
	return ST_OK;
}

/* Every reader that should have one gets its own copy. */
static enum status split(struct ties *s, struct item *x, enum split_kind kind)
{
	bool layers = false;
	for (struct reader *r = x->first; r; r = r->next) {
		bool unsure;
		const char *name = r->node->n_output ? owner_copy(s, x, r, kind, &unsure) : NULL;
		if (!name) {
			layers |= kind == SPLIT_STACK && reader_in_stack(x, r);
			continue;
		}
		TRY(make_copy(s, x, r, kind, unsure, &name));
		r->copy = strcmp(name, x->t->name) != 0 ? name : NULL;
	}
	if (layers)
		tell_copy(s, SPLIT_NONE, x, x->t->name, false);
	return ST_OK;
}

bool ties_keep(const struct ties *s, const char *name)
{
	const struct import_options *o = s->im->o;
	for (int i = 0; i < o->ntie; i++)
		if ((!strcmp(o->tie[i].name, name) || !strcmp(o->tie[i].copy, name)) &&
			names_get(&s->item, o->tie[i].name) && names_get(&s->item, o->tie[i].copy))
			return true;
	return false;
}

/* How x is to be split; false: not at all. */
static bool split_kind_of(struct ties *s, struct item *x, enum split_kind *kind)
{
	const char *name = text_of(x->t->name);
	if (x->nreader < 2 || x->t->n_dims == 0 || ties_keep(s, name) || !item_load(s, x))
		return false;
	*kind = name_matches(s->im->o->untie_pattern, name) ? SPLIT_ASKED
		: item_is_uniform(x)                        ? SPLIT_UNIFORM
							    : SPLIT_STACK;
	/* one number that the exporter made, a factor of attention's say, is nobody's parameter */
	return *kind == SPLIT_ASKED || x->numel > 1 || !name_generated(name);
}

static enum status untie(struct ties *s, struct item *x)
{
	enum split_kind kind;
	return split_kind_of(s, x, &kind) ? split(s, x, kind) : ST_OK;
}

/* One message a kind: a deep model has many of them. */
static void tell_split(struct ties *s)
{
	static const char apart[] =
		"equal values that the exporter merged are parameters of their own again";
	static const char stack[] =
		"equal layers of a stack that the exporter merged are separate again";
	static const char unsure[] =
		"equal values that the exporter merged: which of their modules' parameters these "
		"are the file does not tell; they are trained as parameters of their own";
	static const char one[] =
		"read by several layers of a stack: one parameter, as the file has it";
	static const char *const why[SPLIT_KINDS] = {apart, stack, "untied as asked", unsure, one};
	for (int k = 0; k < SPLIT_KINDS; k++) {
		struct told *t = &s->told[k];
		const struct where w = {.file = s->im->m.path};
		const char *more = t->list.len < 300 ? "" : ", ...";
		if (t->n && t->list.s && !t->list.failed && k == SPLIT_UNSURE)
			diag_warn(s->im->d, &w,
				"export with optimize=False; --freeze makes them constants, --tie "
				"NAME=COPY keeps two of them one",
				"%s: %s%s", why[k], t->list.s, more);
		else if (t->n && t->list.s && !t->list.failed)
			diag_note(s->im->d, &w,
				k == SPLIT_ASKED  ? NULL
				: k == SPLIT_NONE ? "--untie NAME parts them"
						  : t->tie.s,
				"%s: %s%s", why[k], t->list.s, more);
		text_free(&t->list);
		text_free(&t->tie);
	}
}

/* --- Tying --- */

static bool is_transposed(const struct item *a, const struct item *b)
{
	int64_t rows = a->t->dims[0], columns = a->t->dims[1];
	size_t w = (size_t)a->width;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = 0; k < columns; k++)
			if (memcmp(a->raw + (size_t)(i * columns + k) * w,
				    b->raw + (size_t)(k * rows + i) * w, w) != 0)
				return false;
	return true;
}

static bool transposed_shapes(const Tensor *a, const Tensor *b)
{
	return a->n_dims == 2 && b->n_dims == 2 && a->dims[0] == b->dims[1] &&
	       a->dims[1] == b->dims[0] && a->data_type == b->data_type;
}

enum status ties_transpose(struct ties *s, struct item *from, const char *to)
{
	struct arena *a = s->im->m.arena;
	Node *n = ARENA_NEW(a, Node);
	char **names = ARENA_ARRAY(a, char *, 2);
	struct reader *r = ARENA_NEW(a, struct reader);
	if (!n || !names || !r)
		return diag_nomem(s->im->d);
	onnx__node_proto__init(n);
	names[0] = from->t->name;
	names[1] = n->name = (char *)(uintptr_t)to;
	n->op_type = (char *)(uintptr_t)op_by_role(s->im->table, ROLE_TRANSPOSE)->name;
	n->input = names;
	n->output = names + 1;
	n->n_input = n->n_output = 1;
	s->node[s->nnode++] = n;
	*r = (struct reader){.node = n};
	*from->end = r;
	from->end = &r->next;
	return ST_OK;
}

/* `copy` is made of `x` from now on: by a node that transposes, or by reading x instead. */
static enum status tie(struct ties *s, struct item *x, struct item *copy, bool transposed)
{
	copy->dropped = s->dropped = true;
	if (transposed)
		return ties_transpose(s, x, copy->t->name);
	for (struct reader *r = copy->first; r; r = r->next)
		r->node->input[r->input] = x->t->name;
	return ST_OK;
}

/* Called as what the exporter makes of others. */
static bool is_made(const struct ties *s, const char *name)
{
	static const char *const permuted[] = {"permute", "transpose", "numpy_t", "t", NULL};
	return name_generated(name) || (s->im->module_first && name_numbered(name, permuted));
}

/* The same for a matrix and its transpose, and hardly for any other. */
static const char *bucket_key(struct ties *s, const struct item *x)
{
	uint64_t sum = 0, rows = (uint64_t)x->t->dims[0], columns = (uint64_t)x->t->dims[1];
	for (int64_t i = 0; i < x->numel; i++) {
		uint64_t v = 0;
		memcpy(&v, x->raw + (size_t)(i * x->width), (size_t)x->width);
		sum += v * UINT64_C(0x9e3779b97f4a7c15);
	}
	return arena_printf(s->im->m.arena, "%d %" PRIu64 " %" PRIu64 " %" PRIu64, x->t->data_type,
		rows + columns, rows * columns, sum);
}

static enum status fill_buckets(struct ties *s)
{
	bool any = false;
	for (size_t i = 0; i < s->graph->n_initializer && !any; i++) {
		const Tensor *t = s->graph->initializer[i];
		any = t->n_dims == 2 && is_made(s, text_of(t->name));
	}
	for (size_t i = s->graph->n_initializer; any && i-- > 0;) {
		struct item *x = item_at(s, i);
		if (!x || x->t->n_dims != 2 || !item_load(s, x) || item_is_uniform(x))
			continue;
		const char *key = bucket_key(s, x);
		void **at = key ? names_at(&s->bucket, key) : NULL;
		if (!at)
			return diag_nomem(s->im->d);
		x->next = *at;
		*at = x;
	}
	return ST_OK;
}

static enum status tie_transposed(struct ties *s, struct item *copy)
{
	const struct import_options *o = s->im->o;
	const char *name = text_of(copy->t->name);
	if (copy->t->n_dims != 2 || !is_made(s, name) || !item_load(s, copy) ||
		item_is_uniform(copy) || name_matches(o->untie_pattern, name) || ties_keep(s, name))
		return ST_OK;
	const char *key = bucket_key(s, copy);
	if (!key)
		return diag_nomem(s->im->d);
	for (struct item *x = names_get(&s->bucket, key); x; x = x->next) {
		if (x == copy || x->dropped || !transposed_shapes(x->t, copy->t) ||
			name_matches(o->untie_pattern, text_of(x->t->name)) ||
			!is_transposed(x, copy))
			continue;
		diag_note(s->im->d, &(struct where){s->im->m.path, name, "initializer"},
			"--untie trains it apart",
			"holds '%s' transposed: tied to it again, their gradients add up",
			x->t->name);
		return tie(s, x, copy, true);
	}
	return ST_OK;
}

/* NULL: it is there, or it was made by untying. */
static const char *missing(const struct ties *s, const char *name)
{
	return names_get(&s->item, name) || names_get(&s->made, name) || names_get(&s->joined, name)
		       ? NULL
		       : name;
}

/* Requires that all is untied. */
static enum status tie_check(const struct ties *s, const struct import_tie *t)
{
	const char *name = missing(s, t->name) ? t->name : missing(s, t->copy);
	const struct where w = {.file = s->im->m.path};
	if (name)
		return diag_fail(s->im->d, ST_USAGE, &w,
			"`stint show MODEL.onnx` lists the initializers",
			"--tie: there is no initializer '%s'", name);
	const bool made = !names_get(&s->item, t->name) || !names_get(&s->item, t->copy);
	if (made && !names_get(&s->joined, t->name) && !names_get(&s->joined, t->copy))
		return diag_fail(s->im->d, ST_USAGE, &w, NULL,
			"--tie %s=%s: not of one initializer of the file", t->name, t->copy);
	return ST_OK;
}

static enum status tie_asked(struct ties *s, const struct import_tie *t)
{
	struct item *x = names_get(&s->item, t->name), *copy = names_get(&s->item, t->copy);
	const struct where w = {.file = s->im->m.path};
	if (!x || !copy || x == copy)
		return ST_OK; /* one that untying makes, or what would be untied: tie_check */
	bool same = x->t->n_dims == copy->t->n_dims && x->t->data_type == copy->t->data_type;
	for (size_t i = 0; same && i < x->t->n_dims; i++)
		same = x->t->dims[i] == copy->t->dims[i];
	if (!same && !transposed_shapes(x->t, copy->t))
		return diag_fail(s->im->d, ST_USAGE, &w, NULL,
			"--tie %s=%s: neither of one shape nor each other's transpose", t->name,
			t->copy);
	return copy->dropped ? ST_OK : tie(s, x, copy, !same);
}

/* --- The file written anew --- */

static enum status rebuild(struct ties *s)
{
	Onnx__GraphProto *g = s->graph;
	struct arena *a = s->im->m.arena;
	Tensor **t = ARENA_ARRAY(a, Tensor *, g->n_initializer + s->nadded);
	Node **n = ARENA_ARRAY(a, Node *, g->n_node + s->nnode);
	size_t nt = 0, nn = 0, ni = 0;
	if (!t || !n)
		return diag_nomem(s->im->d);
	for (size_t i = 0; i < g->n_initializer; i++) {
		const struct item *x = item_at(s, i);
		if (!x || !x->dropped)
			t[nt++] = g->initializer[i];
	}
	for (size_t i = 0; i < s->nadded; i++) {
		const struct item *x = names_get(&s->item, s->added[i]->name);
		if (!x || !x->dropped)
			t[nt++] = s->added[i];
	}
	for (size_t i = 0; i < g->n_input; i++) { /* old files list initializers there too */
		const struct item *x = names_get(&s->item, text_of(g->input[i]->name));
		if (!x || !x->dropped)
			g->input[ni++] = g->input[i];
	}
	g->n_input = ni;
	for (size_t i = 0; i < s->nnode; i++) /* of initializers: in front of who reads them */
		n[nn++] = s->node[i];
	for (size_t i = 0; i < g->n_node; i++)
		if (g->node[i]->n_output || !g->node[i]->n_input) /* no alias that gave way */
			n[nn++] = g->node[i];
	g->initializer = t;
	g->n_initializer = nt;
	g->node = n;
	g->n_node = nn;
	return ST_OK;
}

/* Not before all is decided: names are told by what nodes read in the file. */
static void redirect(struct ties *s)
{
	for (size_t i = 0; i < s->graph->n_initializer; i++) {
		struct item *x = item_at(s, i);
		for (struct reader *r = x ? x->first : NULL; r; r = r->next)
			if (r->copy && reader_is_alias(s, r))
				r->node->n_output = 0; /* the initializer has its name now */
			else if (r->copy)
				r->node->input[r->input] = (char *)(uintptr_t)r->copy;
	}
}

static enum status tie_and_untie(struct ties *s)
{
	for (size_t i = 0; i < s->graph->n_initializer; i++) {
		struct item *x = item_at(s, i);
		if (x && !x->dropped)
			TRY(tie_transposed(s, x));
	}
	TRY(turned_back(s));
	for (int i = 0; i < s->im->o->ntie; i++)
		TRY(tie_asked(s, &s->im->o->tie[i]));
	for (size_t i = 0; i < s->graph->n_initializer; i++) {
		struct item *x = item_at(s, i);
		if (x && !x->dropped)
			TRY(untie(s, x));
	}
	for (int i = 0; i < s->im->o->ntie; i++)
		TRY(tie_check(s, &s->im->o->tie[i]));
	return ST_OK;
}

enum status ties_rewrite(struct importer *im)
{
	struct ties s = {.im = im,
		.graph = im->m.proto->graph,
		.item = {.arena = im->m.arena},
		.bucket = {.arena = im->m.arena},
		.maker = {.arena = im->m.arena},
		.made = {.arena = im->m.arena},
		.joined = {.arena = im->m.arena}};
	im->copied.arena = im->turned.arena = im->m.arena;
	size_t reads = 0, most = s.graph->n_initializer;
	for (size_t i = 0; i < s.graph->n_node; i++)
		reads += s.graph->node[i]->n_input;
	s.added = ARENA_ARRAY(im->m.arena, Tensor *, reads);
	s.node = ARENA_ARRAY(im->m.arena, Node *, reads + most);
	if (!s.added || !s.node)
		return diag_nomem(im->d);
	TRY(list_items(&s));
	TRY(list_readers(&s));
	TRY(owners_read(&s));
	TRY(fill_buckets(&s));
	enum status st = tie_and_untie(&s);
	tell_split(&s);
	TRY(st);
	if (!s.nadded && !s.nnode && !s.dropped)
		return ST_OK;
	redirect(&s);
	return rebuild(&s);
}

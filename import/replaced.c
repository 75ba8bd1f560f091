/* Buffers that a module's forward pass overwrites while it trains: spectral_norm's vectors, moving
 * averages of codebooks. PyTorch's newer exporter notes which value each gets, and mostly leaves
 * the value in the graph: then the step overwrites the buffer, too, and no gradient passes the
 * value, which PyTorch makes without any. Batch-norms keep their statistics by themselves
 * (ops/norm). */
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__NodeProto Node;

enum { NAMES_TOLD = 4 };

struct replaced {
	struct importer *im;
	struct names made;    /* values that nodes make → the node */
	struct names present; /* initializers → TensorProto */
	struct text list[2];  /* replaced; of unknown value */
	int n[2];
};

/* As batch-norms call theirs. */
static bool is_statistic(const char *buffer)
{
	static const char *const leaf[] = {
		"running_mean", "running_var", "num_batches_tracked", NULL};
	return name_listed(leaf, name_leaf(buffer));
}

static enum status list_names(struct replaced *r)
{
	const Onnx__GraphProto *g = r->im->m.proto->graph;
	for (size_t i = 0; i < g->n_initializer; i++) {
		void **at = names_at(&r->present, text_of(g->initializer[i]->name));
		if (!at)
			return diag_nomem(r->im->d);
		*at = g->initializer[i];
	}
	for (size_t i = 0; i < g->n_node; i++)
		for (size_t k = 0; k < g->node[i]->n_output; k++) {
			void **at = names_at(&r->made, text_of(g->node[i]->output[k]));
			if (!at)
				return diag_nomem(r->im->d);
			*at = g->node[i];
		}
	return ST_OK;
}

static void add_name(struct replaced *r, bool unknown, const char *name)
{
	if (r->n[unknown]++ < NAMES_TOLD)
		text_add(&r->list[unknown], "%s'%s'", r->n[unknown] > 1 ? ", " : "", name);
}

/* Whether `value` comes from a constant that the exporter computed: of the buffer, it may be, which
 * is then read nowhere else. */
static enum status reads_computed(struct replaced *r, const char *value, bool *computed)
{
	const struct importer *im = r->im;
	struct names seen = {.arena = im->m.arena};
	const char **stack = ARENA_ARRAY(im->m.arena, const char *, r->made.n + r->present.n + 1);
	int left = 0;
	if (!stack)
		return diag_nomem(im->d);
	for (stack[left++] = value; left > 0 && !*computed;) {
		const char *name = stack[--left];
		const Node *n = names_get(&r->made, name);
		const Onnx__TensorProto *t = names_get(&r->present, name);
		*computed = t && t->n_dims > 0 && !names_get(&im->module, name) &&
			    t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
		for (size_t k = 0; n && k < n->n_input; k++) {
			const char *in = text_of(n->input[k]);
			if (!names_get(&r->made, in) && !names_get(&r->present, in))
				continue;
			void **at = names_at(&seen, in);
			if (!at)
				return diag_nomem(im->d);
			if (!*at)
				stack[left++] = in;
			*at = r;
		}
	}
	return ST_OK;
}

static enum status look_at(struct replaced *r, const char *value, const char *buffer)
{
	const bool present = names_get(&r->present, buffer) != NULL;
	if (is_statistic(buffer))
		return ST_OK;
	if (!names_get(&r->made, value)) {
		if (present)
			add_name(r, true, buffer);
		return ST_OK;
	}
	void **at = names_at(&r->im->replacing, value);
	if (!at)
		return diag_nomem(r->im->d);
	*at = (void *)(uintptr_t)buffer;
	if (present) {
		add_name(r, false, buffer);
		return ST_OK;
	}
	bool computed = false;
	TRY(reads_computed(r, value, &computed));
	if (computed)
		add_name(r, true, buffer);
	return ST_OK;
}

static void tell(struct replaced *r)
{
	const struct where w = {.file = r->im->m.path};
	if (r->n[1] && !r->list[1].failed)
		diag_warn(r->im->d, &w,
			"export with optimize=False; a new value that nothing reads must be an "
			"output of the model",
			"PyTorch overwrites %d buffer%s as it trains; what becomes of it the file "
			"does not tell, and %s as in the file: %s%s",
			r->n[1], r->n[1] == 1 ? "" : "s", r->n[1] == 1 ? "it stays" : "they stay",
			r->list[1].s, r->n[1] > NAMES_TOLD ? ", ..." : "");
	if (r->n[0] && !r->list[0].failed)
		diag_note(r->im->d, &w, NULL, "each step overwrites, as PyTorch does: %s%s",
			r->list[0].s, r->n[0] > NAMES_TOLD ? ", ..." : "");
	text_free(&r->list[0]);
	text_free(&r->list[1]);
}

/* "div_1: BUFFER_MUTATION target='a.0._v'", a line each. */
static enum status read_lines(struct replaced *r, const char *text)
{
	static const char word[] = ": BUFFER_MUTATION target='";
	struct arena *a = r->im->m.arena;
	for (const char *at; (at = strstr(text, word)); text = at + 1) {
		const char *line = at, *name = at + strlen(word), *end = strchr(name, '\'');
		while (line > text && line[-1] != '\n')
			line--;
		const char *value = arena_strndup(a, line, (size_t)(at - line));
		const char *buffer = end ? arena_strndup(a, name, (size_t)(end - name)) : "";
		if (!value || !buffer)
			return diag_nomem(r->im->d);
		TRY(look_at(r, value, buffer));
	}
	return ST_OK;
}

/* A file without notes: spectral_norm's vectors by their names, "a.weight_u" beside
 * "a.weight_orig", "a.parametrizations.weight.0._u" beside "a.parametrizations.weight.original". */
static bool is_spectral(const struct replaced *r, const char *name)
{
	static const struct {
		const char *end, *beside;
	} kind[] = {{"_u", "_orig"}, {"_v", "_orig"}, {"0._u", "original"}, {"0._v", "original"}};
	const size_t n = strlen(name);
	for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
		const size_t m = strlen(kind[i].end);
		if (n <= m || strcmp(name + n - m, kind[i].end) != 0)
			continue;
		const char *other = arena_printf(
			r->im->m.arena, "%.*s%s", (int)(n - m), name, kind[i].beside);
		if (other && names_get(&r->present, other))
			return true;
	}
	return false;
}

static enum status warn_by_name(struct replaced *r)
{
	const Onnx__GraphProto *g = r->im->m.proto->graph;
	for (size_t i = 0; i < g->n_initializer; i++)
		if (is_spectral(r, text_of(g->initializer[i]->name)))
			add_name(r, true, text_of(g->initializer[i]->name));
	if (r->n[1] && !r->list[1].failed)
		diag_warn(r->im->d, &(struct where){.file = r->im->m.path},
			"export with dynamo=True, which notes the new values; or --freeze these "
			"and "
			"--stop-gradient the nodes that normalise them",
			"looks like spectral_norm, whose vectors PyTorch overwrites as it trains; "
			"the file does not tell the new values: %s%s",
			r->list[1].s, r->n[1] > NAMES_TOLD ? ", ..." : "");
	text_free(&r->list[1]);
	return ST_OK;
}

enum status replaced_read(struct importer *im)
{
	struct arena *a = im->m.arena;
	struct replaced r = {.im = im, .made = {.arena = a}, .present = {.arena = a}};
	im->replacing.arena = a;
	const char *text = metadata_get(a, &im->m.proto->graph->base, GRAPH_METADATA,
		"pkg.torch.export.ExportedProgram.graph_signature");
	if (text && !strstr(text, "BUFFER_MUTATION"))
		return ST_OK;
	TRY(list_names(&r));
	if (!text)
		return warn_by_name(&r);
	const enum status st = read_lines(&r, text);
	tell(&r);
	return st;
}

enum status replaced_build(struct importer *im)
{
	struct graph *g = im->g;
	const struct op_def *op = op_by_role(g->table, ROLE_BUFFER);
	for (int i = 0; op && i < im->replacing.cap; i++) {
		const struct name_slot *s = im->replacing.slot + i;
		struct tensor *buffer = s->name ? names_get(im->top.tensor, s->value) : NULL;
		struct value v;
		if (!buffer || !scope_get(&im->top, s->name, &v) || v.kind != VALUE_TENSOR)
			continue;
		if (!buffer->data || buffer->maker || !tensor_same_shape(buffer, v.tensor) ||
			buffer->dtype != v.tensor->dtype)
			continue;
		buffer->role = TR_BUFFER;
		g->scope = s->value;
		if (!OP2(g, op->name, buffer, v.tensor))
			return g->failed;
		g->scope = NULL;
	}
	return ST_OK;
}

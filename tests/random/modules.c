/* The same model as PyTorch's newer exporter writes it: parameters named after modules, nodes that
 * say which module they come from, and one initializer for all parameters that are uniform and
 * equal. */
#include <stdio.h>
#include <string.h>

#include "tests/import/notes.h"
#include "tests/random/random.h"

typedef Onnx__TensorProto Tensor;
typedef Onnx__NodeProto Node;

/* An initializer that a module has. */
struct member {
	Tensor *t;
	bool trained, lost;
	int module; /* that of another member with a lower number, or itself: see module_of */
	const char *old, *name;    /* in the plain file, in this one */
	const struct member *kept; /* what stands for a lost one */
};

struct modules {
	struct generator *g;
	Onnx__GraphProto *graph;
	int n;
	struct member *member;
	bool *inner; /* by module: its parameters are a submodule's, its nodes read them all the
			same */
	bool calls;  /* nodes say which call they come from, of which parameters */
};

static struct member *member_of(const struct modules *s, const char *name)
{
	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->member[i].old, name))
			return &s->member[i];
	return NULL;
}

static int module_of(const struct modules *s, const struct member *m)
{
	int i = (int)(m - s->member);
	while (s->member[i].module != i)
		i = s->member[i].module;
	return i;
}

static bool reads(const Node *n, const struct member *m)
{
	for (size_t i = 0; i < n->n_input; i++)
		if (!strcmp(n->input[i], m->old))
			return true;
	return false;
}

/* What one node reads is of one module; scalars that are not trained are nobody's. */
static void find_members(struct modules *s)
{
	s->member = ARENA_ARRAY(s->g->t->arena, struct member, s->graph->n_initializer + 1);
	s->inner = ARENA_ARRAY(s->g->t->arena, bool, s->graph->n_initializer + 1);
	for (size_t i = 0; i < s->graph->n_initializer; i++) {
		Tensor *t = s->graph->initializer[i];
		if (t->data_type != TENSOR_TYPE(FLOAT) || (t->n_dims == 0 && *t->name != 'p'))
			continue;
		s->inner[s->n] = draw_chance(s->g, 0.4);
		s->member[s->n] = (struct member){
			.t = t, .old = t->name, .trained = *t->name == 'p', .module = s->n};
		s->n++;
	}
	for (size_t i = 0; i < s->graph->n_node; i++) {
		int first = -1;
		for (size_t k = 0; k < s->graph->node[i]->n_input; k++) {
			const struct member *m = member_of(s, s->graph->node[i]->input[k]);
			if (!m)
				continue;
			int own = module_of(s, m), a = first < 0 ? own : first;
			first = own < a ? own : a;
			s->member[own > a ? own : a].module = first;
		}
	}
}

static bool same_readers(const struct modules *s, const struct member *a, const struct member *b)
{
	for (size_t i = 0; i < s->graph->n_node; i++)
		if (reads(s->graph->node[i], a) != reads(s->graph->node[i], b))
			return false;
	return true;
}

static bool is_uniform(const Tensor *t)
{
	return t->raw_data.len >= sizeof(float) &&
	       !memcmp(t->raw_data.data, t->raw_data.data + sizeof(float),
		       t->raw_data.len - sizeof(float));
}

static bool are_equal(const Tensor *a, const Tensor *b)
{
	return a->n_dims == b->n_dims && !memcmp(a->dims, b->dims, a->n_dims * sizeof *a->dims) &&
	       !memcmp(a->raw_data.data, b->raw_data.data, a->raw_data.len);
}

/* Whether the file still tells where m belongs once `kept` stands for it. By scopes alone: when the
 * module's lost ones are read together or not at all. */
static bool may_be_lost(const struct modules *s, const struct member *m, const struct member *kept)
{
	if (!m->trained || !kept->trained || kept->lost || !is_uniform(m->t) ||
		!are_equal(m->t, kept->t) || module_of(s, m) == module_of(s, kept))
		return false;
	for (const struct member *o = s->member; o < s->member + s->n && !s->calls; o++)
		if (o->lost && module_of(s, o) == module_of(s, m) && !same_readers(s, o, m))
			return false;
	return true;
}

static int merge(struct modules *s)
{
	int lost = 0;
	for (struct member *m = s->member; m < s->member + s->n; m++)
		for (struct member *k = s->member; k < m && !m->lost && m->t->n_dims > 0; k++)
			if (may_be_lost(s, m, k)) {
				m->lost = true;
				m->kept = k;
				lost++;
			}
	return lost;
}

static void name_all(struct modules *s)
{
	for (struct member *m = s->member; m < s->member + s->n; m++) {
		int i = module_of(s, m);
		m->name = format(s->g, "m%d%s.%s", i, s->inner[i] ? ".inner" : "", m->old);
	}
	for (size_t i = 0; i < s->graph->n_node; i++) {
		Node *n = s->graph->node[i];
		const char *scope = "", *arguments = "";
		for (size_t k = 0; k < n->n_input; k++) {
			const struct member *m = member_of(s, n->input[k]);
			arguments = format(s->g, "%s%s%%%s%s", arguments, k ? ", " : "",
				m ? m->trained ? "p_" : "b_" : "", n->input[k]);
			if (!m)
				continue;
			scope = format(s->g, "m%d", module_of(s, m));
			n->input[k] = arena_strdup(
				s->g->t->arena, m->lost ? m->kept->name : m->name);
		}
		notes_from(s->g->t, scope, n);
		if (s->calls)
			notes_call(s->g->t, n->name, n->op_type, arguments, n);
	}
}

static void write_signature(struct modules *s)
{
	struct text lines = {0};
	size_t left = 0;
	for (const struct member *m = s->member; m < s->member + s->n; m++)
		text_add(&lines, "%c_%s: %s target='%s'\n", m->trained ? 'p' : 'b', m->old,
			m->trained ? "PARAMETER" : "BUFFER", m->name);
	notes_put(s->g->t, &s->graph->base, 16, "pkg.torch.export.ExportedProgram.graph_signature",
		lines.s);
	text_free(&lines);
	for (size_t i = 0; i < s->graph->n_initializer; i++) {
		Tensor *t = s->graph->initializer[i];
		const struct member *m = member_of(s, t->name);
		if (!m || !m->lost)
			s->graph->initializer[left++] = t;
		if (m)
			t->name = arena_strdup(s->g->t->arena, m->name);
	}
	s->graph->n_initializer = left;
}

static void *from_arena(void *arena, size_t n)
{
	return arena_alloc(arena, n, 1);
}

static void not_freed(void *arena, void *p)
{
	(void)arena;
	(void)p;
}

int random_as_modules(struct generator *g, const char *path)
{
	ProtobufCAllocator arena = {from_arena, not_freed, g->t->arena};
	size_t len;
	const uint8_t *bytes = model_pack(g->t, &len);
	Onnx__ModelProto *model = onnx__model_proto__unpack(&arena, len, bytes);
	if (!model)
		return -1;
	struct modules s = {.g = g, .graph = model->graph, .calls = draw_chance(g, 0.6)};
	find_members(&s);
	int lost = merge(&s);
	name_all(&s);
	write_signature(&s);
	len = onnx__model_proto__get_packed_size(model);
	uint8_t *packed = ARENA_ARRAY(g->t->arena, uint8_t, len);
	onnx__model_proto__pack(model, packed);
	FILE *f = fopen(path, "wb");
	bool ok = f && fwrite(packed, 1, len, f) == len;
	return f && fclose(f) == 0 && ok ? lost : -1;
}

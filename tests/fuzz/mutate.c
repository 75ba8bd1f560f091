/* Changes to a model that leave it a model: another operator, another input, another size, another
 * attribute. Bytes changed at random seldom get past the reader. */
#include <stdlib.h>
#include <string.h>

#include "onnx.pb-c.h"
#include "ops/ops.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

struct change {
	struct arena *arena;
	uint32_t seed;
	Onnx__ModelProto *model;
	Onnx__GraphProto *graph; /* the model's, or one in it */
};

static uint32_t draw(struct change *c, size_t n)
{
	c->seed = c->seed * 1664525u + 1013904223u; /* Numerical Recipes' generator */
	return n ? (uint32_t)((uint64_t)(c->seed >> 4) * n >> 28) : 0;
}

static int64_t number(struct change *c)
{
	static const int64_t odd[] = {INT64_MIN, INT64_MAX, INT32_MAX, (int64_t)INT32_MAX + 1,
		INT64_C(1) << 62, 1000000, 65536, -1000, 100};
	return draw(c, 8) ? (int64_t)draw(c, 9) - 3 : odd[draw(c, sizeof odd / sizeof *odd)];
}

static void *alloc(void *user, size_t size)
{
	return arena_alloc(user, size, 1);
}

static void leave(void *user, void *p)
{
	(void)user, (void)p;
}

static bool has_node(const struct change *c)
{
	return c->graph->n_node > 0;
}

static Onnx__NodeProto *some_node(struct change *c)
{
	return c->graph->node[draw(c, c->graph->n_node)];
}

static const struct op_def *some_record(struct change *c)
{
	const struct op_table *t = ops_table();
	for (;;) {
		const struct op_def *r = t->family[draw(c, (size_t)t->nfamily)];
		int n = 0;
		while (r[n].name)
			n++;
		r += draw(c, (size_t)n);
		if (strncmp(r->name, "stint.", 6) != 0)
			return r;
	}
}

static char *some_name(struct change *c)
{
	const Onnx__GraphProto *g = draw(c, 4) ? c->graph : c->model->graph;
	uint32_t n = draw(c, g->n_input + g->n_initializer + g->n_node);
	char *name = NULL;
	if (n < g->n_input)
		name = g->input[n]->name;
	else if (n - g->n_input < g->n_initializer)
		name = g->initializer[n - g->n_input]->name;
	else if (g->n_node) {
		const Onnx__NodeProto *p = g->node[draw(c, g->n_node)];
		name = p->n_output ? p->output[draw(c, p->n_output)] : NULL;
	}
	return name ? name : (char[]){""};
}

/* A list with one more entry at its end. */
static void *longer(struct change *c, const void *list, size_t n, size_t size)
{
	char *out = arena_alloc(c->arena, n + 1, size);
	if (out && n)
		memcpy(out, list, n * size);
	return out;
}

static void change_operator(struct change *c)
{
	some_node(c)->op_type = arena_strdup(c->arena, some_record(c)->name);
}

static void change_input(struct change *c)
{
	Onnx__NodeProto *p = some_node(c);
	if (p->n_input)
		p->input[draw(c, p->n_input)] = arena_strdup(
			c->arena, draw(c, 6) ? some_name(c) : "");
}

static void add_input(struct change *c)
{
	Onnx__NodeProto *p = some_node(c);
	p->input = longer(c, p->input, p->n_input, sizeof *p->input);
	p->input[p->n_input++] = arena_strdup(c->arena, some_name(c));
}

static void drop_input(struct change *c)
{
	Onnx__NodeProto *p = some_node(c);
	p->n_input -= p->n_input > 0;
}

static void add_output(struct change *c)
{
	Onnx__NodeProto *p = some_node(c);
	p->output = longer(c, p->output, p->n_output, sizeof *p->output);
	p->output[p->n_output++] = arena_printf(c->arena, "o%u", draw(c, 1000));
}

/* A node of its own behind the others, reading what there is; its output is the model's too. */
static void add_node(struct change *c)
{
	Onnx__GraphProto *g = c->graph;
	Onnx__NodeProto *p = ARENA_NEW(c->arena, Onnx__NodeProto);
	const struct op_def *r = some_record(c);
	onnx__node_proto__init(p);
	p->op_type = arena_strdup(c->arena, r->name);
	int n = r->min_in +
		(int)draw(c, r->max_in < 0 ? 3 : (size_t)(op_max_in(r) - r->min_in + 1));
	p->input = ARENA_ARRAY(c->arena, char *, n);
	while (n-- > 0)
		p->input[p->n_input++] = arena_strdup(c->arena, some_name(c));
	p->output = ARENA_ARRAY(c->arena, char *, 1);
	p->output[p->n_output++] = arena_printf(c->arena, "n%u", draw(c, 100000));
	g->node = longer(c, g->node, g->n_node, sizeof *g->node);
	g->node[g->n_node++] = p;
	if (g->n_output)
		g->output[draw(c, g->n_output)]->name = p->output[0];
}

static void drop_node(struct change *c)
{
	Onnx__GraphProto *g = c->graph;
	size_t i = draw(c, g->n_node);
	memmove(g->node + i, g->node + i + 1, (g->n_node - i - 1) * sizeof *g->node);
	g->n_node--;
}

static void change_attribute(struct change *c)
{
	Onnx__NodeProto *p = some_node(c);
	if (!p->n_attribute)
		return;
	Onnx__AttributeProto *a = p->attribute[draw(c, p->n_attribute)];
	a->i = number(c);
	a->f = (float)number(c) / 2;
	if (a->n_ints)
		a->ints[draw(c, a->n_ints)] = number(c);
	if (a->n_ints && !draw(c, 4))
		a->n_ints--;
	if (a->t && a->t->n_int64_data)
		a->t->int64_data[draw(c, a->t->n_int64_data)] = number(c);
}

static void add_attribute(struct change *c)
{
	static const char *const names[] = {"axis", "axes", "perm", "keepdims", "to", "mode",
		"kernel_shape", "strides", "pads", "dilations", "group", "split", "alpha",
		"epsilon", "transA", "transB", "num_outputs", "auto_pad", "ceil_mode", "start",
		"end", "largest", "direction", "hidden_size", "reduction", "exclusive", "reverse",
		"batch_dims", "num_groups", "equation", "new_axis", "value_ints", "output_padding"};
	static const char *const texts[] = {"SAME_UPPER", "VALID", "constant", "reflect", "edge",
		"linear", "cubic", "add", "mean", "none", "bidirectional", "ij,jk->ik", "..i->i"};
	Onnx__NodeProto *p = some_node(c);
	Onnx__AttributeProto *a = ARENA_NEW(c->arena, Onnx__AttributeProto);
	onnx__attribute_proto__init(a);
	a->name = arena_strdup(c->arena, names[draw(c, sizeof names / sizeof *names)]);
	switch (draw(c, 4)) {
	case 0:
		a->has_i = 1;
		a->i = number(c);
		break;
	case 1:
		a->ints = ARENA_ARRAY(c->arena, int64_t, 8);
		for (a->n_ints = 0; a->n_ints < 8 && draw(c, 4);)
			a->ints[a->n_ints++] = number(c);
		break;
	case 2:
		a->has_f = 1;
		a->f = (float)number(c) / 4;
		break;
	default:
		a->has_s = 1;
		a->s.data = (uint8_t *)arena_strdup(
			c->arena, texts[draw(c, sizeof texts / sizeof *texts)]);
		a->s.len = strlen((char *)a->s.data);
	}
	p->attribute = longer(c, p->attribute, p->n_attribute, sizeof *p->attribute);
	p->attribute[p->n_attribute++] = a;
}

static void drop_attribute(struct change *c)
{
	Onnx__NodeProto *p = some_node(c);
	if (!p->n_attribute)
		return;
	p->attribute[draw(c, p->n_attribute)] = p->attribute[p->n_attribute - 1];
	p->n_attribute--;
}

/* Known integers: axes, shapes, trip counts. */
static void change_value(struct change *c)
{
	if (!c->graph->n_initializer)
		return;
	Onnx__TensorProto *t = c->graph->initializer[draw(c, c->graph->n_initializer)];
	int64_t v = number(c);
	if (t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 && t->raw_data.len >= 8)
		memcpy(t->raw_data.data + 8 * draw(c, t->raw_data.len / 8), &v, 8);
	else if (t->n_int64_data)
		t->int64_data[draw(c, t->n_int64_data)] = v;
}

static void change_size(struct change *c)
{
	if (!c->graph->n_input)
		return;
	Onnx__TypeProto *type = c->graph->input[draw(c, c->graph->n_input)]->type;
	if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
		return;
	Onnx__TensorShapeProto *s = type->tensor_type->shape;
	if (!draw(c, 6))
		type->tensor_type->elem_type = (int)draw(c, 17);
	if (!s || !s->n_dim)
		return;
	Onnx__TensorShapeProto__Dimension *d = s->dim[draw(c, s->n_dim)];
	d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
	d->dim_value = number(c);
	s->n_dim -= !draw(c, 6);
}

static void change_opset(struct change *c)
{
	if (c->model->n_opset_import)
		c->model->opset_import[0]->version = 7 + draw(c, 19);
}

static void change_model(struct change *c)
{
	static void (*const how[])(struct change * c) = {change_operator, change_input, add_input,
		drop_input, add_output, drop_node, change_attribute, add_attribute, drop_attribute};
	static void (*const always[])(struct change * c) = {
		add_node, change_value, change_value, change_size, change_opset};
	enum { HOW = sizeof how / sizeof *how, ALWAYS = sizeof always / sizeof *always };
	uint32_t k = draw(c, HOW + ALWAYS);
	if (k >= HOW)
		always[k - HOW](c);
	else if (has_node(c))
		how[k](c);
}

/* Sometimes a graph in an attribute is what is changed. */
static void choose_graph(struct change *c)
{
	c->graph = c->model->graph;
	for (size_t i = 0; i < c->model->graph->n_node; i++) {
		const Onnx__NodeProto *p = c->model->graph->node[i];
		for (size_t k = 0; k < p->n_attribute; k++)
			if (p->attribute[k]->g && draw(c, 2))
				c->graph = p->attribute[k]->g;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	struct change c = {.arena = arena_new(), .seed = seed};
	ProtobufCAllocator allocator = {alloc, leave, c.arena};
	size_t len = 0;
	if (c.arena && draw(&c, 2))
		c.model = onnx__model_proto__unpack(&allocator, size, data);
	if (c.model && c.model->graph) {
		for (uint32_t n = 1 + draw(&c, 3); n; n--) {
			choose_graph(&c);
			change_model(&c);
		}
		len = onnx__model_proto__get_packed_size(c.model);
		if (len && len <= max_size)
			onnx__model_proto__pack(c.model, data);
		else
			len = 0;
	}
	arena_free(c.arena);
	return len ? len : LLVMFuzzerMutate(data, size, max_size);
}

/* test_refused TABLE: what operators say of nodes that they do not take. A line of TABLE is a model
 * of one node, its inputs, and the message, all of it:
 *
 *	Concat axis=0 | 2,3 2,4 | inputs [2, 3] and [2, 4] differ at axis 1
 *
 * The message must name the file, the node and its operator, or that which stands before it as
 * "stint.Name: ", which the node has become. It comes when the model is read, or
 * when its graph becomes that of training. Names that begin with "stint." are no models': such a
 * node is put into a graph as passes do. "Name@9" is of opset 9, "Name>3" has three outputs,
 * "domain.Name" is of that domain. Attributes: 3, 0.5 (a point makes a real), word,
 * [1,2], [0.5,1.0], [word,word]. Inputs, which are called a, b, ...: 2,3 (reals), 2,3:i64,
 * 2,3:bool, () a scalar; =[1,-1] and =3 known integers, =f[0.5] and =f0.5 known reals,
 * =b[1,0] known truths; {2,3;4} a sequence of tensors; - absent.
 * Lines that begin with # say something to the reader. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/pass.h"
#include "ops/ops.h"
#include "tests/import/model.h"

static const char *table_path;

/* --- A line --- */

static bool is_number(const char *s)
{
	return isdigit((unsigned char)s[*s == '-' || *s == '.']);
}

/* "[1,2]" or "1" without its brackets, and how many there are. */
static char *between(struct model_test *t, const char *s, size_t *n)
{
	char *copy = arena_strdup(t->arena, *s == '[' ? s + 1 : s);
	copy[strcspn(copy, "]")] = '\0';
	*n = *copy != '\0';
	for (const char *p = copy; *p; p++)
		*n += *p == ',';
	return copy;
}

static void put_attribute(struct model_test *t, Onnx__NodeProto *node, char *text)
{
	char *value = strchr(text, '=');
	assert_non_null(value);
	*value++ = '\0';
	size_t n;
	const bool list = *value == '[';
	char *rest = between(t, value, &n);
	n = list ? n : 1;
	const bool word = !is_number(rest) && n, real = !word && strchr(rest, '.');
	Onnx__AttributeProto *a = model_attribute(t, node, text,
		word   ? (list ? ATTRIBUTE_TYPE(STRINGS) : ATTRIBUTE_TYPE(STRING))
		: real ? (list ? ATTRIBUTE_TYPE(FLOATS) : ATTRIBUTE_TYPE(FLOAT))
		       : (list ? ATTRIBUTE_TYPE(INTS) : ATTRIBUTE_TYPE(INT)));
	a->ints = ARENA_ARRAY(t->arena, int64_t, n + 1);
	a->floats = ARENA_ARRAY(t->arena, float, n + 1);
	a->strings = ARENA_ARRAY(t->arena, ProtobufCBinaryData, n + 1);
	for (size_t i = 0; i < n; i++) {
		char *s = strsep(&rest, list ? "," : "");
		a->ints[i] = a->i = strtoll(s, NULL, 10);
		a->floats[i] = a->f = strtof(s, NULL);
		a->strings[i] = a->s = (ProtobufCBinaryData){strlen(s), (uint8_t *)s};
	}
	a->has_i = a->has_f = a->has_s = !list;
	a->n_ints = list && !word && !real ? n : 0;
	a->n_floats = list && real ? n : 0;
	a->n_strings = list && word ? n : 0;
}

/* Known values: integers, after an f reals, after a b truths. */
static void put_known(struct model_test *t, const char *name, const char *s)
{
	const bool real = *s == 'f', truth = *s == 'b';
	s += real || truth;
	size_t n;
	char *rest = between(t, s, &n);
	float *f = ARENA_ARRAY(t->arena, float, n + 1);
	int64_t *v = ARENA_ARRAY(t->arena, int64_t, n + 1);
	bool *b = ARENA_ARRAY(t->arena, bool, n + 1);
	for (size_t i = 0; i < n; i++) {
		const char *one = strsep(&rest, ",");
		f[i] = strtof(one, NULL);
		v[i] = strtoll(one, NULL, 10);
		b[i] = v[i] != 0;
	}
	const int type = real ? TENSOR_TYPE(FLOAT) : truth ? TENSOR_TYPE(BOOL) : TENSOR_TYPE(INT64);
	const void *data = real ? (const void *)f : truth ? (const void *)b : v;
	model_raw(model_tensor(t, name, type, *s == '[' ? arena_printf(t->arena, "%zu", n) : ""),
		data,
		n * (real           ? sizeof *f
			    : truth ? sizeof *b
				    : sizeof *v));
}

static void put_input(struct model_test *t, const char *name, char *s);

/* A sequence of inputs, called a0, a1, ... */
static void put_sequence(struct model_test *t, const char *name, char *s)
{
	struct text items = {0};
	s[strcspn(s, "}")] = '\0';
	for (int i = 0; s && *s; i++) {
		char *item = strsep(&s, ";");
		text_add(&items, "%s%s%d", i ? "," : "", name, i);
		put_input(t, arena_printf(t->arena, "%s%d", name, i), item);
	}
	model_node(t, items.s ? "SequenceConstruct" : "SequenceEmpty", "made",
		items.s ? items.s : "", name);
	text_free(&items);
}

static void put_input(struct model_test *t, const char *name, char *s)
{
	if (*s == '{') {
		put_sequence(t, name, s + 1);
		return;
	}
	if (*s == '=') {
		put_known(t, name, s + 1);
		return;
	}
	char *type = strchr(s, ':');
	if (type)
		*type++ = '\0';
	model_input(t, name,
		!type                   ? TENSOR_TYPE(FLOAT)
		: !strcmp(type, "bool") ? TENSOR_TYPE(BOOL)
		: !strcmp(type, "i64")  ? TENSOR_TYPE(INT64)
					: -1,
		strcmp(s, "()") != 0 ? s : "");
}

static void put_node(struct model_test *t, char *text, char *inputs)
{
	struct text in = {0}, out = {0};
	char name[] = "a";
	for (char *s; inputs && *inputs && (s = strsep(&inputs, " ")); name[0]++) {
		const bool absent = !strcmp(s, "-");
		text_add(&in, "%s%s", name[0] > 'a' ? "," : "", absent ? "" : name);
		if (!absent)
			put_input(t, name, s);
	}
	char *op = strsep(&text, " ");
	char *opset = strchr(op, '@'), *outputs = strchr(op, '>');
	const int n = outputs ? atoi(outputs + 1) : 1;
	for (int i = 0; i < n; i++)
		text_add(&out, "%sy%d", i ? "," : "", i);
	if (opset)
		t->model.opset_import[0]->version = atoi(opset + 1);
	op[strcspn(op, "@>")] = '\0';
	const char *read = in.s ? in.s : "";
	const bool ours = !strncmp(op, "stint.", 6);
	Onnx__NodeProto *node = !ours && strchr(op, '.') ? model_custom(t, op, "n", read, out.s)
							 : model_node(t, op, "n", read, out.s);
	for (char *s; text && (s = strsep(&text, " "));)
		put_attribute(t, node, s);
	model_output(t, "y0");
	text_free(&in);
	text_free(&out);
}

/* --- What is said of it --- */

/* The model is read and its graph lowered. */
static enum status read_and_lower(struct model_test *t)
{
	struct graph *lowered;
	TRY(model_import(t));
	return graph_lower(t->g, &(struct lower_options){.mode = LOWER_TRAIN}, &lowered);
}

/* The model's node in a graph of its inputs, without a file that could have it. */
static enum status put_in_graph(struct model_test *t)
{
	static const struct target target = {.portable = true, .threads = 1};
	const Onnx__NodeProto *from = t->graph.node[t->graph.n_node - 1];
	struct tensor *in[16] = {0};
	struct attr *attr = ARENA_ARRAY(t->arena, struct attr, from->n_attribute + 1);
	struct node *n;
	struct graph *g = graph_new(t->arena, &t->diag, "a/model.onnx", t->table, &target, DT_F32);
	assert_true(g && attr && from->n_input <= 16);
	for (size_t i = 0, k = 0; i < from->n_input; i++) {
		if (!*from->input[i])
			continue;
		const Onnx__TypeProto__Tensor *type = t->graph.input[k++]->type->tensor_type;
		int64_t dim[RANK_MAX];
		for (size_t d = 0; d < type->shape->n_dim; d++)
			dim[d] = type->shape->dim[d]->dim_value;
		in[i] = graph_tensor(g, from->input[i],
			type->elem_type == TENSOR_TYPE(FLOAT)  ? DT_F32
			: type->elem_type == TENSOR_TYPE(BOOL) ? DT_BOOL
							       : DT_I64,
			(int)type->shape->n_dim, dim);
		in[i]->role = TR_INPUT;
	}
	for (size_t i = 0; i < from->n_attribute; i++) {
		const Onnx__AttributeProto *a = from->attribute[i];
		attr[i] = a->type == ATTRIBUTE_TYPE(INTS)
				  ? ATTR_IS(a->name, (int)a->n_ints, a->ints)
			  : a->type == ATTRIBUTE_TYPE(INT) ? ATTR_I(a->name, a->i)
							   : ATTR_F(a->name, a->f);
	}
	return graph_node(g, from->op_type, "n", (int)from->n_input, in, (int)from->n_output,
		(int)from->n_attribute, attr, NULL, &n);
}

/* Whether the line's node is refused as it says; prints why not. */
static bool is_refused(const char *line)
{
	void *state;
	assert_int_equal(model_setup(&state), 0);
	struct model_test *t = state;
	t->table = ops_table();
	char *rest = arena_strdup(t->arena, line), *part[3];
	for (int i = 0; i < 3; i++) {
		char *end = i < 2 && rest ? strstr(rest, " | ") : NULL;
		part[i] = rest;
		if (end)
			*end = '\0';
		rest = end ? end + 3 : NULL;
	}
	assert_non_null(part[2]);
	put_node(t, part[0], part[1]);
	const char *op = strncmp(part[2], "stint.", 6) ? line : part[2];
	const char *said = op == line ? part[2] : strchr(op, ' ') + 1;
	const char *want = arena_printf(
		t->arena, "/model.onnx: n (%.*s): %s | ", (int)strcspn(op, " @>:"), op, said);
	const enum status st = strncmp(line, "stint.", 6) ? read_and_lower(t) : put_in_graph(t);
	const bool ok = st == ST_INVALID && t->said.s && strstr(t->said.s, want);
	if (!ok)
		print_error("%s\n\tstatus %d: %s\n", line, st, t->said.s ? t->said.s : "");
	model_teardown(&state);
	return ok;
}

static void refused(void **state)
{
	(void)state;
	FILE *f = fopen(table_path, "r");
	char *line = NULL;
	size_t room = 0;
	int n = 0, failed = 0;
	assert_non_null(f);
	while (getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line || *line == '#')
			continue;
		n++;
		failed += !is_refused(line);
	}
	free(line);
	fclose(f);
	print_message("%d nodes\n", n);
	assert_true(n > 100);
	assert_int_equal(failed, 0);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	table_path = argv[1];
	const struct CMUnitTest tests[] = {cmocka_unit_test(refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/import/notes.h"

static void put_text(struct text *out, unsigned char tag, const char *s)
{
	size_t n = strlen(s);
	text_write(out, (const char *)&tag, 1);
	for (; n > 127; n >>= 7)
		text_write(out, (const char[]){(char)(n | 128)}, 1);
	text_write(out, (const char[]){(char)n}, 1);
	text_puts(out, s);
}

void notes_put(struct model_test *t, ProtobufCMessage *m, uint32_t field, const char *key,
	const char *value)
{
	struct text entry = {0};
	put_text(&entry, 0x0a, key);
	put_text(&entry, 0x12, value);
	assert_false(entry.failed);
	model_unknown(t, m, field, entry.s, entry.len);
	text_free(&entry);
}

void notes_signature(struct model_test *t, const char *lines)
{
	notes_put(t, &t->graph.base, 16, "pkg.torch.export.ExportedProgram.graph_signature", lines);
}

Onnx__NodeProto *notes_from(struct model_test *t, const char *scope, Onnx__NodeProto *n)
{
	char value[200];
	snprintf(value, sizeof value, "['', '%s', '%s_0']", scope, n->op_type);
	notes_put(t, &n->base, 9, "pkg.torch.onnx.name_scopes", value);
	return n;
}

void notes_filled(struct model_test *t, const char *name, const char *shape, size_t n, float v)
{
	float *values = ARENA_ARRAY(t->arena, float, n);
	assert_non_null(values);
	for (size_t i = 0; i < n; i++)
		values[i] = v;
	model_raw(model_tensor(t, name, TENSOR_TYPE(FLOAT), shape), values, n * sizeof *values);
}

const struct tensor *notes_input(const struct model_test *t, const char *node, int i)
{
	const char
		*output = NULL; /* nodes are called by their layers, their outputs as in the file */
	for (size_t k = 0; k < t->graph.n_node; k++)
		if (!strcmp(t->graph.node[k]->name, node))
			output = t->graph.node[k]->output[0];
	for (int k = 0; output && k < t->g->nnode; k++)
		if (!strcmp(t->g->node[k]->out[0]->name, output))
			return t->g->node[k]->in[i];
	fail_msg("no node '%s'", node);
	return NULL;
}

void notes_reads(const struct model_test *t, const char *node, int i, const char *tensor)
{
	assert_string_equal(notes_input(t, node, i)->name, tensor);
	assert_int_equal(test_tensor(t, tensor)->role, TR_PARAMETER);
}

void notes_not_trained(const struct model_test *t, const char *name, const char *why)
{
	assert_int_equal(test_tensor(t, name)->role, TR_CONSTANT);
	assert_string_equal(test_tensor(t, name)->why, why);
}

Onnx__NodeProto *notes_call(struct model_test *t, const char *name, const char *target,
	const char *arguments, Onnx__NodeProto *n)
{
	char value[400];
	snprintf(value, sizeof value,
		"%%%s : [num_users=1] = call_function[target=torch.ops.%s](args = (%s), kwargs = "
		"{})",
		name, target, arguments);
	notes_put(t, &n->base, 9, "pkg.torch.onnx.fx_node", value);
	return n;
}

/* What PyTorch's dynamo exporter notes beside the graph: fields that onnx.proto got after 1.12
 * (metadata_props of graphs and nodes), unknown to ours and so kept as bytes. */
#include <stdlib.h>
#include <string.h>

#include "import/import_parts.h"

typedef ProtobufCMessageUnknownField Unknown;

/* A length-delimited field at *p: its number, or 0 at the end and for anything else. */
static unsigned next_field(const uint8_t **p, const uint8_t *end, const uint8_t **data, size_t *len)
{
	if (end - *p < 2 || (**p & 7) != 2 || **p > 127)
		return 0;
	unsigned number = *(*p)++ >> 3;
	*len = 0;
	for (int shift = 0; shift < 35; shift += 7) {
		if (*p == end)
			return 0;
		uint8_t b = *(*p)++;
		*len |= (size_t)(b & 127) << shift;
		if (b < 128)
			break;
	}
	if (*len > (size_t)(end - *p))
		return 0;
	*data = *p;
	*p += *len;
	return number;
}

/* The value in one StringStringEntryProto when its key is `key`. */
static const char *entry_value(struct arena *a, const Unknown *field, const char *key)
{
	const uint8_t *p = field->data, *end = field->data + field->len, *data;
	size_t len, wanted = strlen(key);
	while (p<end && * p> 127) /* the entry's own length */
		p++;
	p += p < end;
	bool found = false;
	for (unsigned number; (number = next_field(&p, end, &data, &len)) != 0;) {
		if (number == 1)
			found = len == wanted && !memcmp(data, key, len);
		else if (number == 2 && found)
			return arena_strndup(a, (const char *)data, len);
	}
	return NULL;
}

const char *metadata_get(
	struct arena *a, const ProtobufCMessage *message, unsigned field, const char *key)
{
	for (unsigned i = 0; i < message->n_unknown_fields; i++) {
		const Unknown *u = &message->unknown_fields[i];
		if (u->tag != field || u->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
			continue;
		const char *value = entry_value(a, u, key);
		if (value)
			return value;
	}
	return NULL;
}

/* --- The signature: which tensors of the module are parameters --- */

/* The last of the kinds' names in [from, to). PyTorch 2.6 and later write one line a tensor,
 * "p_fc_weight: PARAMETER target='fc.weight'"; earlier ones the specification's repr, with
 * "kind=<InputKind.PARAMETER: 2>, ..., target='fc.weight'". */
static enum origin kind_between(const char *from, const char *to)
{
	static const struct {
		const char *word;
		enum origin kind;
	} word[] = {{"PARAMETER", ORIGIN_PARAMETER}, {"BUFFER", ORIGIN_BUFFER},
		{"CONSTANT_TENSOR", ORIGIN_CONSTANT}};
	for (size_t k = 0; k < sizeof word / sizeof *word; k++) {
		size_t n = strlen(word[k].word);
		for (const char *p = from; p + n <= to; p++)
			if (!strncmp(p, word[k].word, n) && p[n] != '_')
				return word[k].kind;
	}
	return ORIGIN_UNKNOWN;
}

/* What calls name a tensor by: "p_fc_weight", in front of its line's colon or as its argument's
 * name. NULL: not said. */
static const char *argument_between(struct arena *a, const char *from, const char *to)
{
	static const char key[] = "name='";
	const char *name = NULL, *line = from;
	for (const char *p = from; p + strlen(key) < to; p++) {
		name = !strncmp(p, key, strlen(key)) ? p + strlen(key) : name;
		line = *p == '\n' ? p + 1 : line;
	}
	const char *start = name ? name : line;
	size_t n = strcspn(start, name ? "'" : ":");
	return start + n < to ? arena_strndup(a, start, n) : NULL;
}

static enum status add_target(
	struct importer *im, const char *name, size_t len, enum origin kind, const char *argument)
{
	struct module_tensor *t = ARENA_NEW(im->m.arena, struct module_tensor);
	char *copy = arena_strndup(im->m.arena, name, len);
	void **at = copy ? names_at(&im->module, copy) : NULL;
	if (!t || !at)
		return diag_nomem(im->d);
	if (*at) /* outputs that overwrite buffers come a second time */
		return ST_OK;
	*t = (struct module_tensor){.name = copy, .argument = argument, .kind = kind};
	*at = t;
	*im->module_end = t;
	im->module_end = &t->next;
	at = argument ? names_at(&im->argument, argument) : NULL;
	if (at)
		*at = t;
	return at || !argument ? ST_OK : diag_nomem(im->d);
}

enum status signature_read(struct importer *im)
{
	static const char target[] = "target='";
	im->module_end = &im->module_first;
	im->module.arena = im->argument.arena = im->m.arena;
	const char *text = metadata_get(im->m.arena, &im->m.proto->graph->base, GRAPH_METADATA,
		"pkg.torch.export.ExportedProgram.graph_signature");
	for (const char *from = text, *at; from && (at = strstr(from, target)); from = at) {
		const char *name = at + strlen(target), *end = strchr(name, '\'');
		if (!end)
			break;
		enum origin kind = kind_between(from, at);
		if (kind != ORIGIN_UNKNOWN)
			TRY(add_target(im, name, (size_t)(end - name), kind,
				argument_between(im->m.arena, from, at)));
		at = end;
	}
	return ST_OK;
}

/* "['', 'encoder.ln', 'layer_norm']" → "encoder.ln": the last entry is the operation itself. */
const char *node_scope(struct arena *a, const Onnx__NodeProto *n)
{
	const char *text = metadata_get(a, &n->base, NODE_METADATA, "pkg.torch.onnx.name_scopes");
	const char *scope = NULL, *last = NULL;
	size_t scope_len = 0, last_len = 0;
	for (const char *p = text; p && (p = strchr(p, '\'')); p++) {
		const char *end = strchr(p + 1, '\'');
		if (!end)
			break;
		scope = last;
		scope_len = last_len;
		last = p + 1;
		last_len = (size_t)(end - last);
		p = end;
	}
	return scope ? arena_strndup(a, scope, scope_len) : NULL;
}

/* --- Label smoothing --- */

/* Where `word` stands in the bytes of a node's notes; NULL: nowhere. Copies nothing. */
static const uint8_t *find_note(const Onnx__NodeProto *n, const char *word, const uint8_t **end)
{
	for (unsigned i = 0; i < n->base.n_unknown_fields; i++) {
		const Unknown *u = &n->base.unknown_fields[i];
		const uint8_t *at = u->tag == NODE_METADATA
					    ? memmem(u->data, u->len, word, strlen(word))
					    : NULL;
		*end = u->data + u->len;
		if (at)
			return at + strlen(word);
	}
	return NULL;
}

bool node_is_detach(const Onnx__NodeProto *n)
{
	const uint8_t *end = NULL;
	return find_note(n, "[target=torch.ops.aten.detach.default](", &end) != NULL;
}

void warn_of_smoothing(struct importer *im)
{
	const Onnx__GraphProto *g = im->m.proto->graph;
	for (size_t i = 0; i < g->n_node; i++) {
		const struct call *c = call_of(im, g->node[i]);
		double smoothing;
		if (!c || strcmp(c->target, "aten.cross_entropy_loss.default") != 0 ||
			!call_number(c, 5, &smoothing) || smoothing == 0)
			continue;
		const struct where w = {
			im->m.path, text_of(g->node[i]->name), text_of(g->node[i]->op_type)};
		diag_warn(im->d, &w,
			"export torch.export.export(...).run_decompositions(), or train with "
			"--loss cross-entropy:label_smoothing=; docs/howto/export-from-pytorch.md",
			"the module's loss has label_smoothing=%.9g, which the exporter left "
			"out",
			smoothing);
	}
}

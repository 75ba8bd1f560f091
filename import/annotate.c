/* The model written again with notes on its nodes, for viewers: NodeProto's metadata_props, which
 * onnx.proto got in 1.16. To ours it is an unknown field; those are kept and written. */
#include <string.h>

#include "import/import_parts.h"

typedef ProtobufCMessageUnknownField Unknown;

enum { METADATA_PROPS = 9, PREFIX = 6 };
static const char prefix[PREFIX + 1] = "stint.";

static size_t put_varint(uint8_t *to, size_t v)
{
	size_t n = 0;
	for (; v > 127; v >>= 7)
		to[n++] = (uint8_t)(v | 128);
	to[n++] = (uint8_t)v;
	return n;
}

/* What the length of a length-delimited field is written in. */
static size_t skip_varint(const uint8_t *data, size_t len)
{
	size_t n = 0;
	while (n < len && data[n] > 127)
		n++;
	return n < len ? n + 1 : len;
}

/* An entry that an earlier annotation left behind. */
static bool is_ours(const Unknown *field)
{
	if (field->tag != METADATA_PROPS ||
		field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
		return false;
	size_t head = skip_varint(field->data, field->len);
	/* key (field 1) comes first in what we write */
	const uint8_t *key = field->data + head;
	size_t left = field->len - head;
	return left > 2 + PREFIX && key[0] == 0x0a && key[1] >= PREFIX && key[1] < 128 &&
	       memcmp(key + 2, prefix, PREFIX) == 0;
}

/* One StringStringEntryProto as field 9. */
static bool make_entry(const struct model *m, const struct export_note *note, Unknown *out)
{
	size_t key = strlen(note->key), value = strlen(note->value);
	uint8_t *to = arena_alloc(m->arena, key + value + 64, 1), inner[32];
	if (!to)
		return false;
	size_t n = PREFIX + key;
	size_t size = 1 + put_varint(inner, n) + n + 1 + put_varint(inner, value) + value;
	size_t at = put_varint(to, size);
	to[at++] = 0x0a; /* field 1, length-delimited: key */
	at += put_varint(to + at, n);
	memcpy(to + at, prefix, PREFIX);
	memcpy(to + at + PREFIX, note->key, key);
	at += n;
	to[at++] = 0x12; /* field 2: value */
	at += put_varint(to + at, value);
	memcpy(to + at, note->value, value);
	*out = (Unknown){.tag = METADATA_PROPS,
		.wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
		.len = at + value,
		.data = to};
	return true;
}

static enum status annotate(const struct model *m, Onnx__NodeProto *node, int n,
	const struct export_note *note, struct diag *d)
{
	ProtobufCMessage *base = &node->base;
	Unknown *list = ARENA_ARRAY(m->arena, Unknown, base->n_unknown_fields + (size_t)n);
	unsigned count = 0;
	if (!list)
		return diag_nomem(d);
	for (unsigned i = 0; i < base->n_unknown_fields; i++)
		if (!is_ours(&base->unknown_fields[i]))
			list[count++] = base->unknown_fields[i];
	for (int i = 0; i < n; i++)
		if (!make_entry(m, &note[i], &list[count++]))
			return diag_nomem(d);
	base->n_unknown_fields = count;
	base->unknown_fields = list;
	return ST_OK;
}

enum status export_annotated(
	const char *model, const char *to, export_notes *notes, void *user, struct diag *d)
{
	struct model m;
	struct arena *a = arena_new();
	enum status st = a ? model_read(a, model, &m, d) : diag_nomem(d);
	const char *const *layer = NULL;
	if (st == ST_OK && node_layers(a, m.proto->graph, &layer) != ST_OK)
		st = diag_nomem(d);
	for (size_t i = 0; st == ST_OK && i < m.proto->graph->n_node; i++) {
		Onnx__NodeProto *node = m.proto->graph->node[i];
		const struct export_note *note = NULL;
		const char *name = layer && layer[i] ? layer[i] : node_label(a, node, (int)i);
		int n = name ? notes(user, name, &note) : -1;
		st = n < 0 ? diag_nomem(d) : annotate(&m, node, n, note, d);
	}
	if (st == ST_OK)
		st = model_take_in(&m, NULL, NULL, d);
	if (st == ST_OK)
		st = model_write(&m, to, PROTOBUF_MOST, d);
	arena_free(a);
	return st;
}

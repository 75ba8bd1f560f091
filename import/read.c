/* The guarded reader: protobuf-c recurses without a limit and can turn a small file into a large
 * structure, so the wire format is scanned first, without recursion, and unpacking may take only so
 * much memory. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "import/import_parts.h"

enum { NESTING_MAX = 64 };

static enum status bad_file(const char *path, struct diag *d, const char *what)
{
	return diag_fail(d, ST_INVALID, &(struct where){.file = path},
		"is it a complete .onnx file, and not a Git LFS pointer?",
		"is no valid ONNX file: %s", what);
}

static bool varint(const uint8_t **p, const uint8_t *end, uint64_t *out)
{
	uint64_t v = 0;
	for (int shift = 0; shift < 70 && *p < end; shift += 7) {
		uint8_t b = *(*p)++;
		v |= shift < 64 ? (uint64_t)(b & 0x7f) << shift : 0;
		if (!(b & 0x80)) {
			*out = v;
			return true;
		}
	}
	return false;
}

/* A message that is open: where it ends and what it is. */
struct frame {
	const uint8_t *end;
	const ProtobufCMessageDescriptor *type;
};

/* A field of known length: skipped, or, where it holds a message, opened as a frame. Fields that
 * onnx.proto does not know are bytes. */
static const char *scan_bytes(
	const uint8_t **p, uint64_t key, uint64_t len, struct frame *stack, int *depth)
{
	const ProtobufCFieldDescriptor *field = key >> 3 > UINT32_MAX
							? NULL
							: protobuf_c_message_descriptor_get_field(
								  stack[*depth].type,
								  (unsigned)(key >> 3));
	const uint8_t *start = *p;
	if (field && field->type == PROTOBUF_C_TYPE_MESSAGE) {
		if (*depth + 1 == NESTING_MAX)
			return "it is nested more than 64 levels deep";
		stack[++*depth] = (struct frame){start + len, field->descriptor};
		return NULL;
	}
	if (field && field->type == PROTOBUF_C_TYPE_STRING && len && memchr(start, 0, len))
		return "a name or text in it holds a zero byte";
	*p += len;
	return NULL;
}

/* One field of the innermost message. */
static const char *scan_field(const uint8_t **p, struct frame *stack, int *depth)
{
	const uint8_t *end = stack[*depth].end;
	uint64_t key, value;
	if (!varint(p, end, &key) || key >> 3 == 0)
		return "a field is cut off or has no number";
	switch (key & 7) {
	case 0:
		return varint(p, end, &value) ? NULL : "a number is cut off";
	case 1:
	case 5: {
		size_t n = (key & 7) == 1 ? 8 : 4;
		if ((size_t)(end - *p) < n)
			return "a number is cut off";
		*p += n;
		return NULL;
	}
	case 2:
		if (!varint(p, end, &value) || value > (uint64_t)(end - *p))
			return "a field is longer than what holds it";
		return scan_bytes(p, key, value, stack, depth);
	default:
		return "a field has an unknown wire type";
	}
}

static const char *scan(const uint8_t *p, size_t len, const ProtobufCMessageDescriptor *type)
{
	struct frame stack[NESTING_MAX] = {{p + len, type}};
	int depth = 0;
	for (;;) {
		while (depth > 0 && p == stack[depth].end)
			depth--;
		if (p == stack[depth].end)
			return NULL;
		const char *fault = scan_field(&p, stack, &depth);
		if (fault)
			return fault;
	}
}

/* protobuf-c's allocations, out of the arena and no more than `left` bytes of them. Short texts and
 * lists stand close together. Of what it gives back only large pieces are worth it: its notes on
 * the fields of a message. */
struct capped {
	struct arena *arena;
	size_t left;
	char *room; /* for small ones */
	size_t nroom;
	struct large {
		void *p;
		size_t size;
	} large[64];
	int nlarge;
	bool full, nomem;
};

static void *small_alloc(struct capped *c, size_t size)
{
	enum { ROOM = 8192 };
	size = (size + 7) & ~(size_t)7;
	if (size > c->nroom) {
		c->room = arena_alloc(c->arena, ROOM, 1);
		c->nroom = c->room ? ROOM : 0;
	}
	if (!c->room)
		return NULL;
	c->nroom -= size;
	void *p = c->room;
	c->room += size;
	return p;
}

static void *capped_alloc(void *user, size_t size)
{
	struct capped *c = user;
	if (size > c->left) {
		c->full = true;
		return NULL;
	}
	c->left -= size;
	void *p = size <= 512 ? small_alloc(c, size) : arena_alloc(c->arena, size, 1);
	c->nomem |= p == NULL;
	if (size >= 32768 && c->nlarge < 64)
		c->large[c->nlarge++] = (struct large){p, size};
	return p;
}

static void capped_free(void *user, void *p)
{
	struct capped *c = user;
	for (int i = c->nlarge - 1; p && i >= 0; i--)
		if (c->large[i].p == p) {
			arena_release(c->arena, p, c->large[i].size);
			c->large[i] = c->large[--c->nlarge];
			return;
		}
}

static enum status check_kind(const char *path, struct diag *d)
{
	struct stat st;
	const struct where w = {.file = path};
	if (stat(path, &st) != 0)
		return diag_fail(d, ST_IO, &w, NULL, "cannot open: %s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return diag_fail(d, ST_IO, &w, "give the .onnx file in it", "is a folder");
	if (!S_ISREG(st.st_mode))
		return diag_fail(d, ST_IO, &w, NULL, "is no regular file");
	if (st.st_size == 0)
		return bad_file(path, d, "it is empty");
	if (st.st_size > INT32_MAX)
		return bad_file(path, d,
			"it is larger than 2 GiB; protobuf allows no more: use external data");
	return ST_OK;
}

/* Files of other tools that people give, by how they begin, and how they become ONNX. */
static const struct {
	size_t at, n; /* where in the file, and how many bytes */
	const char *bytes, *what, *hint;
} others[] = {
	{0, 4, "PK\003\004", "a zip archive, as PyTorch (.pt, .pth) and Keras (.keras) write",
		"in Python, where its model is: torch.onnx.export(model, args, \"model.onnx\"), "
		"see "
		"docs/howto/export-from-pytorch.md; of Keras docs/howto/export-from-keras.md"},
	{0, 2, "\200\002", "a pickle, as PyTorch (.pt, .pth) writes",
		"in Python, where its model is: torch.onnx.export(model, args, \"model.onnx\"), "
		"see "
		"docs/howto/export-from-pytorch.md"},
	{0, 4, "\211HDF", "an HDF5 file, as Keras (.h5) writes",
		"docs/howto/export-from-keras.md tells how"},
	{8, 2, "{\"", "a safetensors file: weights without a model",
		"export the model; `stint train DIR --weights FILE.safetensors` begins with these"},
	{4, 4, "TFL3", "a TensorFlow Lite file, which does not train",
		"docs/howto/export-from-keras.md tells how to export the model itself"},
	{0, 4, "GGUF", "a GGUF file: weights without a model",
		"docs/howto/export-from-pytorch.md tells how to export the model"},
};

/* Why it is no ONNX file: it is another one, or `what`. */
static enum status not_onnx(
	const char *path, const uint8_t *bytes, size_t len, const char *what, struct diag *d)
{
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (len >= others[i].at + others[i].n &&
			!memcmp(bytes + others[i].at, others[i].bytes, others[i].n))
			return diag_fail(d, ST_INVALID, &(struct where){.file = path},
				others[i].hint, "is no ONNX file but %s", others[i].what);
	return bad_file(path, d, what);
}

static enum status unpack(struct arena *a, const char *path, const ProtobufCMessageDescriptor *type,
	const uint8_t *bytes, size_t len, ProtobufCMessage **out, struct diag *d)
{
	const char *fault = scan(bytes, len, type);
	if (fault)
		return not_onnx(path, bytes, len, fault, d);
	/* a number of two bytes takes some 72 bytes while it is unpacked */
	struct capped c = {.arena = a, .left = len * 96 + ((size_t)16 << 20)};
	ProtobufCAllocator allocator = {capped_alloc, capped_free, &c};
	*out = protobuf_c_message_unpack(type, &allocator, len, bytes);
	if (c.nomem)
		return diag_nomem(d);
	if (c.full)
		return bad_file(path, d,
			"unpacking it takes over 96 times its size; it seems made to exhaust "
			"memory");
	return *out ? ST_OK
		    : not_onnx(
			      path, bytes, len, "a field in it has another type than ONNX says", d);
}

static enum status unpack_model(struct arena *a, const char *path, const char *bytes, size_t len,
	struct model *out, struct diag *d)
{
	ProtobufCMessage *m;
	TRY(unpack(a, path, &onnx__model_proto__descriptor, (const uint8_t *)bytes, len, &m, d));
	struct names *external = ARENA_NEW(a, struct names);
	if (!external)
		return diag_nomem(d);
	external->arena = a;
	*out = (struct model){path, (Onnx__ModelProto *)m, a, external, NULL};
	return out->proto->graph ? ST_OK : bad_file(path, d, "it has no graph");
}

/* What stands behind the length that an unknown field begins with. */
static const uint8_t *unknown_content(const ProtobufCMessageUnknownField *field, size_t *len)
{
	const uint8_t *p = field->data, *end = p + field->len;
	uint64_t n;
	*len = 0;
	if (field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED || !varint(&p, end, &n))
		return NULL;
	*len = (size_t)(end - p);
	return p;
}

enum status model_unpack(const struct model *m, const ProtobufCMessageDescriptor *type,
	const ProtobufCMessageUnknownField *field, ProtobufCMessage **out, struct diag *d)
{
	size_t len;
	const uint8_t *p = unknown_content(field, &len);
	return p ? unpack(m->arena, m->path, type, p, len, out, d)
		 : bad_file(m->path, d, "a field in it has another type than ONNX says");
}

const char *unknown_text(struct arena *a, const ProtobufCMessage *m, uint32_t tag)
{
	for (unsigned i = 0; i < m->n_unknown_fields; i++) {
		size_t len;
		if (m->unknown_fields[i].tag != tag)
			continue;
		const uint8_t *p = unknown_content(&m->unknown_fields[i], &len);
		if (p && len && !memchr(p, 0, len))
			return arena_strndup(a, (const char *)p, len);
	}
	return "";
}

enum status model_read(struct arena *a, const char *path, struct model *out, struct diag *d)
{
	char *bytes;
	size_t len;
	TRY(check_kind(path, d));
	struct arena *file = arena_new(); /* the packed bytes are not needed for long */
	if (!file)
		return diag_nomem(d);
	/* read, not mapped: it is scanned before it is unpacked, and must not be another by then */
	enum status st = file_read(file, path, &bytes, &len, d);
	if (st == ST_OK)
		st = unpack_model(a, path, bytes, len, out, d);
	arena_free(file);
	return st;
}

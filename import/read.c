/* The guarded reader: protobuf-c recurses without a limit and can turn a small file into a large
 * structure, so the wire format is scanned first, without recursion, and unpacking may take only so
 * much memory. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "import/private.h"

enum { DEPTH_MAX = 64 };

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

/* Which length-delimited fields hold messages, by message type: enough of onnx.proto to know where
 * nesting can occur. A field that is not listed is bytes to the scan. */
enum message { MODEL, GRAPH, NODE, ATTRIBUTE, TENSOR, FUNCTION, TYPE, SEQUENCE, OPAQUE };

static int child(int message, uint64_t field)
{
	switch (message) {
	case MODEL:
		return field == 7 ? GRAPH : field == 25 ? FUNCTION : -1;
	case GRAPH:
		return field == 1                   ? NODE
		       : field == 5                 ? TENSOR
		       : field >= 11 && field <= 13 ? OPAQUE
						    : -1;
	case NODE:
		return field == 5 ? ATTRIBUTE : -1;
	case ATTRIBUTE:
		return field == 5 || field == 10    ? TENSOR
		       : field == 6 || field == 11  ? GRAPH
		       : field == 14 || field == 15 ? TYPE
						    : -1;
	case FUNCTION:
		return field == 7 ? NODE : -1;
	case OPAQUE: /* ValueInfoProto */
		return field == 2 ? TYPE : -1;
	case TYPE: /* sequence, map and optional types nest */
		return field == 4 || field == 5 || field == 9 ? SEQUENCE : -1;
	case SEQUENCE:
		return field == 1 || field == 2 ? TYPE : -1;
	default:
		return -1;
	}
}

struct frame {
	const uint8_t *end;
	int message;
};

/* One field of the innermost message; opens a frame where it holds a message. */
static const char *scan_field(const uint8_t **p, struct frame *stack, int *depth)
{
	const uint8_t *end = stack[*depth].end;
	uint64_t key, value;
	if (!varint(p, end, &key) || key >> 3 == 0)
		return "a field is cut off";
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
	case 2: {
		if (!varint(p, end, &value) || value > (uint64_t)(end - *p))
			return "a field is longer than what holds it";
		int inner = child(stack[*depth].message, key >> 3);
		if (inner < 0) {
			*p += value;
			return NULL;
		}
		if (*depth + 1 == DEPTH_MAX)
			return "it is nested more than 64 levels deep";
		stack[++*depth] = (struct frame){*p + value, inner};
		return NULL;
	}
	default:
		return "a field has an unknown wire type";
	}
}

static const char *scan(const uint8_t *p, size_t len)
{
	struct frame stack[DEPTH_MAX] = {{p + len, MODEL}};
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

/* protobuf-c's allocations, out of the arena and no more than `left` bytes of them. */
struct capped {
	struct arena *arena;
	size_t left;
};

static void *capped_alloc(void *user, size_t size)
{
	struct capped *c = user;
	if (size > c->left)
		return NULL;
	c->left -= size;
	return arena_alloc(c->arena, size, 1);
}

static void capped_free(void *user, void *p)
{
	(void)user; /* the arena frees all at once */
	(void)p;
}

static enum status check_kind(const char *path, struct diag *d)
{
	struct stat st;
	const struct where w = {.file = path};
	if (stat(path, &st) != 0)
		return diag_fail(d, ST_IO, &w, NULL, "cannot open: %s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return diag_fail(d, ST_IO, &w, "give the .onnx file in it", "is a folder");
	if (st.st_size == 0)
		return bad_file(path, d, "it is empty");
	if (st.st_size > INT32_MAX)
		return bad_file(path, d,
			"it is larger than 2 GiB; protobuf allows no more: use external data");
	return ST_OK;
}

enum status model_read(struct arena *a, const char *path, struct model *out, struct diag *d)
{
	char *bytes;
	size_t len;
	TRY(check_kind(path, d));
	TRY(file_read(a, path, &bytes, &len, d));
	const char *fault = scan((const uint8_t *)bytes, len);
	if (fault)
		return bad_file(path, d, fault);
	/* a node of two bytes takes some 140 bytes unpacked */
	struct capped c = {a, len * 96 + ((size_t)4 << 20)};
	ProtobufCAllocator allocator = {capped_alloc, capped_free, &c};
	Onnx__ModelProto *m = onnx__model_proto__unpack(&allocator, len, (const uint8_t *)bytes);
	if (!m)
		return bad_file(path, d, "it cannot be unpacked");
	if (!m->graph)
		return bad_file(path, d, "it has no graph");
	*out = (struct model){path, m, a};
	return ST_OK;
}

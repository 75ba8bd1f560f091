/* One tensor of a safetensors file: "FILE.safetensors:NAME". */
#include <stdlib.h>
#include <string.h>

#include "data/kind.h"
#include "runtime/safetensors.h"

struct tensors {
	struct safetensors *file;
	const struct safetensors_entry *entry;
};

static int read_type(const char *name, enum dataset_type *out)
{
	static const struct {
		const char *name;
		enum dataset_type type;
	} types[] = {{"F16", DATASET_F16}, {"F32", DATASET_F32}, {"F64", DATASET_F64},
		{"I8", DATASET_I8}, {"I16", DATASET_I16}, {"I32", DATASET_I32},
		{"I64", DATASET_I64}, {"U8", DATASET_U8}, {"U16", DATASET_U16},
		{"U32", DATASET_U32}, {"U64", DATASET_U64}, {"BOOL", DATASET_BOOL}};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(types[i].name, name) == 0) {
			*out = types[i].type;
			return 0;
		}
	return 1;
}

static int find(struct dataset *d, struct tensors *t, const char *name, char message[256])
{
	const struct safetensors_entry *e = safetensors_find(t->file, name);
	int64_t bytes;
	t->entry = e;
	if (!e && safetensors_count(t->file) > 0)
		return dataset_bad(message, d->path, "has no tensor '%.60s'; its first is '%.60s'",
			name, safetensors_at(t->file, 0)->name);
	if (!e)
		return dataset_bad(message, d->path, "has no tensors");
	if (read_type(e->type, &d->type))
		return dataset_bad(
			message, d->path, "elements of type %.20s are not read", e->type);
	d->rank = e->rank;
	memcpy(d->dim, e->dim, (size_t)e->rank * sizeof *e->dim);
	return dataset_count(d, &bytes) ? dataset_bad(message, d->path, "is too large") : 0;
}

static int tensors_open(struct dataset *d, const char *text, char message[256])
{
	struct tensors *t = calloc(1, sizeof *t);
	const char *name = archive_member(text);
	char *file = strndup(text, (size_t)(name - 1 - text));
	d->state = t;
	d->cheap = 1;
	int rc = !t || !file ? dataset_bad(message, d->path, "out of memory")
			     : safetensors_open_header(&t->file, file, message) ||
				       find(d, t, name, message);
	free(file);
	return rc;
}

static int tensors_read(
	const struct dataset *d, int64_t first, int64_t n, void *out, char message[256])
{
	const struct tensors *t = d->state;
	const size_t row = (size_t)d->row * (size_t)dataset_width(d->type);
	/* little-endian, as every machine is that stint builds for */
	return safetensors_read(t->file, t->entry, (size_t)first * row, (size_t)n * row, out)
		       ? dataset_bad(message, d->path, "cannot be read")
		       : 0;
}

static void tensors_close(struct dataset *d)
{
	struct tensors *t = d->state;
	if (t && t->file)
		safetensors_close(t->file);
	free(t);
}

const struct dataset_kind tensors_kind = {
	.open = tensors_open, .read = tensors_read, .close = tensors_close};

/* Values of tensors in files beside the model.
 *
 * A model may come from anywhere, so the names in it must not choose what is read. A file is looked
 * for below the model's folder, one folder after another, each opened in the one before it and none
 * through a link; and what is open is looked at, not its name, which may be another file's by then.
 * Files are mapped: a model's values take no memory of ours, however many they are. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/import_parts.h"

typedef Onnx__TensorProto Tensor;

/* A file that is open for all tensors that lie in it. */
struct external_file {
	const unsigned char *data; /* NULL: it is not there */
	int64_t bytes;
};

static const char *entry(const Tensor *t, const char *key)
{
	for (size_t i = 0; i < t->n_external_data; i++)
		if (!strcmp(text_of(t->external_data[i]->key), key))
			return text_of(t->external_data[i]->value);
	return NULL;
}

/* Said of data that stays where it is: no file below a folder of the model's copy has such a name.
 */
#define ELSEWHERE "linked-elsewhere/"

static bool is_elsewhere(const char *location)
{
	return strncmp(location, ELSEWHERE, sizeof ELSEWHERE - 1) == 0;
}

enum status external_leave(const struct model *m, Tensor *t, struct diag *d)
{
	typedef Onnx__StringStringEntryProto Entry;
	const size_t n = t->n_external_data;
	Entry *e = ARENA_ARRAY(m->arena, Entry, n);
	Entry **list = ARENA_ARRAY(m->arena, Entry *, n); /* a copy of t may have the same one */
	if (!e || !list)
		return diag_nomem(d);
	for (size_t i = 0; i < n; i++) {
		e[i] = *t->external_data[i];
		list[i] = &e[i];
		if (strcmp(text_of(e[i].key), "location") != 0)
			continue;
		e[i].value = arena_printf(m->arena, ELSEWHERE "%s", text_of(e[i].value));
		if (!e[i].value)
			return diag_nomem(d);
	}
	t->external_data = list;
	return ST_OK;
}

bool tensor_is_external(const Tensor *t)
{
	return t->has_data_location &&
	       t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

bool tensor_is_absent(const struct model *m, const Tensor *t)
{
	const char *location = tensor_is_external(t) ? entry(t, "location") : NULL;
	const struct external_file *f = location ? names_get(m->external, location) : NULL;
	return f && !f->data;
}

static bool whole_number(const char *s, int64_t *out)
{
	char *end;
	errno = 0;
	*out = 0;
	if (!s)
		return true;
	*out = strtoll(s, &end, 10);
	return end != s && !*end && !errno && *out >= 0;
}

/* --- Opening below a folder --- */

static bool leads_out(const char *location)
{
	if (*location == '/')
		return true;
	for (const char *s = location; s; s = strchr(s, '/')) {
		s += *s == '/';
		if (!strncmp(s, "..", 2) && (s[2] == '/' || !s[2]))
			return true;
	}
	return false;
}

/* The model's folder; the name that it was given may be a link's. NULL: no memory. */
static const char *folder_of(const struct model *m)
{
	const char *slash = strrchr(m->path, '/');
	return !slash ? "."
		      : arena_strndup(m->arena, m->path,
				slash == m->path ? 1 : (size_t)(slash - m->path));
}

static int open_folder(const struct model *m)
{
	const char *folder = folder_of(m);
	if (!folder)
		errno = ENOMEM;
	return folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* `name` in the folder `at`, which is closed. -1 and errno: ELOOP for a link. */
static int open_next(int at, const char *name, bool last)
{
	struct stat st;
	const int how = last ? O_RDONLY | O_NONBLOCK | O_NOCTTY /* never wait for a pipe */
			     : O_PATH | O_DIRECTORY;
	const int fd = openat(at, name, how | O_NOFOLLOW | O_CLOEXEC);
	int why = errno;
	if (fd < 0 && fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		why = ELOOP; /* a folder was asked for: the system calls a link none */
	close(at);
	errno = why;
	return fd;
}

/* -1 and errno, as from open_next. `location` does not lead out. */
static int open_beneath(const struct model *m, const char *location)
{
	char *rest = arena_strdup(m->arena, location), *next;
	int fd = rest ? open_folder(m) : -1;
	if (!rest)
		errno = ENOMEM;
	for (char *name = rest; fd >= 0 && name; name = next) {
		next = strchr(name, '/');
		if (next)
			*next++ = '\0';
		while (next && *next == '/')
			next++;
		if (next && !*next)
			next = NULL;
		if (strcmp(name, ".") != 0)
			fd = open_next(fd, name, !next);
	}
	return fd;
}

static enum status not_open(
	const struct model *m, const Tensor *t, const char *location, struct diag *d)
{
	const struct where w = {.file = m->path, .node = text_of(t->name), .op = "tensor"};
	if (errno == ENOMEM)
		return diag_nomem(d);
	if (errno == ELOOP)
		return diag_fail(d, ST_INVALID, &w,
			"put the file itself there: `cp -rL FOLDER COPY` copies what links lead to",
			"a symbolic link stands in the way to its external data '%s'", location);
	return diag_fail(d, ST_INVALID, &w,
		is_elsewhere(location)
			? "with --link-weights DIR/model.onnx is for `stint export DIR` alone: "
			  "export, or take the model itself"
			: "external data must lie beside the model",
		"cannot find its external data '%s': %s", location, strerror(errno));
}

/* --- Mapping --- */

/* From the root, for people and for links to it; malloc'ed. NULL: it cannot be told. */
static char *real_path(const struct model *m, const char *location)
{
	const char *folder = folder_of(m);
	const char *path = folder ? arena_printf(m->arena, "%s/%s", folder, location) : NULL;
	return path ? realpath(path, NULL) : NULL;
}

/* A file of several names may be another's, whom a stranger gave one here. */
static enum status map(const struct model *m, const Tensor *t, const char *location, int fd,
	struct external_file *f, struct diag *d)
{
	const struct where w = {.file = m->path, .node = text_of(t->name), .op = "tensor"};
	struct stat st;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return diag_fail(d, ST_INVALID, &w, NULL,
			"its external data '%s' is no regular file", location);
	if (st.st_nlink > 1)
		return diag_fail(d, ST_INVALID, &w, "make a copy of the file and put it there",
			"its external data '%s' has %ju names (hard links): it may lie outside the "
			"model's folder",
			location, (uintmax_t)st.st_nlink);
	char *path = real_path(m, location);
	f->bytes = st.st_size;
	f->data = arena_map(m->arena, fd, (size_t)st.st_size, path);
	free(path);
	return f->data ? ST_OK
		       : diag_fail(d, ST_IO, &w, NULL, "cannot map its external data '%s': %s",
				 location, strerror(errno));
}

static enum status find_file(const struct model *m, const Tensor *t, const char *location,
	const struct external_file **out, struct diag *d)
{
	void **known = names_at(m->external, location);
	if (!known)
		return diag_nomem(d);
	*out = *known;
	if (*out)
		return ST_OK;
	if (leads_out(location))
		return tensor_bad(m, t, "keep external data in the model's folder", d,
			"its external data has a path that leads out of the model's folder");
	struct external_file *f = ARENA_NEW(m->arena, struct external_file);
	const int fd = f ? open_beneath(m, location) : -1;
	if (!f)
		return diag_nomem(d);
	if (fd < 0 && errno == ENOENT && !is_elsewhere(location) && m->absent &&
		absent_will_do(t)) {
		absent_file(m, location);
		*out = *known = f;
		return ST_OK;
	}
	if (fd < 0)
		return not_open(m, t, location, d);
	const enum status st = map(m, t, location, fd, f, d);
	close(fd);
	TRY(st);
	*out = *known = f;
	return ST_OK;
}

enum status external_raw(const struct model *m, const Tensor *t, int64_t bytes,
	const unsigned char **raw, struct diag *d)
{
	const char *location = entry(t, "location");
	const struct external_file *f;
	int64_t offset, length;
	if (!location || !*location)
		return tensor_bad(m, t, NULL, d, "its external data has no location");
	if (!whole_number(entry(t, "offset"), &offset) ||
		!whole_number(entry(t, "length"), &length))
		return tensor_bad(m, t, NULL, d, "its external data has a wrong offset or length");
	if (entry(t, "length") && length != bytes)
		return tensor_bad(
			m, t, NULL, d, "its external data has another length than its shape needs");
	TRY(find_file(m, t, location, &f, d));
	if (!f->data && !absent_will_do(t)) {
		errno = ENOENT;
		return not_open(m, t, location, d);
	}
	if (!f->data)
		return absent_raw(m, t, bytes, raw, d);
	if (offset > f->bytes || bytes > f->bytes - offset)
		return diag_fail(d, ST_INVALID,
			&(struct where){.file = m->path, .node = text_of(t->name), .op = "tensor"},
			"was the file cut off?",
			"its external data lies beyond the end of the file: %" PRId64
			" bytes from %" PRId64 " on, of '%s' with %" PRId64,
			bytes, offset, location, f->bytes);
	*raw = f->data + offset;
	return ST_OK;
}

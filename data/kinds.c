/* All kinds of sources, in one list. */
#include "data/kind.h"

#include <string.h>

#include "data/csv_words.h"

static const struct {
	const char *prefix; /* before a colon */
	const struct dataset_kind *kind;
} kinds[] = {
	{"cmd", &command_kind},
	{"csv", &csv_kind},
	{"images", &images_kind},
	{"labels", &labels_kind},
	{"masks", &masks_kind},
	{"tokens", &tokens_kind},
};

static const struct {
	const char *ending; /* of a file that holds several, before a colon and one's name */
	const struct dataset_kind *kind;
} archives[] = {{".npz", &npz_kind}, {".safetensors", &tensors_kind}};

/* Behind the colon in "FILE.npz:NAME". */
static const char *member_of(const char *path, const char *ending)
{
	const size_t n = strlen(ending);
	for (const char *p = path; (p = strstr(p, ending)); p += n)
		if (p[n] == ':' && p[n + 1])
			return p + n + 1;
	return NULL;
}

const char *archive_member(const char *path)
{
	const char *name = NULL;
	for (size_t i = 0; i < sizeof archives / sizeof *archives && !name; i++)
		name = member_of(path, archives[i].ending);
	return name;
}

const struct dataset_kind *dataset_kind_of(const char *path, const char **rest)
{
	*rest = path;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const size_t n = strlen(kinds[i].prefix);
		if (!strncmp(path, kinds[i].prefix, n) && path[n] == ':') {
			*rest = path + n + 1;
			return kinds[i].kind;
		}
	}
	for (size_t i = 0; i < sizeof archives / sizeof *archives; i++)
		if (member_of(path, archives[i].ending))
			return archives[i].kind;
	return &array_kind;
}

const char *dataset_file(const char *path, size_t *bytes)
{
	const char *name = archive_member(path), *file = path;
	const struct dataset_kind *kind = dataset_kind_of(path, &file);
	if (file != path && kind != &labels_kind) {
		const char *colon = kind == &csv_kind ? csv_columns_end(file) : strchr(file, ':');
		file = colon ? colon + 1 : file;
	}
	*bytes = name && file == path ? (size_t)(name - 1 - path) : strlen(file);
	return file;
}

const char *dataset_prefix(int i)
{
	return i < (int)(sizeof kinds / sizeof *kinds) ? kinds[i].prefix : NULL;
}

int dataset_is_prefixed(const char *path)
{
	const char *rest;
	(void)dataset_kind_of(path, &rest);
	return rest != path;
}

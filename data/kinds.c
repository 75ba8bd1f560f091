/* All kinds of sources, in one list. */
#include "data/kind.h"

#include <string.h>

static const struct {
	const char *prefix; /* before a colon; NULL: a file, told by its content */
	const struct dataset_kind *kind;
} kinds[] = {
	{NULL, &array_kind},
};

const struct dataset_kind *dataset_kind_of(const char *path, const char **rest)
{
	*rest = path;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const size_t n = kinds[i].prefix ? strlen(kinds[i].prefix) : 0;
		if (!kinds[i].prefix)
			return kinds[i].kind;
		if (!strncmp(path, kinds[i].prefix, n) && path[n] == ':') {
			*rest = path + n + 1;
			return kinds[i].kind;
		}
	}
	return &array_kind;
}

/* A step for several lengths (compile/other_lengths.h) in DIR: the longest one's is DIR's own, each
 * other has a folder in it, and lengths.json says which there are. */
#ifndef STINT_API_LENGTH_FOLDERS_H
#define STINT_API_LENGTH_FOLDERS_H

#include "api/folder.h"
#include "compile/pipeline.h"

struct length_folders {
	const char *dim;
	int64_t longest;
	int n;
	int64_t *length; /* growing */
};

/* That of `length` in `dir`; NULL: no memory. */
char *length_folder(struct arena *a, const char *dir, int64_t length);
/* lengths.json of what `p` has planned. */
void length_folders_print(const struct pipeline *p, struct text *out);
/* None (dim NULL) where DIR has no such file. ST_INVALID: it is no such file. */
enum status length_folders_read(
	struct arena *a, const char *dir, struct length_folders *out, struct diag *d);

#endif

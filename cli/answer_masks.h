/* A folder of masks: a palette PNG for each sample, whose numbers are the classes of its pixels. */
#ifndef STINT_CLI_ANSWER_MASKS_H
#define STINT_CLI_ANSWER_MASKS_H

#include "api/folder.h"
#include "cli/answers.h"

/* ST_USAGE where the answer is no mask, or the folder holds something. */
enum status masks_open(struct arena *a, const char *path, const struct answer *w,
	struct folder *out, struct diag *d);
/* Sample `sample`, whose elements begin at y; called as its file of `files`, or by its number
 * (NULL).
 */
enum status masks_put(const struct folder *out, const struct answer *w, const struct dataset *files,
	int64_t sample, const void *y, struct diag *d);
/* It takes its place; folder_drop, where it is not to. */
enum status masks_end(struct folder *out, struct diag *d);

#endif

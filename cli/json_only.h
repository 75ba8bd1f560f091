/* --json of a command that tells its progress on standard output. */
#ifndef STINT_CLI_JSON_ONLY_H
#define STINT_CLI_JSON_ONLY_H

#include "base/base.h"

/* From here to json_only_end what is printed to standard output goes to standard error, so that the
 * document stands there alone. *was: for json_only_end; -1 where `json` is false. */
enum status json_only_begin(bool json, int *was, struct diag *d);
void json_only_end(int was);

/* Of a command that ends with an error: what it told, one object on standard output.
 * {"code":3,"file":...,"node":...,"op":...,"message":...,"hint":...} of the first error, in
 * "others" the same of any more. */
struct json_errors {
	struct text first, others;
};
void json_error_add(
	struct json_errors *e, const struct where *w, const char *message, const char *hint);
/* Nothing where none was told, nor by other ranks than the first. */
void json_error_print(const struct json_errors *e, enum status st);
void json_errors_free(struct json_errors *e);
/* Whether --json is among the words of a command, be they right or not. */
bool json_asked(int argc, const char *const *argv);

#endif

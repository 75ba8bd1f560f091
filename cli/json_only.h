/* --json of a command that tells its progress on standard output. */
#ifndef STINT_CLI_JSON_ONLY_H
#define STINT_CLI_JSON_ONLY_H

#include "base/base.h"

/* From here to json_only_end what is printed to standard output goes to standard error, so that the
 * document stands there alone. *was: for json_only_end; -1 where `json` is false. */
enum status json_only_begin(bool json, int *was, struct diag *d);
void json_only_end(int was);

#endif

/* Models by name for the command line's tests. */
#ifndef STINT_TESTS_CLI_MODELS_H
#define STINT_TESTS_CLI_MODELS_H

#include "tests/import/model.h"

/* Fill `t` with the model called `name`; false: there is none. `text` is a name that some of them
 * put everywhere. */
bool models_make(struct model_test *t, const char *name, const char *text);

#endif

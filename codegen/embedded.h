/* The runtime's files as text, so that `stint compile` can put copies beside step.c. */
#ifndef STINT_CODEGEN_EMBEDDED_H
#define STINT_CODEGEN_EMBEDDED_H

#include "base/embedded_file.h"

/* Ended by a NULL name. */
const struct embedded_file *embedded_files(void);

#endif

/* The Python script that runs a model's step in PyTorch, in parts, as text inside the binary. */
#ifndef STINT_CLI_TORCH_FILES_H
#define STINT_CLI_TORCH_FILES_H

#include "base/embedded_file.h"

/* In the order in which they make one script; ended by a NULL name. */
const struct embedded_file *torch_files(void);

#endif

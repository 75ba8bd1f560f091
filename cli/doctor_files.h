/* The tiny model that `stint doctor` trains, inside the binary: examples/models/cnn.onnx. */
#ifndef STINT_CLI_DOCTOR_FILES_H
#define STINT_CLI_DOCTOR_FILES_H

#include "base/embedded_file.h"

/* One file; ended by a NULL name. */
const struct embedded_file *doctor_files(void);

#endif

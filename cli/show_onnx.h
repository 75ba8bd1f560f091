/* stint show --onnx FILE */
#ifndef STINT_CLI_SHOW_ONNX_H
#define STINT_CLI_SHOW_ONNX_H

#include "planner/plan.h"

/* Write `model`, from which `p` was made, to `path` with what `plan` does with each node. */
enum status show_onnx(const char *path, const char *model, struct arena *a, const struct problem *p,
	const struct plan *plan, struct diag *d);

#endif

/* A GPU's step on the CPU: launches go through the shim, with the library of kernels beside the
 * step's own. Products are oneDNN's. STINT_SHIM_ORDER=reverse: threads and blocks in reverse. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stint_rt.h"
#include "tests/gpu/shim/shim.h"

static struct shim *opened;
static char error[SHIM_TEXT];

/* "DIR/step.so" -> "DIR/kernels.so" */
static struct shim *open_kernels(void)
{
	Dl_info here;
	char path[4096];
	if (!dladdr((void *)(uintptr_t)&error, &here) || !here.dli_fname)
		return NULL;
	const char *slash = strrchr(here.dli_fname, '/');
	snprintf(path, sizeof path, "%.*skernels.so", slash ? (int)(slash - here.dli_fname) + 1 : 0,
		here.dli_fname);
	return shim_open(path, error);
}

int stint_launch(stint_step *s, int kernel, void **args)
{
	const struct stint_kernel *k = &s->model->kernel[kernel];
	const char *order = getenv("STINT_SHIM_ORDER");
	if (!opened && !(opened = open_kernels())) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	const struct shim_range arena = {s->arena, s->model->arena_bytes, true, "arena"};
	const struct shim_launch l = {.kernel = k->name,
		.grid = {(unsigned)k->blocks},
		.block = {(unsigned)k->threads},
		.nargs = k->args,
		.args = args,
		.nranges = 1,
		.ranges = &arena,
		.order = order && !strcmp(order, "reverse") ? SHIM_REVERSE : SHIM_FORWARD};
	const char *wrong = shim_launch(opened, &l);
	if (wrong)
		fprintf(stderr, "%s\n", wrong);
	return wrong != NULL;
}

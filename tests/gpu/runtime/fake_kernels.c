/* See fake_kernels.h. */
#include "fake_kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/shim/shim.h"

static struct shim *opened;

int fake_kernel_args(const char *name)
{
	const char *library = getenv("STINT_FAKE_KERNELS");
	char symbol[300];
	int (*call)(void **);
	void *handle = library ? dlopen(library, RTLD_LAZY | RTLD_LOCAL) : NULL;
	snprintf(symbol, sizeof symbol, "shim_call_%s", name);
	void *p = handle ? dlsym(handle, symbol) : NULL;
	memcpy(&call, &p, sizeof call);
	const int n = p ? call(NULL) : -1;
	if (handle)
		dlclose(handle);
	return n;
}

void fake_kernel_run(
	const char *name, const unsigned grid[3], const unsigned block[3], int nargs, void **args)
{
	static char error[SHIM_TEXT];
	const struct shim_launch l = {.kernel = name,
		.grid = {grid[0], grid[1], grid[2]},
		.block = {block[0], block[1], block[2]},
		.nargs = nargs,
		.args = args};
	if (!opened)
		opened = shim_open(getenv("STINT_FAKE_KERNELS"), error);
	const char *wrong = opened ? shim_launch(opened, &l) : error;
	if (wrong) {
		fprintf(stderr, "%s\n", wrong);
		abort();
	}
}

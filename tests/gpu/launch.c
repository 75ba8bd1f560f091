/* A GPU's step on the CPU: launches go through the shim, with the library of kernels beside the
 * step's own. Products are oneDNN's. STINT_SHIM_ORDER=reverse: threads and blocks in reverse.
 * STINT_SHIM_BLOCKS=N: of at most N blocks, which do the work of all: the same bits. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stint_rt_gpu_step.h"
#include "tests/gpu/shim/shim.h"

static const struct stint_model *model; /* whose kernels are open */
static struct shim *opened;
static char error[SHIM_TEXT];

/* "DIR/step.so" -> "DIR/kernels.so" */
static struct shim *open_kernels(const struct stint_model *m)
{
	Dl_info here;
	char path[4096];
	if (m == model)
		return opened;
	if (opened)
		shim_close(opened);
	model = m;
	opened = NULL;
	if (!dladdr((const void *)m, &here) || !here.dli_fname)
		return NULL;
	const char *slash = strrchr(here.dli_fname, '/');
	snprintf(path, sizeof path, "%.*skernels.so", slash ? (int)(slash - here.dli_fname) + 1 : 0,
		here.dli_fname);
	return opened = shim_open(path, error);
}

int stint_launch(stint_step *s, int kernel, void **args)
{
	const struct stint_kernel *k = &s->model->gpu->kernel[kernel];
	const char *order = getenv("STINT_SHIM_ORDER"), *blocks = getenv("STINT_SHIM_BLOCKS");
	if (!open_kernels(s->model)) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	const unsigned most = blocks ? (unsigned)atoi(blocks) : 0;
	const unsigned grid = most && most < (unsigned)k->blocks ? most : (unsigned)k->blocks;
	const struct shim_range arena = {s->arena, s->model->arena_bytes, true, "arena"};
	const struct shim_launch l = {.kernel = k->name,
		.grid = {grid},
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

/* Copies are made at once; the host's memory is the program's, as large as it needs to be. */
static unsigned char *host;

static unsigned char *host_of(const stint_step *s, size_t at)
{
	if (!host)
		host = malloc(s->model->gpu->host_bytes);
	return host ? host + at : NULL;
}

int stint_offload(stint_step *s, const struct stint_copy *c)
{
	memcpy(host_of(s, c->from), s->arena + c->at, c->bytes);
	return 0;
}

int stint_fetch(stint_step *s, const struct stint_copy *c)
{
	memcpy(s->arena + c->at, host_of(s, c->from), c->bytes);
	return 0;
}

int stint_copied(stint_step *s, const struct stint_copy *c)
{
	(void)s, (void)c;
	return 0;
}

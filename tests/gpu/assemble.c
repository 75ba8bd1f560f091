/* cuda_assemble OUT IN...: the texts one behind the other, behind the kernels' files. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "codegen/sources.h"

/* The kernels' files that the texts call. */
static bool print_files(struct arena *a, struct text *out)
{
	static const char *const file[] = {"primitives.cuh", "math.h", "block.cuh", "elements.cuh",
		"batchnorm.cuh", "norm.cuh", "norm_scale.cuh"};
	struct sources s = {.arena = a};
	for (size_t i = 0; i < sizeof file / sizeof *file; i++)
		if (!sources_add(&s, file[i], 0, NULL))
			return false;
	print_sources_whole(&s, out);
	return true;
}

int main(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct diag d = {.put = NULL};
	struct text out = {.s = NULL};
	enum status st = !a || argc < 3 ? ST_USAGE : print_files(a, &out) ? ST_OK : ST_INTERNAL;
	for (int i = 2; i < argc && st == ST_OK; i++) {
		char *text;
		size_t size;
		st = file_read(a, argv[i], &text, &size, &d);
		if (st == ST_OK)
			text_puts(&out, text);
	}
	if (st == ST_OK)
		st = text_save(&out, argv[1], &d);
	if (st != ST_OK)
		fprintf(stderr, "cuda_assemble OUT IN...: failed\n");
	text_free(&out);
	arena_free(a);
	return (int)st;
}

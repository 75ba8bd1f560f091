/* What a cubin says of its kernels, without NVIDIA's tools: it is an ELF file, with a section of
 * machine code for each. */
#ifndef TESTS_GPU_CUBIN_H
#define TESTS_GPU_CUBIN_H

#include <stddef.h>

/* Tells of each kernel how many instructions it has, with those that fill its last 128 bytes. -1:
 * it is no such file. */
int cubin_read(const void *data, size_t bytes,
	void (*tell)(void *user, const char *kernel, size_t instructions), void *user);

#endif

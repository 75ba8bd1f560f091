/* Kernels that the stand-in driver runs: of the library that STINT_FAKE_KERNELS names, made by the
 * shim of the text that the program compiled. All arguments are 8 bytes. */
#ifndef TESTS_GPU_RUNTIME_FAKE_KERNELS_H
#define TESTS_GPU_RUNTIME_FAKE_KERNELS_H

/* How many arguments the kernel takes; -1: there is none of that name. */
int fake_kernel_args(const char *name);
/* args: pointers to them. What goes wrong ends the program. */
void fake_kernel_run(
	const char *name, const unsigned grid[3], const unsigned block[3], int nargs, void **args);

#endif

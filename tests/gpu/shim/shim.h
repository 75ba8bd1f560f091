/* Runs CUDA kernels on a CPU: a library of them made by build.sh, a block's threads as fibers, one
 * block after the other. Errors come back as text: what, in which block and thread, where in the
 * text. One launch at a time in a process (a signal's handler finds it by one variable). */
#ifndef STINT_SHIM_H
#define STINT_SHIM_H

#include <stdbool.h>
#include <stddef.h>

struct shim;

enum { SHIM_TEXT = 4096 };

/* Load a library. NULL, and why in error, where it cannot be. */
struct shim *shim_open(const char *library, char error[static SHIM_TEXT]);
void shim_close(struct shim *s);
/* The library was built to be checked: ranges and races are looked at. */
bool shim_checks(const struct shim *s);

/* Memory that a launch may touch; a name for messages. */
struct shim_range {
	const void *at;
	size_t bytes;
	bool writable;
	const char *name;
};

/* Which of a warp's lanes, which warp, which block comes first, where nothing says. Backwards,
 * cp.async reads its source at once, else when it is waited for. */
enum shim_order { SHIM_FORWARD, SHIM_REVERSE };

struct shim_launch {
	const char *kernel;
	unsigned grid[3], block[3]; /* 0 stands for 1 */
	size_t dynamic;             /* bytes of dynamic shared memory */
	int nargs;
	void **args; /* args[i] points to argument i, as cuLaunchKernel takes them */
	/* None: accesses to memory that is not the kernel's own are not checked, but for races. */
	int nranges;
	const struct shim_range *ranges;
	enum shim_order order;
	int seconds; /* after these it is stopped; 0: 60 */
};

/* NULL: it ran. Else the error's text, the shim's own, until the next launch. Memory is then as the
 * kernel left it. */
const char *shim_launch(struct shim *s, const struct shim_launch *l);

#endif

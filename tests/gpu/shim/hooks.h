/* What a library of kernels (C++) and the shim that runs it (C) share. */
#ifndef STINT_SHIM_HOOKS_H
#define STINT_SHIM_HOOKS_H

#include <stddef.h>

struct shim;

struct shim_index {
	unsigned x, y, z;
};
/* Where the running thread is. */
struct shim_here {
	struct shim_index thread, block, block_size, grid_size;
};
/* A place in the text, as the compiler knows it. */
struct shim_site {
	const char *file;
	int line;
};

/* What a warp does together: io[lane] is what each lane of `mask` brought; the last to arrive does
 * it for all. */
typedef void shim_together(void *const *io, unsigned mask);

enum shim_access { SHIM_READ, SHIM_WRITE, SHIM_ATOMIC };
enum shim_barrier { SHIM_PLAIN, SHIM_COUNT, SHIM_OR, SHIM_AND };

/* Filled by shim_open. None of these returns where something is wrong: the launch ends. */
struct shim_hooks {
	struct shim *shim;
	/* Meets the lanes of `mask` at `what`; orders_memory: what they wrote is then seen. */
	void (*meet)(struct shim *s, const char *what, unsigned mask, int orders_memory, void *io,
		shim_together *together, struct shim_site at);
	int (*barrier)(struct shim *s, enum shim_barrier kind, int value, struct shim_site at);
	void (*copy_start)(struct shim *s, void *shared, const void *global, int bytes, int have,
		struct shim_site at);
	void (*copy_commit)(struct shim *s);
	void (*copy_wait)(struct shim *s, int n);
	void *(*dynamic)(struct shim *s);
	/* Only in libraries built to be checked; pc: whence, in the library. */
	void (*access)(
		struct shim *s, const void *at, size_t bytes, enum shim_access how, const void *pc);
	void (*fault)(struct shim *s, struct shim_site at, const char *fmt, ...)
		__attribute__((format(printf, 3, 4)));
};

#ifdef __cplusplus
extern "C" {
#endif
/* The library's own. */
extern struct shim_hooks shim_hooks __attribute__((visibility("default")));
extern struct shim_here shim_here __attribute__((visibility("default")));
extern const int shim_checked __attribute__((visibility("default")));
#ifdef __cplusplus
}
#endif

#endif

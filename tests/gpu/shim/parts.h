/* What the shim's files share; private to the folder. */
#ifndef STINT_SHIM_PARTS_H
#define STINT_SHIM_PARTS_H

#include <stdint.h>

#include "tests/gpu/shim/fiber.h"
#include "tests/gpu/shim/hooks.h"
#include "tests/gpu/shim/shim.h"

enum { WARP = 32, MAX_THREADS = 1024 };

enum shim_state { READY, IN_WARP, IN_BLOCK, DONE };

/* cp.async: from the start to the wait. */
struct copy {
	char *to;
	const char *from;
	int bytes, have;
	long group;
	char data[16]; /* backwards: as it was at the start */
};

struct thread {
	struct fiber fiber;
	struct shim *shim;
	int number; /* in the block */
	struct shim_index index;
	enum shim_state state;
	/* what it waits for */
	const char *what;
	unsigned mask;
	void *io;
	struct shim_site at;
	int value; /* what it brought to a barrier */
	/* Times of its warp's lanes: accesses of lane i up to seen[i] came before what it does now;
	 * its own stands for now. */
	uint32_t seen[WARP];
	struct copy *copies;
	int ncopies, capcopies;
	long groups; /* committed */
};

/* The last access of a kind to a byte. */
struct trace {
	uint32_t serial; /* of the block, over all launches; 0: none */
	uint32_t pc;     /* in the library */
	uint32_t epoch;  /* barriers before it */
	uint32_t time;   /* its lane's own */
	uint32_t lanes;  /* of one warp, that did it */
	uint16_t warp;   /* MANY_WARPS: of several; MANY_BLOCKS: and blocks */
	uint16_t thread; /* the last of them */
};
enum { MANY_WARPS = 0xFFFF, MANY_BLOCKS = 0xFFFE };
struct byte_trace {
	struct trace write, read;
};

/* A store to where another thread stored, with no order between them: no race if the value is the
 * same, which is seen at the thread's next step. */
struct store {
	const char *at; /* NULL: none */
	size_t bytes;
	const void *pc;
	struct trace other;
	char before[16];
};

enum { PAGE = 4096 };
struct page {
	uintptr_t number; /* address / PAGE */
	struct byte_trace *byte;
};

/* A __shared__ variable. */
struct variable {
	char *at;
	size_t bytes;
	char *name, *owner; /* owner: the kernel; NULL: of a function that kernels call */
};

struct library {
	void *handle;
	char *path;
	char *base, *end; /* where it lies; base: address 0 of its file */
	char *shared, *shared_end;
	int nvariables;
	struct variable *variable;
};

struct shim {
	struct library library;
	struct shim_hooks *hooks;
	struct shim_here *here;
	bool checked;
	char error[SHIM_TEXT];
	bool failed;
	/* the launch */
	const struct shim_launch *launch;
	int (*call)(void **args);
	int nthreads;
	struct thread *thread;  /* MAX_THREADS */
	struct thread *current; /* NULL: none runs */
	struct fiber main;
	char *stacks;
	size_t stack_bytes;
	struct shim_index block;
	uint32_t serial, first_serial; /* this block; the launch's first */
	uint32_t epoch;
	int result; /* of the barrier */
	/* dynamic shared memory */
	char *dynamic;
	size_t dynamic_cap;
	/* checks: traces of shared memory (variables, then dynamic), of global memory by page */
	struct byte_trace *shared_trace;
	uint16_t *in_flight; /* by byte of shared memory: thread + 1 that copies there */
	struct page *page;
	size_t npages, cappages;
	const struct shim_range *last_range;
	struct store store; /* the running thread's last */
};

/* --- shim.c --- */
/* Ends the launch: from a kernel it does not return. `at` may be NULL. */
void shim_fail(struct shim *s, const struct shim_site *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Let others run. */
void shim_yield(struct shim *s);
/* Without its folder. */
const char *shim_file(const char *path);
/* "block (0,0,0), thread (3,0,0)" */
const char *shim_name_thread(const struct shim *s, int number, char out[static 80]);

/* --- meet.c --- */
void shim_meet(struct shim *s, const char *what, unsigned mask, int orders_memory, void *io,
	shim_together *together, struct shim_site at);
int shim_barrier(struct shim *s, enum shim_barrier kind, int value, struct shim_site at);
/* All wait at the barrier: let them on. */
void shim_barrier_open(struct shim *s);
/* Nobody can go on: say why. */
void shim_deadlock(struct shim *s);

/* --- copy.c --- */
void shim_copy_start(
	struct shim *s, void *shared, const void *global, int bytes, int have, struct shim_site at);
void shim_copy_commit(struct shim *s);
void shim_copy_wait(struct shim *s, int n);

/* --- memory.c --- */
/* Byte of shared memory, for traces; -1: it is not. */
long shim_shared_offset(const struct shim *s, const void *at);
/* Fill what a block finds in shared memory with NaNs. */
void shim_poison(struct shim *s);
bool shim_memory_new(struct shim *s);
void shim_memory_free(struct shim *s);
/* The running thread goes on from its last store: was its value the one that stood there? */
void shim_settle(struct shim *s);
/* An access by the running thread. */
void shim_access(
	struct shim *s, const void *at, size_t bytes, enum shim_access how, const void *pc);

/* --- library.c --- */
bool library_open(struct library *l, const char *path, char error[static SHIM_TEXT]);
void library_close(struct library *l);
void *library_symbol(const struct library *l, const char *prefix, const char *name);
/* "kernels.cu:12" of an address; "" where nothing knows. */
const char *library_line(const struct library *l, uintptr_t offset, char out[static 256]);

#endif

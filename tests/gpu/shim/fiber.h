/* A second stack to run on. */
#ifndef STINT_SHIM_FIBER_H
#define STINT_SHIM_FIBER_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__) && !defined(SHIM_UCONTEXT)
#define FIBER_ASM 1
#else
#include <ucontext.h>
#endif

struct fiber {
#ifdef FIBER_ASM
	void *sp;
#else
	ucontext_t context;
#endif
	char *stack; /* NULL: the thread's own */
	size_t bytes;
	void *fake; /* AddressSanitizer's */
};

/* `f(arg)` is what `fiber`, on the given stack, will do; it never returns but switches away. */
void fiber_make(struct fiber *fiber, char *stack, size_t bytes, void (*f)(void *), void *arg);
/* Go on with `to`; back when somebody switches to `from`. last: nobody will. */
void fiber_switch(struct fiber *from, struct fiber *to, bool last);
/* To be called first in f. */
void fiber_begin(struct fiber *from);

#endif

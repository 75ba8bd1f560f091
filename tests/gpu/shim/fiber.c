/* Fibers: a switch of stacks by hand on x86-64 (ucontext's makes two system calls), ucontext
 * elsewhere. AddressSanitizer is told of each switch. */
#include "tests/gpu/shim/fiber.h"

#include <stdint.h>
#include <string.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(SANITIZED)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define BEFORE(save, to) __sanitizer_start_switch_fiber(save, (to)->stack, (to)->bytes)
/* The thread's own stack is not known before it was left once. */
#define AFTER(self, from)                                                                          \
	do {                                                                                       \
		const void *stack_;                                                                \
		size_t bytes_;                                                                     \
		__sanitizer_finish_switch_fiber((self)->fake, &stack_, &bytes_);                   \
		if (!(from)->stack) {                                                              \
			(from)->stack = (char *)(uintptr_t)stack_;                                 \
			(from)->bytes = bytes_;                                                    \
		}                                                                                  \
	} while (0)
#define CLEAN(stack, bytes) ASAN_UNPOISON_MEMORY_REGION(stack, bytes)
#else
#define BEFORE(save, to) ((void)(save))
#define AFTER(self, from) ((void)(from))
#define CLEAN(stack, bytes) ((void)0)
#endif

#ifdef FIBER_ASM
/* System V ABI, x86-64: a function keeps rbx, rbp, r12 to r15 and the stack. */
__asm__(".text\n"
	".type shim_swap_, @function\n"
	"shim_swap_:\n"
	"\tpush %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n"
	"\tmov %rsp, (%rdi)\n"
	"\tmov %rsi, %rsp\n"
	"\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n"
	"\tret\n"
	".type shim_start_, @function\n"
	"shim_start_:\n"
	"\tmov %r12, %rdi\n"
	"\tcall *%r13\n"
	"\tud2\n");
extern void shim_swap_(void **save, void *sp);
extern void shim_start_(void);

static void make(struct fiber *fiber, void (*f)(void *), void *arg)
{
	void **sp = (void **)(void *)(fiber->stack + fiber->bytes - 64);
	memset(sp, 0, 64);
	*--sp = (void *)(uintptr_t)shim_start_;
	*--sp = NULL;                 /* rbp */
	*--sp = NULL;                 /* rbx */
	*--sp = arg;                  /* r12 */
	*--sp = (void *)(uintptr_t)f; /* r13 */
	*--sp = NULL;                 /* r14 */
	*--sp = NULL;                 /* r15 */
	fiber->sp = sp;
}

static void swap(struct fiber *from, struct fiber *to)
{
	shim_swap_(&from->sp, to->sp);
}
#else
static void start(unsigned f_high, unsigned f_low, unsigned arg_high, unsigned arg_low)
{
	const uintptr_t f = (uintptr_t)((uint64_t)f_high << 32 | f_low);
	const uintptr_t arg = (uintptr_t)((uint64_t)arg_high << 32 | arg_low);
	((void (*)(void *))f)((void *)arg);
}

static void make(struct fiber *fiber, void (*f)(void *), void *arg)
{
	const uint64_t a = (uintptr_t)f, b = (uintptr_t)arg;
	getcontext(&fiber->context);
	fiber->context.uc_stack.ss_sp = fiber->stack;
	fiber->context.uc_stack.ss_size = fiber->bytes;
	fiber->context.uc_link = NULL;
	makecontext(&fiber->context, (void (*)(void))start, 4, (unsigned)(a >> 32), (unsigned)a,
		(unsigned)(b >> 32), (unsigned)b);
}

static void swap(struct fiber *from, struct fiber *to)
{
	swapcontext(&from->context, &to->context);
}
#endif

void fiber_make(struct fiber *fiber, char *stack, size_t bytes, void (*f)(void *), void *arg)
{
	fiber->stack = stack;
	fiber->bytes = bytes;
	fiber->fake = NULL;
	CLEAN(stack, bytes);
	make(fiber, f, arg);
}

void fiber_switch(struct fiber *from, struct fiber *to, bool last)
{
	BEFORE(last ? NULL : &from->fake, to);
	swap(from, to);
	AFTER(from, to);
}

void fiber_begin(struct fiber *from)
{
	struct fiber self = {.fake = NULL};
	(void)self;
	AFTER(&self, from);
}

/* Part of every library of kernels: the shim's way in, and, where SHIM_CHECKED, what the compilers'
 * instrumentation calls: -fsanitize=thread names every access to memory, -fsanitize=alignment,...
 * every step outside the language. No sanitizer's runtime is linked. */
#include <stdint.h>

#include "tests/gpu/shim/hooks.h"

struct shim_hooks shim_hooks;
struct shim_here shim_here;

#ifndef SHIM_CHECKED
const int shim_checked = 0;
#else
const int shim_checked = 1;

#define TRACE(name, bytes, how)                                                                    \
	void name(void *at);                                                                       \
	void name(void *at)                                                                        \
	{                                                                                          \
		shim_hooks.access(shim_hooks.shim, at, bytes, how, __builtin_return_address(0));   \
	}
#define TRACE_SIZE(bytes)                                                                          \
	TRACE(__tsan_read##bytes, bytes, SHIM_READ)                                                \
	TRACE(__tsan_write##bytes, bytes, SHIM_WRITE)                                              \
	TRACE(__tsan_unaligned_read##bytes, bytes, SHIM_READ)                                      \
	TRACE(__tsan_unaligned_write##bytes, bytes, SHIM_WRITE)
TRACE_SIZE(1)
TRACE_SIZE(2)
TRACE_SIZE(4)
TRACE_SIZE(8)
TRACE_SIZE(16)

#define TRACE_RANGE(name, how)                                                                     \
	void name(void *at, unsigned long bytes);                                                  \
	void name(void *at, unsigned long bytes)                                                   \
	{                                                                                          \
		shim_hooks.access(shim_hooks.shim, at, bytes, how, __builtin_return_address(0));   \
	}
TRACE_RANGE(__tsan_read_range, SHIM_READ)
TRACE_RANGE(__tsan_write_range, SHIM_WRITE)

void __tsan_init(void);
void __tsan_init(void)
{
}
void __tsan_func_entry(void *pc);
void __tsan_func_entry(void *pc)
{
	(void)pc;
}
void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/* clang calls these for what it would have made calls of memcpy and memset. */
static void trace(const void *at, size_t bytes, enum shim_access how, const void *pc)
{
	if (bytes)
		shim_hooks.access(shim_hooks.shim, at, bytes, how, pc);
}
void *__tsan_memset(void *to, int value, size_t bytes);
void *__tsan_memset(void *to, int value, size_t bytes)
{
	trace(to, bytes, SHIM_WRITE, __builtin_return_address(0));
	return __builtin_memset(to, value, bytes);
}
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
	trace(from, bytes, SHIM_READ, __builtin_return_address(0));
	trace(to, bytes, SHIM_WRITE, __builtin_return_address(0));
	return __builtin_memcpy(to, from, bytes);
}
void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
	trace(from, bytes, SHIM_READ, __builtin_return_address(0));
	trace(to, bytes, SHIM_WRITE, __builtin_return_address(0));
	return __builtin_memmove(to, from, bytes);
}

/* What -fsanitize=undefined passes: compiler-rt's lib/ubsan/ubsan_handlers.h and ubsan_value.h. */
struct source {
	const char *file;
	uint32_t line, column;
};
struct type {
	uint16_t kind, info;
	char name[];
};
struct mismatch {
	struct source at;
	const struct type *type;
	unsigned char log_alignment, kind;
};
struct bounds {
	struct source at;
	const struct type *array, *index;
};
struct overflow {
	struct source at;
	const struct type *type;
};

static void fault(const struct source *at, const char *what, const char *name)
{
	const struct shim_site site = {at->file, (int)at->line};
	shim_hooks.fault(shim_hooks.shim, site, "%s %s", what, name);
}

void __ubsan_handle_type_mismatch_v1(const struct mismatch *m, uintptr_t at);
void __ubsan_handle_type_mismatch_v1(const struct mismatch *m, uintptr_t at)
{
	const struct shim_site site = {m->at.file, (int)m->at.line};
	const unsigned long align = 1ul << m->log_alignment;
	if (at & (align - 1))
		shim_hooks.fault(shim_hooks.shim, site,
			"misaligned access to %s: its address is %lu bytes past a multiple of %lu",
			m->type->name, (unsigned long)(at & (align - 1)), align);
	else
		fault(&m->at, "bad access to", m->type->name);
}
void __ubsan_handle_out_of_bounds(const struct bounds *b, uintptr_t index);
void __ubsan_handle_out_of_bounds(const struct bounds *b, uintptr_t index)
{
	const struct shim_site site = {b->at.file, (int)b->at.line};
	shim_hooks.fault(shim_hooks.shim, site, "index %ld out of bounds of %s", (long)index,
		b->array->name);
}

#define OVERFLOW(handler, what)                                                                    \
	void handler(const struct overflow *o, uintptr_t a, uintptr_t b);                          \
	void handler(const struct overflow *o, uintptr_t a, uintptr_t b)                           \
	{                                                                                          \
		(void)a;                                                                           \
		(void)b;                                                                           \
		fault(&o->at, what, o->type->name);                                                \
	}
OVERFLOW(__ubsan_handle_add_overflow, "overflow of a sum of type")
OVERFLOW(__ubsan_handle_sub_overflow, "overflow of a difference of type")
OVERFLOW(__ubsan_handle_mul_overflow, "overflow of a product of type")
OVERFLOW(__ubsan_handle_negate_overflow, "overflow of a negation of type")
OVERFLOW(__ubsan_handle_divrem_overflow, "a quotient that does not exist, of type")
OVERFLOW(__ubsan_handle_shift_out_of_bounds, "a shift by too much of type")
#endif

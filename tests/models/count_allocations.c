/* Stands in for the C library's allocation functions in the whole program, shared libraries
 * included, and counts what is asked for. glibc keeps its own under these other names. */
#include "tests/models/count_allocations.h"

#include <errno.h>

struct allocations allocations_counted;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static void count(size_t bytes)
{
	__atomic_add_fetch(&allocations_counted.number, 1, __ATOMIC_RELAXED);
	size_t largest = __atomic_load_n(&allocations_counted.largest, __ATOMIC_RELAXED);
	while (bytes > largest && !__atomic_compare_exchange_n(&allocations_counted.largest,
					  &largest, bytes, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void *malloc(size_t bytes)
{
	count(bytes);
	return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	count(n * bytes);
	return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
	count(bytes);
	return __libc_realloc(p, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
	count(bytes);
	return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
	*out = memalign(alignment, bytes);
	return *out ? 0 : ENOMEM;
}

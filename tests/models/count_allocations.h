/* What the program has asked the C library for so far; set it to zero to start over. */
#ifndef STINT_TESTS_COUNT_ALLOCATIONS_H
#define STINT_TESTS_COUNT_ALLOCATIONS_H

#include <stddef.h>

struct allocations {
	size_t number, largest; /* calls; bytes of the greatest one */
};

extern struct allocations allocations_counted;

#endif

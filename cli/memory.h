/* What memory the system says this process has. Bytes; -1 where it does not say. */
#ifndef STINT_CLI_MEMORY_H
#define STINT_CLI_MEMORY_H

#include <stddef.h>
#include <stdint.h>

int64_t memory_resident(void);
/* The most that was resident so far. */
int64_t memory_peak(void);
/* Of the pages that hold [p, p + bytes), those that are resident; at most `bytes`. */
int64_t memory_resident_of(const void *p, size_t bytes);

#endif

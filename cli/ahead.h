/* The next batch is read by a thread while a step computes. */
#ifndef STINT_CLI_AHEAD_H
#define STINT_CLI_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

struct ahead;

/* Reads samples index[0..n) for `user`; 0, or 1 with a message. May change the indices. */
typedef int ahead_read(void *user, int64_t *index, int64_t n, char message[256]);

/* For batches of up to `most` samples. NULL: out of memory, or no thread to be had. */
struct ahead *ahead_new(ahead_read *read, void *user, int64_t most);
/* Waits for what is being read. NULL is none. */
void ahead_free(struct ahead *a);

/* Begin to read this batch; what was begun before is waited for and forgotten. */
void ahead_begin(struct ahead *a, const int64_t *index, int64_t n);
/* Waits until nothing is being read. True: it was this batch, with *rc and `message` as `read` left
 * them; each batch is taken once. */
bool ahead_take(struct ahead *a, const int64_t *index, int64_t n, int *rc, char message[256]);

#endif

/* Processes joined in pairs by sockets: private to the stand-in for NCCL. */
#ifndef TESTS_GPU_RUNTIME_FAKE_LINKS_H
#define TESTS_GPU_RUNTIME_FAKE_LINKS_H

#include <stddef.h>
#include <stdint.h>

enum links_end { LINKS_DONE, LINKS_GONE, LINKS_LATE };

struct links_head {
	uint64_t bytes;
	uint64_t kind;
};

/* One message. Those from, and those to, one rank are in the order of the list. */
struct links_move {
	int peer, out, kind; /* both sides have the same kind */
	void *data;
	size_t bytes;
	struct links_head head; /* as it travels */
	size_t done;            /* bytes, the head's among them; 0 at first */
};

/* Makes a folder to meet in; it is gone when all have met, or when this process ends. */
int links_place(char *path, size_t room);
/* Waits for the other ranks; fd has room for n, its own is -1. Not 0: they did not come. */
int links_open(const char *place, int n, int rank, int *fd);
void links_close(int n, int *fd);
/* All messages at once. LINKS_GONE: a rank's process has ended; LINKS_LATE: nothing came or went
 * for so many milliseconds. A message of another size than is waited for ends the program. */
enum links_end links_move(int n, const int *fd, struct links_move *list, int count, int ms);

#endif

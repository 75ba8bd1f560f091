/* Streams, events and graphs of the stand-in driver: private to it. What a stream is given waits
 * until somebody asks for it, so that a wait or a copy of the host's that is missing shows. */
#ifndef TESTS_GPU_RUNTIME_FAKE_STREAMS_H
#define TESTS_GPU_RUNTIME_FAKE_STREAMS_H

#include <stddef.h>
#include <stdint.h>

#include "fake.h"
#include "fake_later.h"

enum { FAKE_INVALID = 1, FAKE_ARGS = 512 };

extern struct fake fake;

/* 0: the call goes on; counted, as it may be made to fail. */
int fake_may(void);
int fake_may_in_context(void);
/* What has to be released. */
void *fake_object(size_t bytes);
int fake_release(void *p);

struct fake_kernel {
	char name[64];
	int dynamic; /* bytes of shared memory allowed */
};

enum fake_op {
	FAKE_PUT,
	FAKE_GET,
	FAKE_COPY,
	FAKE_FILL,
	FAKE_LAUNCH,
	FAKE_WORK,
	FAKE_WAIT,
	FAKE_GRAPH
};

/* What a stream is given. */
struct fake_work {
	struct fake_work *next;
	enum fake_op op;
	void *to;
	const void *from;
	void *kept; /* a copy of the host's bytes, taken at once */
	size_t bytes;
	unsigned char byte;
	const char *kernel;
	unsigned grid[3], block[3], shared;
	int nargs;
	uint64_t arg[FAKE_ARGS];
	void (*call)(void *);
	int lane; /* waited for: so much of that stream's work */
	size_t ticket;
	void *graph;
	_Alignas(16) unsigned char data[FAKE_CALL];
};

/* Gives a copy of w to a stream, or to what it records into. */
int fake_give(void *stream, const struct fake_work *w);
/* All that the streams were given is done. */
void fake_finish(void);
int fake_recording(void *stream);
/* Only what this stream was given, and what that waits for. */
void fake_finish_stream(void *stream);
/* For calls that wait: ends the program where the wait never would. */
void fake_not_hung(const char *who);
/* What is left on the streams is never done; they go on with what comes. */
void fake_drop(void);
/* Does the work of one kernel, copy, fill or call. */
void fake_run(const struct fake_work *w);

#endif

/* What the stand-ins for NVIDIA's libraries show to tests, by the symbol "fake" of the driver's. */
#ifndef TESTS_GPU_RUNTIME_FAKE_H
#define TESTS_GPU_RUNTIME_FAKE_H

#include <stddef.h>

struct fake {
	int calls;   /* so far, of those that may fail */
	int fail_at; /* the call that fails, from 1; 0: none */
	int live;    /* handles and allocations not yet released */
	int depth;   /* contexts pushed and not popped */
	int launches;
	int devices;          /* that the driver shows */
	int major, minor;     /* of the device */
	int version;          /* of the driver */
	size_t context, unit; /* bytes a context takes; granularity of allocations */
	size_t used;
	int hung;  /* a stream waits for what never comes: none goes on */
	int early; /* streams beside the main one run as early as they may, not as late */
};

enum { FAKE_ERROR = 999 };

#endif

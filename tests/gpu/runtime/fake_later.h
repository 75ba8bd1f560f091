/* How the stand-ins for libraries put work on the stand-in driver's streams: done at once, or in
 * each replay where the stream is being recorded. */
#ifndef TESTS_GPU_RUNTIME_FAKE_LATER_H
#define TESTS_GPU_RUNTIME_FAKE_LATER_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "fake.h"

enum { FAKE_CALL = 1024 };

/* `work` gets a copy of data, at most FAKE_CALL bytes; 0 or an error. */
typedef int fake_call_function(void *stream, void (*work)(void *), const void *data, size_t bytes);

/* What the stand-in driver beside this library has under a name. */
static inline void *fake_driver(const char *name)
{
	static const char here;
	Dl_info info;
	char path[4096];
	if (!dladdr((const void *)&here, &info) || !info.dli_fname)
		return NULL;
	const char *slash = strrchr(info.dli_fname, '/');
	snprintf(path, sizeof path, "%.*slibcuda.so.1",
		slash ? (int)(slash - info.dli_fname) + 1 : 0, info.dli_fname);
	void *driver = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
	void *symbol = driver ? dlsym(driver, name) : NULL;
	if (driver)
		dlclose(driver); /* it stays loaded */
	return symbol;
}

static inline int fake_later(void *stream, void (*work)(void *), const void *data, size_t bytes)
{
	void *const symbol = fake_driver("fake_call");
	fake_call_function *call = NULL;
	memcpy(&call, &symbol, sizeof call);
	return call ? call(stream, work, data, bytes) : 1;
}

/* Whether a context is current, or would be, had this call not been made to fail. */
static inline int fake_in_context(void)
{
	const struct fake *driver = fake_driver("fake");
	return driver && (driver->depth > 0 || driver->calls == driver->fail_at);
}

#endif

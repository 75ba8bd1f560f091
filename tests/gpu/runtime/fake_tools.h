/* What the tests on stand-ins share. */
#ifndef TESTS_GPU_RUNTIME_FAKE_TOOLS_H
#define TESTS_GPU_RUNTIME_FAKE_TOOLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake.h"
#include "runtime/stint_gpu_api.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

struct fake *fake_of(stint_gpu *g);
/* A stint_gpu with the stand-ins loaded and as they are at first; no device opened, no cache. */
stint_gpu *gpu_new(void);
/* Frees it; nothing is left. */
void gpu_done(stint_gpu *g);
/* The folder and all in it are gone. */
void folder_empty(const char *folder);

#endif

/* Files that a test writes in the folder it runs in. */
#ifndef STINT_TEST_SCRATCH_H
#define STINT_TEST_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void scratch_write(const char *path, const void *data, size_t n);
/* Newly allocated. */
unsigned char *scratch_read(const char *path, size_t *n);
void scratch_truncate(const char *path, size_t n);
int scratch_exists(const char *path);
/* Removes a folder's files and the folder; fine when it is not there. */
void scratch_clear(const char *folder);
/* A safetensors file of this header and data. */
void scratch_safetensors(const char *path, const char *header, const void *data, size_t n);

#endif

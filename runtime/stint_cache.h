/* SPDX-License-Identifier: MIT-0 */
/* What took long to make, kept in a folder under a key of all that it depends on: compiled kernels,
 * a GPU's code and its library's choices. Any number of processes may share the folder. */
#ifndef STINT_CACHE_H
#define STINT_CACHE_H

#include <stddef.h>

#include "stint_sha256.h"

/* STINT_CACHE, else XDG_CACHE_HOME/stint, else ~/.cache/stint; "" (STINT_CACHE= too): none. */
void stint_cache_folder(char *path, size_t size);

/* Of a key, a field: its length, then its bytes, so that fields cannot run into each other. */
void stint_cache_field(struct stint_sha *s, const void *data, size_t bytes);

/* What is kept in `folder` under `key`, malloc'ed; NULL: nothing that is whole. Folders may be NULL
 * or "": nothing is kept there. */
void *stint_cache_read(const char *folder, const unsigned char key[STINT_SHA], size_t *bytes);
/* Best effort: who cannot write goes without. */
void stint_cache_write(
	const char *folder, const unsigned char key[STINT_SHA], const void *data, size_t bytes);

#endif

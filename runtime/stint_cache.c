/* SPDX-License-Identifier: MIT-0 */
/* The cache: files named by a key, written whole or not at all, and believed only when their own
 * sum agrees. The key and the sum are SHA-256, so that neither chance nor a stranger's file passes.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mkostemp */
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stint_cache.h"

static void put64(unsigned char *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (unsigned char)(v >> (56 - 8 * i));
}

static uint64_t get64(const unsigned char *p)
{
	uint64_t v = 0;
	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

void stint_cache_field(struct stint_sha *s, const void *data, size_t bytes)
{
	unsigned char length[8];
	put64(length, bytes);
	stint_sha_add(s, length, sizeof length);
	stint_sha_add(s, data, bytes);
}

/* --- Entries --- */

/* An entry: the mark, the key, the length of the data, the sum of all that and of the data; the
 * data. */
enum { MARK = 16, HEAD = MARK + STINT_SHA + 8, ALL = HEAD + STINT_SHA };
static const char mark[MARK] = "stint-cache-1\n";

void stint_cache_folder(char *path, size_t size)
{
	const char *given = getenv("STINT_CACHE"), *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	int n = 0;
	*path = '\0';
	if (given)
		n = snprintf(path, size, "%s", given);
	else if (xdg && *xdg)
		n = snprintf(path, size, "%s/stint", xdg);
	else if (home && *home)
		n = snprintf(path, size, "%s/.cache/stint", home);
	if (n < 0 || (size_t)n >= size)
		*path = '\0';
}

static int entry_path(
	const char *folder, const unsigned char key[STINT_SHA], char *path, size_t size)
{
	char name[2 * STINT_SHA + 1];
	for (int i = 0; i < STINT_SHA; i++)
		snprintf(name + 2 * i, 3, "%02x", key[i]);
	if (!folder || !*folder)
		return -1;
	const int n = snprintf(path, size, "%s/%s", folder, name);
	return n > 0 && (size_t)n < size ? 0 : -1;
}

static void entry_sum(
	const unsigned char *head, const void *data, size_t bytes, unsigned char sum[STINT_SHA])
{
	struct stint_sha s;
	stint_sha_start(&s);
	stint_sha_add(&s, head, HEAD);
	stint_sha_add(&s, data, bytes);
	stint_sha_end(&s, sum);
}

/* 0: all n bytes came. */
static int read_all(int fd, unsigned char *p, size_t n)
{
	while (n > 0) {
		const ssize_t got = read(fd, p, n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		p += got;
		n -= (size_t)got;
	}
	return 0;
}

static int write_all(int fd, const unsigned char *p, size_t n)
{
	while (n > 0) {
		const ssize_t put = write(fd, p, n);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return -1;
		p += put;
		n -= (size_t)put;
	}
	return 0;
}

static unsigned char *entry_data(int fd, const unsigned char key[STINT_SHA], size_t *bytes)
{
	unsigned char head[ALL], sum[STINT_SHA];
	struct stat st;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < ALL || read_all(fd, head, ALL) ||
		memcmp(head, mark, MARK) != 0 || memcmp(head + MARK, key, STINT_SHA) != 0 ||
		get64(head + MARK + STINT_SHA) != (uint64_t)st.st_size - ALL)
		return NULL;
	const size_t n = (size_t)st.st_size - ALL;
	unsigned char *data = malloc(n ? n : 1);
	if (!data || read_all(fd, data, n)) {
		free(data);
		return NULL;
	}
	entry_sum(head, data, n, sum);
	if (memcmp(sum, head + HEAD, STINT_SHA) != 0) {
		free(data);
		return NULL;
	}
	*bytes = n;
	return data;
}

void *stint_cache_read(const char *folder, const unsigned char key[STINT_SHA], size_t *bytes)
{
	char path[2048];
	if (entry_path(folder, key, path, sizeof path))
		return NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* never wait for a pipe */
	if (fd < 0)
		return NULL;
	unsigned char *data = entry_data(fd, key, bytes);
	close(fd);
	return data;
}

/* The folder and those above it. */
static void folder_make(const char *folder)
{
	char path[2048];
	if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path)
		return;
	for (char *p = path + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			mkdir(path, 0777);
			*p = '/';
		}
	mkdir(path, 0777);
}

void stint_cache_write(
	const char *folder, const unsigned char key[STINT_SHA], const void *data, size_t bytes)
{
	char path[2048], temporary[2100];
	unsigned char head[ALL];
	if (entry_path(folder, key, path, sizeof path))
		return;
	folder_make(folder);
	/* beside the entry: renaming does not cross file systems; a name of its own for each
	 * writer */
	snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
	const int fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return;
	memcpy(head, mark, MARK);
	memcpy(head + MARK, key, STINT_SHA);
	put64(head + MARK + STINT_SHA, bytes);
	entry_sum(head, data, bytes, head + HEAD);
	const int failed = write_all(fd, head, ALL) || write_all(fd, data, bytes);
	if (close(fd) || failed || rename(temporary, path))
		unlink(temporary);
}

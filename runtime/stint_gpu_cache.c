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

#include "stint_gpu_api.h"

/* --- SHA-256: FIPS 180-4, sections 4.1.2, 4.2.2, 5.3.3 and 6.2 --- */

static uint32_t turn(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void hash_block(uint32_t h[8], const unsigned char *p)
{
	/* the first 32 bits of the fractions of the cube roots of the first 64 primes */
	static const uint32_t k[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
		0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
		0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6,
		0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
		0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
		0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
		0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585,
		0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
		0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
		0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
	uint32_t w[64], v[8];
	for (int t = 0; t < 16; t++)
		w[t] = (uint32_t)p[4 * t] << 24 | (uint32_t)p[4 * t + 1] << 16 |
		       (uint32_t)p[4 * t + 2] << 8 | p[4 * t + 3];
	for (int t = 16; t < 64; t++) {
		const uint32_t a = w[t - 15], b = w[t - 2];
		w[t] = (turn(b, 17) ^ turn(b, 19) ^ b >> 10) + w[t - 7] +
		       (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[t - 16];
	}
	memcpy(v, h, sizeof v);
	for (int t = 0; t < 64; t++) {
		const uint32_t a = v[0], e = v[4];
		const uint32_t t1 = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
				    ((e & v[5]) ^ (~e & v[6])) + k[t] + w[t];
		const uint32_t t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
				    ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof *v);
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

void stint_gpu_hash_start(struct gpu_hash *s)
{
	static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	memcpy(s->h, start, sizeof start);
	s->bytes = 0;
}

void stint_gpu_hash_add(struct gpu_hash *s, const void *data, size_t bytes)
{
	const unsigned char *p = data;
	while (bytes > 0) {
		const size_t at = s->bytes % 64, room = 64 - at;
		const size_t n = bytes < room ? bytes : room;
		memcpy(s->block + at, p, n);
		s->bytes += n;
		p += n;
		bytes -= n;
		if (s->bytes % 64 == 0)
			hash_block(s->h, s->block);
	}
}

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

void stint_gpu_hash_field(struct gpu_hash *s, const void *data, size_t bytes)
{
	unsigned char length[8];
	put64(length, bytes);
	stint_gpu_hash_add(s, length, sizeof length);
	stint_gpu_hash_add(s, data, bytes);
}

void stint_gpu_hash_end(struct gpu_hash *s, unsigned char key[GPU_KEY])
{
	static const unsigned char one = 0x80, none = 0;
	unsigned char bits[8];
	put64(bits, 8 * s->bytes);
	stint_gpu_hash_add(s, &one, 1);
	while (s->bytes % 64 != 56)
		stint_gpu_hash_add(s, &none, 1);
	stint_gpu_hash_add(s, bits, sizeof bits);
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 4; j++)
			key[4 * i + j] = (unsigned char)(s->h[i] >> (24 - 8 * j));
}

/* --- Entries --- */

/* An entry: the mark, the key, the length of the data, the sum of all that and of the data; the
 * data. */
enum { MARK = 16, HEAD = MARK + GPU_KEY + 8, ALL = HEAD + GPU_KEY };
static const char mark[MARK] = "stint-cache-1\n";

static int entry_path(const stint_gpu *g, const unsigned char key[GPU_KEY], char *path, size_t size)
{
	char name[2 * GPU_KEY + 1];
	for (int i = 0; i < GPU_KEY; i++)
		snprintf(name + 2 * i, 3, "%02x", key[i]);
	if (!g->cache)
		return -1;
	const int n = snprintf(path, size, "%s/%s", g->cache, name);
	return n > 0 && (size_t)n < size ? 0 : -1;
}

static void entry_sum(
	const unsigned char *head, const void *data, size_t bytes, unsigned char sum[GPU_KEY])
{
	struct gpu_hash s;
	stint_gpu_hash_start(&s);
	stint_gpu_hash_add(&s, head, HEAD);
	stint_gpu_hash_add(&s, data, bytes);
	stint_gpu_hash_end(&s, sum);
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

static unsigned char *entry_data(int fd, const unsigned char key[GPU_KEY], size_t *bytes)
{
	unsigned char head[ALL], sum[GPU_KEY];
	struct stat st;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < ALL || read_all(fd, head, ALL) ||
		memcmp(head, mark, MARK) != 0 || memcmp(head + MARK, key, GPU_KEY) != 0 ||
		get64(head + MARK + GPU_KEY) != (uint64_t)st.st_size - ALL)
		return NULL;
	const size_t n = (size_t)st.st_size - ALL;
	unsigned char *data = malloc(n ? n : 1);
	if (!data || read_all(fd, data, n)) {
		free(data);
		return NULL;
	}
	entry_sum(head, data, n, sum);
	if (memcmp(sum, head + HEAD, GPU_KEY) != 0) {
		free(data);
		return NULL;
	}
	*bytes = n;
	return data;
}

void *stint_gpu_cache_read(const stint_gpu *g, const unsigned char key[GPU_KEY], size_t *bytes)
{
	char path[2048];
	if (entry_path(g, key, path, sizeof path))
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

void stint_gpu_cache_write(
	const stint_gpu *g, const unsigned char key[GPU_KEY], const void *data, size_t bytes)
{
	char path[2048], temporary[2100];
	unsigned char head[ALL];
	if (entry_path(g, key, path, sizeof path))
		return;
	folder_make(g->cache);
	/* beside the entry: renaming does not cross file systems; a name of its own for each
	 * writer */
	snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
	const int fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return;
	memcpy(head, mark, MARK);
	memcpy(head + MARK, key, GPU_KEY);
	put64(head + MARK + GPU_KEY, bytes);
	entry_sum(head, data, bytes, head + HEAD);
	const int failed = write_all(fd, head, ALL) || write_all(fd, data, bytes);
	if (close(fd) || failed || rename(temporary, path))
		unlink(temporary);
}

int stint_gpu_cache(stint_gpu *g, const char *folder)
{
	char *copy = folder && *folder ? strdup(folder) : NULL;
	free(g->cache);
	g->cache = copy;
	if (folder && *folder && !copy)
		return stint_gpu_fail(g, STINT_NO_MEMORY, "out of memory");
	return STINT_OK;
}

const char *stint_gpu_cache_folder(const stint_gpu *g)
{
	return g->cache ? g->cache : "";
}

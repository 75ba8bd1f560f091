/* A file is written, put on the disk, taken out of the system's memory and read, in parts as large
 * as weights are. Once: the second time would find more of it in caches. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cli/disk_rate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/clock.h"
#include "runtime/safetensors.h"

enum { PARTS = 64, PART = 8 << 20 };

static enum status cannot(const char *what, const char *folder, struct diag *d)
{
	return diag_fail(d, ST_IO, &(struct where){.file = folder}, NULL,
		"cannot %s a file there: %s", what, strerror(errno ? errno : EIO));
}

static bool pass(int fd, bool writes, unsigned char *part)
{
	int error = 0;
	for (uint64_t at = 0; at < (uint64_t)PARTS * PART && !error; at += PART)
		error = writes ? safetensors_write_at(fd, part, PART, at)
			       : safetensors_read_at(fd, part, PART, at);
	errno = error;
	return !error;
}

static enum status measure(
	int fd, unsigned char *part, const char *folder, struct disk_rate *out, struct diag *d)
{
	const double bytes = (double)PARTS * PART;
	uint32_t x = 1;
	for (size_t i = 0; i < PART; i++) { /* nothing that a disk could make smaller */
		x = x * 1664525u + 1013904223u;
		part[i] = (unsigned char)(x >> 24);
	}
	const double start = clock_seconds();
	if (!pass(fd, true, part) || fdatasync(fd))
		return cannot("write", folder, d);
	const double written = clock_seconds();
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	const double dropped = clock_seconds();
	if (!pass(fd, false, part))
		return cannot("read", folder, d);
	*out = (struct disk_rate){bytes / (clock_seconds() - dropped), bytes / (written - start)};
	return ST_OK;
}

enum status disk_rate_measure(const char *folder, struct disk_rate *out, struct diag *d)
{
	const size_t size = strlen(folder) + sizeof "/stint-XXXXXX";
	char *name = malloc(size);
	unsigned char *part = malloc(PART);
	if (!name || !part) {
		free(part);
		free(name);
		return diag_nomem(d);
	}
	snprintf(name, size, "%s/stint-XXXXXX", folder);
	const int fd = mkstemp(name);
	enum status st;
	if (fd < 0) {
		st = cannot("make", folder, d);
	} else {
		unlink(name);
		st = measure(fd, part, folder, out, d);
		close(fd);
	}
	free(part);
	free(name);
	return st;
}

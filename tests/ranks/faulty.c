/* Between a rank and its checkpoints, by LD_PRELOAD. Of all calls that write to a file of the name
 * step-..., or take its draft into its place, rank STINT_FAULT_RANK does number STINT_FAULT_AT
 * (from 1) otherwise: it is killed before it (STINT_FAULT kill), or the disk is full from there on
 * (full). With STINT_CALLS each rank writes to FILE.RANK how many there were. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int calls;

static int number(const char *name)
{
	const char *text = getenv(name);
	return text ? atoi(text) : -1;
}

static int is_checkpoint(int fd)
{
	char link[64], path[4096];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t n = readlink(link, path, sizeof path - 1);
	if (n < 0)
		return 0;
	path[n] = '\0';
	return strstr(path, "/step-") != NULL;
}

/* Whether the disk is full. */
static int fault(void)
{
	const char *what = getenv("STINT_FAULT");
	calls++;
	if (!what || number("STINT_FAULT_RANK") != number("OMPI_COMM_WORLD_RANK"))
		return 0;
	if (!strcmp(what, "kill") && calls == number("STINT_FAULT_AT"))
		raise(SIGKILL);
	return !strcmp(what, "full") && calls >= number("STINT_FAULT_AT");
}

static void real(const char *name, void *function)
{
	void *p = dlsym(RTLD_NEXT, name);
	memcpy(function, &p, sizeof p);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
	ssize_t (*call)(int, const void *, size_t, off_t);
	real("pwrite", &call);
	if (is_checkpoint(fd) && fault()) {
		errno = ENOSPC;
		return -1;
	}
	return call(fd, data, n, at);
}

int fsync(int fd)
{
	int (*call)(int);
	real("fsync", &call);
	if (is_checkpoint(fd))
		fault();
	return call(fd);
}

int rename(const char *from, const char *to)
{
	int (*call)(const char *, const char *);
	real("rename", &call);
	if (strstr(from, "/step-"))
		fault();
	return call(from, to);
}

__attribute__((destructor)) static void tell(void)
{
	const char *file = getenv("STINT_CALLS"), *rank = getenv("OMPI_COMM_WORLD_RANK");
	char path[4096];
	if (!file || !rank || !calls)
		return;
	snprintf(path, sizeof path, "%s.%s", file, rank);
	FILE *f = fopen(path, "w");
	if (f) {
		fprintf(f, "%d\n", calls);
		fclose(f);
	}
}

#include "api/objects_room.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST ((int64_t)512 << 20)
enum { EVERY_SECONDS = 600, NAME = 80 };

struct entry {
	char name[NAME];
	int64_t bytes;
	struct timespec used;
};

static int older(const void *x, const void *y)
{
	const struct timespec *a = &((const struct entry *)x)->used,
			      *b = &((const struct entry *)y)->used;
	return a->tv_sec != b->tv_sec     ? (a->tv_sec > b->tv_sec) - (a->tv_sec < b->tv_sec)
	       : a->tv_nsec != b->tv_nsec ? (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec)
					  : 0;
}

/* The next of the folder's files into *e. */
static int next_entry(DIR *dir, struct entry *e)
{
	for (struct dirent *x; (x = readdir(dir)) != NULL;) {
		struct stat st;
		if (strlen(x->d_name) >= NAME ||
			fstatat(dirfd(dir), x->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
			!S_ISREG(st.st_mode))
			continue;
		strcpy(e->name, x->d_name);
		e->bytes = (int64_t)st.st_blocks * 512;
		e->used = st.st_mtim;
		return 1;
	}
	return 0;
}

static void make_room(DIR *dir)
{
	struct entry *entry = NULL, e;
	size_t n = 0, cap = 0;
	int64_t all = 0;
	while (next_entry(dir, &e)) {
		if (n == cap) {
			cap = cap ? 2 * cap : 256;
			struct entry *more = reallocarray(entry, cap, sizeof *more);
			if (!more)
				break;
			entry = more;
		}
		entry[n++] = e;
		all += e.bytes;
	}
	if (all > MOST)
		qsort(entry, n, sizeof *entry, older);
	const int64_t until = all > MOST ? MOST / 4 * 3 : MOST;
	for (size_t i = 0; i < n && all > until; i++)
		if (!unlinkat(dirfd(dir), entry[i].name, 0))
			all -= entry[i].bytes;
	free(entry);
}

void objects_room(const char *folder)
{
	char path[2048];
	struct stat st;
	if (snprintf(path, sizeof path, "%s/looked", folder) >= (int)sizeof path)
		return;
	if (!stat(path, &st) && time(NULL) - st.st_mtime < EVERY_SECONDS &&
		time(NULL) >= st.st_mtime)
		return;
	const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	futimens(fd, NULL);
	close(fd);
	DIR *dir = opendir(folder);
	if (!dir)
		return;
	make_room(dir);
	closedir(dir);
}

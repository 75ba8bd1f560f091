#include "scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void scratch_write(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(n ? fwrite(data, 1, n, f) : 0, n);
	assert_int_equal(fclose(f), 0);
}

unsigned char *scratch_read(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	*n = (size_t)ftell(f);
	rewind(f);
	unsigned char *p = malloc(*n + 1);
	assert_non_null(p);
	assert_int_equal(fread(p, 1, *n, f), *n);
	fclose(f);
	return p;
}

void scratch_truncate(const char *path, size_t n)
{
	assert_int_equal(truncate(path, (off_t)n), 0);
}

int scratch_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

void scratch_clear(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[600];
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		(void)unlink(path);
	}
	if (dir)
		closedir(dir);
	(void)rmdir(folder);
}

void scratch_safetensors(const char *path, const char *header, const void *data, size_t n)
{
	size_t len = strlen(header);
	unsigned char *all = calloc(1, 8 + len + n);
	assert_non_null(all);
	for (int i = 0; i < 8; i++)
		all[i] = (unsigned char)((uint64_t)len >> (8 * i));
	memcpy(all + 8, header, len);
	if (n)
		memcpy(all + 8 + len, data, n);
	scratch_write(path, all, 8 + len + n);
	free(all);
}

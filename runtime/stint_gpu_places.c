/* SPDX-License-Identifier: MIT-0 */
/* Where NVIDIA's libraries may lie: the caller's folders, toolkits, pip's packages. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strverscmp */
#endif
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "stint_gpu_api.h"

static const char *const file_of[STINT_GPU_LIBRARIES] = {"libcuda.so.1", "libnvrtc.so.[0-9]*",
	"libcublasLt.so.[0-9]*", "libcudnn.so.[0-9]*", "libnccl.so.[0-9]*"};

/* Paths after each other, an empty one at the end. */
struct places {
	char *text;
	size_t bytes;
	int failed;
};

static void places_add(struct places *p, const char *path)
{
	const size_t n = strlen(path) + 1;
	char *grown = p->failed ? NULL : realloc(p->text, p->bytes + n + 1);
	if (!grown) {
		p->failed = 1;
		return;
	}
	memcpy(grown + p->bytes, path, n);
	p->text = grown;
	p->bytes += n;
	grown[p->bytes] = 0;
}

static const char *base_of(const char *path)
{
	const char *base = strrchr(path, '/');
	return base ? base + 1 : path;
}

/* By the version in the name; then by folder, so that the order is always the same. */
static int newest_first(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	const int by_name = strverscmp(base_of(y), base_of(x));
	return by_name ? by_name : strverscmp(y, x);
}

/* Files that match, the newest version first. */
static void places_glob(struct places *p, const char *pattern)
{
	glob_t found;
	if (glob(pattern, GLOB_NOSORT, NULL, &found))
		return;
	qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, newest_first);
	for (size_t i = 0; i < found.gl_pathc; i++)
		places_add(p, found.gl_pathv[i]);
	globfree(&found);
}

/* In folder/rest, where folder is a name as it is, not a pattern. */
static void places_in(struct places *p, const char *folder, size_t length, const char *rest)
{
	char pattern[2048];
	size_t at = 0;
	for (size_t i = 0; i < length; i++) {
		if (at + strlen(rest) + 4 > sizeof pattern)
			return;
		if (strchr("*?[\\", folder[i]))
			pattern[at++] = '\\';
		pattern[at++] = folder[i];
	}
	snprintf(pattern + at, sizeof pattern - at, "%s", rest);
	places_glob(p, pattern);
}

static void places_given(struct places *p, const char *folders, const char *file)
{
	char rest[64];
	snprintf(rest, sizeof rest, "/%s", file);
	while (folders && *folders) {
		const size_t length = strcspn(folders, ":");
		if (length > 0)
			places_in(p, folders, length, rest);
		folders += length + (folders[length] == ':');
	}
}

static void places_toolkit(struct places *p, const char *file)
{
	static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH"};
	char rest[64];
	for (int i = 0; i <= 2; i++) {
		const char *home = i < 2 ? getenv(homes[i]) : "/usr/local/cuda";
		for (int narrow = 0; home && *home && narrow < 2; narrow++) {
			snprintf(rest, sizeof rest, "/%s/%s", narrow ? "lib" : "lib64", file);
			places_in(p, home, strlen(home), rest);
		}
	}
}

/* Below a prefix such as a virtual environment or /usr. */
static void places_python(struct places *p, const char *prefix, size_t length, const char *file)
{
	static const char *const packages[] = {"lib/python3*/site-packages",
		"lib/python3*/dist-packages", "lib64/python3*/site-packages"};
	for (size_t i = 0; i < sizeof packages / sizeof *packages; i++) {
		char rest[128];
		snprintf(rest, sizeof rest, "/%s/nvidia/*/lib/%s", packages[i], file);
		places_in(p, prefix, length, rest);
	}
}

/* The prefix of the python3 that a shell would start: sys.prefix, links not followed, so that a
 * virtual environment stays one. */
static void places_path(struct places *p, const char *file)
{
	const char *path = getenv("PATH");
	while (path && *path) {
		const size_t length = strcspn(path, ":");
		char program[1024];
		struct stat st;
		const int n = snprintf(program, sizeof program, "%.*s/python3", (int)length, path);
		if (length > 4 && n > 0 && (size_t)n < sizeof program && !stat(program, &st) &&
			!memcmp(path + length - 4, "/bin", 4)) {
			places_python(p, path, length - 4, file);
			return;
		}
		path += length + (path[length] == ':');
	}
}

static void places_pip(struct places *p, const char *file)
{
	static const char *const prefixes[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
	for (int i = 0; i < 2; i++) {
		const char *prefix = getenv(prefixes[i]);
		if (prefix && *prefix)
			places_python(p, prefix, strlen(prefix), file);
	}
	places_path(p, file);
	const char *home = getenv("HOME");
	char local[1024];
	if (home && snprintf(local, sizeof local, "%s/.local", home) < (int)sizeof local)
		places_python(p, local, strlen(local), file);
	places_python(p, "/usr/local", 10, file);
	places_python(p, "/usr", 4, file);
}

char *stint_gpu_places(const stint_gpu *g, enum stint_gpu_library library, int where)
{
	struct places p = {0};
	const char *file = file_of[library];
	places_add(&p, "");
	if (!p.failed)
		p.bytes = 0;
	if (where == 0)
		places_given(&p, g->folders ? g->folders : getenv("STINT_CUDA_LIBS"), file);
	else if (where == 1 && library != STINT_GPU_DRIVER)
		places_toolkit(&p, file);
	else if (where == 1)
		places_glob(&p, "/usr/lib/wsl/lib/libcuda.so.1");
	else if (library != STINT_GPU_DRIVER)
		places_pip(&p, file);
	if (!p.failed)
		return p.text;
	free(p.text);
	return NULL;
}

/* cuda_sweep LIBRARY TEXT.cu: runs each kernel of a model's text once forwards and once backwards
 * through the shim, on numbers that mean nothing: races, accesses beyond 4 MiB, stores to const,
 * threads that do not meet, results that depend on the order. Launches are as the comment above a
 * kernel says, "4 blocks of 256 threads". Exit 1 where anything is found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/gpu/shim/shim.h"

enum { ARGS = 32, BYTES = 4 << 20, NAME = 128 };

struct sweep {
	struct shim *shim;
	char *memory[ARGS], *start[ARGS], *forward[ARGS];
	int64_t whole[ARGS]; /* arguments that are no pointers */
	void *args[ARGS];
	struct shim_range range[ARGS];
	int n, nranges;
	int ran, bad;
};

static bool starts_int64(const char *p, size_t len)
{
	const char *found = strstr(p, "int64_t");
	return found && found < p + len;
}

/* Reals from 0 to 2, or small whole numbers. */
static void fill(char *at, bool whole)
{
	for (size_t i = 0; i < BYTES / sizeof(int64_t) && whole; i++)
		((int64_t *)(void *)at)[i] = i % 4 == 2 ? 8 : 0;
	for (size_t i = 0; i < BYTES / sizeof(float) && !whole; i++)
		((float *)(void *)at)[i] = (float)(i * 7919 % 1000) / 500;
}

/* One parameter, "const real *restrict x0". */
static void add_arg(struct sweep *w, const char *p, size_t len)
{
	const int i = w->n++;
	const char *constant = strstr(p, "const ");
	w->whole[i] = 16;
	w->args[i] = &w->whole[i];
	if (!memchr(p, '*', len) && strncmp(p, "scratch", 7) != 0)
		return;
	fill(w->memory[i], starts_int64(p, len));
	memcpy(w->start[i], w->memory[i], BYTES);
	w->args[i] = &w->memory[i];
	w->range[w->nranges++] = (struct shim_range){
		w->memory[i], BYTES, !(constant && constant < p + len), "an argument"};
}

/* False: there are too many. */
static bool read_args(struct sweep *w, const char *p)
{
	w->n = w->nranges = 0;
	while (*p && *p != ')' && w->n < ARGS) {
		const size_t len = strcspn(p, ",)\n");
		if (len)
			add_arg(w, p, len);
		p += len;
		p += strspn(p, ", ");
	}
	return *p == ')';
}

static void run(struct sweep *w, const char *name, unsigned blocks, unsigned threads)
{
	const char *error = NULL;
	for (int order = 0; order < 2 && !error; order++) {
		for (int i = 0; i < w->n; i++)
			memcpy(w->memory[i], w->start[i], BYTES);
		error = shim_launch(w->shim, &(struct shim_launch){.kernel = name,
						     .grid = {blocks},
						     .block = {threads},
						     .nargs = w->n,
						     .args = w->args,
						     .nranges = w->nranges,
						     .ranges = w->range,
						     .order = order ? SHIM_REVERSE : SHIM_FORWARD});
		for (int i = 0; i < w->n && !error; i++) {
			if (!order)
				memcpy(w->forward[i], w->memory[i], BYTES);
			else if (memcmp(w->forward[i], w->memory[i], BYTES) != 0)
				error = "forwards and backwards differ";
		}
	}
	w->ran++;
	if (error) {
		w->bad++;
		printf("%s: %s\n", name, error);
	}
}

static void run_text(struct sweep *w, const char *text)
{
	static const char kernel[] = "extern \"C\" __global__ void __launch_bounds__(";
	unsigned blocks = 1, threads = 1, b, t;
	char name[NAME];
	for (const char *line = text; *line; line += line[0] == '\n') {
		const size_t len = strcspn(line, "\n");
		int at = 0;
		if (sscanf(line, " * %u block%*[s ]of %u", &b, &t) == 2) {
			blocks = b;
			threads = t;
		} else if (strncmp(line, kernel, sizeof kernel - 1) == 0 &&
			   sscanf(line + sizeof kernel - 1, "%*d) %127[A-Za-z0-9_](%n", name,
				   &at) == 1 &&
			   at) {
			if (read_args(w, line + sizeof kernel - 1 + at))
				run(w, name, blocks, threads);
			else /* updates in one launch: each has a kernel of its own too */
				printf("%s: not run, more than %d arguments\n", name, ARGS);
		}
		line += len;
	}
}

int main(int argc, char **argv)
{
	static struct sweep w;
	char error[SHIM_TEXT], *text;
	size_t size;
	struct arena *a = arena_new();
	struct diag d = {.put = NULL};
	if (argc != 3 || !a || file_read(a, argv[2], &text, &size, &d) != ST_OK) {
		fprintf(stderr, "cuda_sweep LIBRARY TEXT.cu\n");
		return 2;
	}
	w.shim = shim_open(argv[1], error);
	if (!w.shim) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	for (int i = 0; i < ARGS; i++) {
		w.memory[i] = aligned_alloc(256, BYTES);
		w.start[i] = calloc(1, BYTES);
		w.forward[i] = calloc(1, BYTES);
		if (!w.memory[i] || !w.start[i] || !w.forward[i])
			return 1;
		memset(w.memory[i], 0, BYTES);
	}
	run_text(&w, text);
	printf("%d kernels, %d bad\n", w.ran, w.bad);
	for (int i = 0; i < ARGS; i++) {
		free(w.memory[i]);
		free(w.start[i]);
		free(w.forward[i]);
	}
	shim_close(w.shim);
	arena_free(a);
	return w.bad || !w.ran;
}

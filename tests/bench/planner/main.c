/* graphs FAMILY N [SEED] > G.json: a planner problem on stdout. */
#include "graphs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int usage(void)
{
	fprintf(stderr, "usage: graphs FAMILY N [SEED] > G.json\n");
	for (int i = 0; i < graph_nfamily; i++)
		fprintf(stderr, "  %-14s %s (%d to %d)\n", graph_families[i].name,
			graph_families[i].about, graph_families[i].least, graph_families[i].most);
	return ST_USAGE;
}

static bool number(const char *s, long long least, long long most, long long *out)
{
	char *end;
	errno = 0;
	*out = strtoll(s, &end, 10);
	return *s && !*end && !errno && *out >= least && *out <= most;
}

int main(int argc, char **argv)
{
	const struct graph_family *f = argc > 1 ? graph_family_find(argv[1]) : NULL;
	long long n, seed = 1;
	if (!f || argc < 3 || argc > 4 || !number(argv[2], f->least, f->most, &n) ||
		(argc == 4 && !number(argv[3], 0, INT64_MAX, &seed)))
		return usage();
	struct arena *a = arena_new();
	struct problem *p = a ? f->make(a, (int)n, (uint64_t)seed) : NULL;
	struct text t = {0};
	if (p)
		problem_print(p, &t);
	bool ok = p && !t.failed && fwrite(t.s, 1, t.len, stdout) == t.len && fflush(stdout) == 0;
	if (!ok)
		fprintf(stderr, "graphs: %s\n", p && !t.failed ? "cannot write" : "out of memory");
	text_free(&t);
	arena_free(a);
	return ok ? 0 : p ? ST_IO : ST_INTERNAL;
}

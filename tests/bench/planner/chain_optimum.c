/* chain_optimum GRAPH.json BUDGET ...: the cheapest cost of a chain for each budget, one number a
 * line
 * ("none" where nothing fits). */
#include "chain_dp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void say(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)level, (void)hint;
	fprintf(stderr, "%s: %s\n", w && w->file ? w->file : "", message);
}

int main(int argc, char **argv)
{
	struct chain c = {0};
	struct diag d = {.put = say};
	struct arena *a = arena_new();
	struct problem *p;
	if (argc < 3 || !a) {
		fprintf(stderr, "usage: chain_optimum GRAPH.json BUDGET ...\n");
		arena_free(a);
		return ST_USAGE;
	}
	enum status st = problem_read(a, argv[1], &p, &d);
	if (st == ST_OK && !chain_read(p, &c)) {
		fprintf(stderr, "%s: not a chain of at most %d ops\n", argv[1], CHAIN_MOST);
		st = ST_INVALID;
	}
	for (int i = 2; st == ST_OK && i < argc; i++) {
		double v = chain_optimum(&c, strtoll(argv[i], NULL, 10));
		if (v < 0)
			st = diag_nomem(&d);
		else if (isinf(v))
			printf("none\n");
		else
			printf("%.17g\n", v);
	}
	arena_free(a);
	return (int)st;
}

/* layout_bench RATIO FAMILY|FILE.csv|all [N ...]: height over load and CPU seconds. The capacity
 * aimed at, at which the search may stop, is the load times RATIO (0: as low as can be), or RATIO
 * bytes where that is 1000 and more. */
#include "layout_gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void say(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)level, (void)w, (void)hint;
	fprintf(stderr, "%s\n", message);
}

static bool measure(const char *name, struct layout_buffer *b, int n, double ratio)
{
	struct diag d = {.put = say};
	int64_t height = 0, load = layout_gen_load(b, n, 1);
	int64_t aim = (int64_t)(ratio < 1000 ? (double)load * ratio : ratio);
	clock_t start = clock();
	enum status st = layout_place(b, n, 1, aim, &height, &d);
	double s = (double)(clock() - start) / CLOCKS_PER_SEC;
	bool apart = st == ST_OK && layout_gen_apart(b, n);
	printf("| %-10s | %6d | %.5f | %6.2f |%s\n", name, n, (double)height / (double)load, s,
		apart ? "" : " NOT APART");
	fflush(stdout);
	return apart;
}

static bool measure_file(const char *path, double ratio)
{
	struct diag d = {.put = say};
	struct layout_table t;
	struct arena *a = arena_new();
	bool ok = a && layout_csv_read(a, path, &t, &d) == ST_OK &&
		  measure(strrchr(path, '/') ? strrchr(path, '/') + 1 : path, t.b, t.n, ratio);
	arena_free(a);
	return ok;
}

static bool measure_family(int family, int n, double ratio)
{
	struct layout_buffer *b = calloc((size_t)n + 1, sizeof *b);
	if (!b)
		return false;
	layout_gen_make(family, n, 1, b);
	bool ok = measure(layout_gen_name(family), b, n, ratio);
	free(b);
	return ok;
}

int main(int argc, char **argv)
{
	bool ok = true;
	if (argc < 3) {
		fprintf(stderr, "usage: layout_bench RATIO FAMILY|FILE.csv|all [N ...]\n");
		return 2;
	}
	double ratio = strtod(argv[1], NULL);
	puts("| family | buffers | height / load | CPU s |\n|---|---|---|---|");
	if (strstr(argv[2], ".csv"))
		return measure_file(argv[2], ratio) ? 0 : 1;
	for (int f = 0; f < LAYOUT_FAMILIES; f++) {
		if (strcmp(argv[2], "all") != 0 && strcmp(argv[2], layout_gen_name(f)) != 0)
			continue;
		for (int k = 3; k < argc; k++)
			ok = measure_family(f, atoi(argv[k]), ratio) && ok;
		for (int k = 0; argc == 3 && k < 4; k++)
			ok = measure_family(f, (int[]){1000, 5000, 20000, 60000}[k], ratio) && ok;
	}
	return ok ? 0 : 1;
}

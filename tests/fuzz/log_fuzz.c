/* libFuzzer's entry for logs of training: any bytes, as JSON lines and as CSV. Whatever they are,
 *the reader returns, with a message where it refuses; what it accepts is drawn, in a terminal and
 *as a page, without a coordinate that is no number.
 *
 *	build-fuzz/log_fuzz -max_len=4096 CORPUS
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/chart.h"
#include "cli/run_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* Names stand in titles: only what is drawn counts. */
static void check_page(const char *page)
{
	for (const char *at = page; (at = strstr(at, " d=\""));) {
		const size_t n = strcspn(at + 4, "\"");
		for (const char *p = at + 4; p < at + 4 + n; p++)
			require(strchr("MLHVZ0123456789. -", *p) != NULL);
		at += 4 + n;
	}
}

static void try_log(const char *path, const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	struct diag d = {0};
	struct view_run run;
	struct text page = {0};
	char *text = malloc(size + 1);
	FILE *null = fopen("/dev/null", "w");
	require(a && text && null);
	memcpy(text, data, size);
	text[size] = 0;
	const enum status st = run_log_parse(a, path, text, size, &run, &d);
	require((st == ST_OK) == (d.errors == 0));
	for (int i = 0; st == ST_OK && i < run.ncurve; i++) {
		const struct view_curve *c = &run.curve[i];
		for (int k = 1; k < c->n; k++)
			require(c->x[k] > c->x[k - 1]);
		chart_draw(null, c->name, c->y, c->n, 80, i % 2);
	}
	if (st == ST_OK) {
		require(view_log_html(&page, &run, 1, &d) == ST_OK);
		check_page(page.s);
	}
	text_free(&page);
	fclose(null);
	free(text);
	arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_log("fuzz.jsonl", data, size);
	try_log("fuzz.csv", data, size);
	return 0;
}

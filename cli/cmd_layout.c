/* stint layout BUFFERS.csv --capacity N -o OUT.csv */
#include "cli/args.h"
#include "cli/cli.h"
#include "planner/plan.h"

static enum status layout(
	struct arena *a, const char *path, const char *capacity, const char *out, struct diag *d)
{
	struct layout_table t;
	struct plan_budget limit;
	int64_t height;
	TRY(plan_budget_parse(capacity, &limit, d));
	if (limit.kind != BUDGET_BYTES)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--capacity wants a number of bytes");
	TRY(layout_csv_read(a, path, &t, d));
	TRY(layout_place(t.b, t.n, 1, limit.bytes, &height, d));
	if (height > limit.bytes)
		return diag_fail(d, ST_BUDGET, &(struct where){.file = path}, NULL,
			"not placed within %lld bytes; the best found needs %lld bytes",
			(long long)limit.bytes, (long long)height);
	struct text placed = {0};
	layout_csv_print(&t, &placed);
	enum status st = out ? text_save(&placed, out, d) : ST_OK;
	if (!out && placed.s)
		fwrite(placed.s, 1, placed.len, stdout);
	text_free(&placed);
	if (st == ST_OK && out)
		printf("%d buffers placed in %lld of %lld bytes\n", t.n, (long long)height,
			(long long)limit.bytes);
	return st;
}

enum status cmd_layout(int argc, const char **argv, struct diag *d)
{
	char *capacity = NULL, *out = NULL;
	struct poptOption table[] = {{"capacity", 0, POPT_ARG_STRING, &capacity, 0,
					     "bytes that the placed buffers may span", "N"},
		{"output", 'o', POPT_ARG_STRING, &out, 0, "write the placed buffers here",
			"OUT.csv"},
		POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(
		a, argc, argv, table, "BUFFERS.csv --capacity N -o OUT.csv", 1, 1, NULL, &args, d);
	if (st == ST_OK && !args.help)
		st = layout(a, args.positional[0], capacity, out, d);
	free(capacity);
	free(out);
	arena_free(a);
	return st;
}

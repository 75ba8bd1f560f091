/* operators RESULTS: prints docs/reference/operators.md from the table of records and the results
 * of ONNX's own tests (tests/ops/onnx-results.txt). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op_loss.h"
#include "graph/op_optimizer.h"
#include "ops/ops.h"
#include "tools/onnx_tests.h"

enum { RECORDS_MAX = 1024 };

struct list {
	int n;
	const struct op_def *op[RECORDS_MAX];
};

static int by_name(const void *x, const void *y)
{
	const struct op_def *a = *(const struct op_def *const *)x,
			    *b = *(const struct op_def *const *)y;
	int order = strcmp(a->name, b->name);
	return order ? order : (a->since > b->since) - (a->since < b->since);
}

static struct list records(void)
{
	struct list l = {0};
	const struct op_table *t = ops_table();
	for (int f = 0; f < t->nfamily; f++)
		for (const struct op_def *op = t->family[f]; op->name; op++)
			if (l.n < RECORDS_MAX)
				l.op[l.n++] = op;
	qsort(l.op, (size_t)l.n, sizeof *l.op, by_name);
	return l;
}

static bool is_ours(const struct op_def *op)
{
	return strncmp(op->name, "stint.", 6) == 0;
}

static bool is_loss(const struct op_def *op)
{
	return op->loss != NULL;
}

static bool is_optimizer(const struct op_def *op)
{
	return op_optimizer(op) != NULL;
}

static bool is_onnx(const struct op_def *op)
{
	return !op->instead && !is_ours(op) && !is_loss(op) && !is_optimizer(op);
}

static bool is_inner(const struct op_def *op)
{
	return is_ours(op) && !is_loss(op) && !is_optimizer(op);
}

/* "mean` or `sum`", the default first. */
static void put_words(const struct op_option *o)
{
	const char *word[16];
	int n = 0, first = (int)o->value;
	for (const char *p = o->words; p && n < 16; p = strchr(p, ' ')) {
		p += *p == ' ';
		word[n++] = p;
	}
	if (o->high > 0 && o->high + 1 < n)
		n = (int)o->high + 1;
	for (int i = 0; i < n; i++) {
		const char *w = word[(first + i) % n];
		printf("%s%.*s`", i ? "/`" : "", (int)strcspn(w, " "), w);
	}
}

static void put_options(const struct op_def *op)
{
	if (!op->option || !op->option->name)
		fputs("–", stdout);
	for (const struct op_option *o = op->option; o && o->name; o++) {
		printf("%s`%s=", o == op->option ? "" : " ", o->name);
		if (o->words)
			put_words(o);
		else if (o->list)
			printf("LIST`");
		else
			printf("%.10g`", o->value);
	}
}

static const char *gradient(const struct op_def *op)
{
	if (op->grad)
		return "yes";
	if (op->lower || (op->expand && !op->infer))
		return "lowered";
	if (op->traits & OP_STOP)
		return "stops";
	return op_max_in(op) == 0 ? "–" : "no";
}

static void put_arity(int min, int max)
{
	if (max < 0)
		printf("%d or more", min);
	else if (min == max)
		printf("%d", min);
	else
		printf("%d to %d", min, max);
}

static const char *computed_by(const struct op_def *op)
{
	if (op->traits & OP_VIEW)
		return "nothing: a view";
	if (op->lower && !op->emit_c && !op->expr && !op->int_expr)
		return "its lowered form";
	if (op->expand && !op->infer)
		return "resolved at import";
	if (!op->emit_c && !op->expr && !op->int_expr)
		return "folding only";
	return op->library ? "oneDNN or C" : "C";
}

/* Tests of ONNX's own that pass. */
static void put_tests(const struct onnx_tests *tests, const char *op)
{
	int passed, all;
	onnx_tests_count(tests, op, &passed, &all);
	if (all)
		printf("%d of %d", passed, all);
	else
		fputs("–", stdout);
}

static void put_row(const struct op_def *op, const struct onnx_tests *tests)
{
	printf("| %s | ", op->name);
	if (op->until)
		printf("%d to %d | ", op->since, op->until - 1);
	else
		printf("%d on | ", op->since);
	put_arity(op->min_in, op_max_in(op));
	fputs(" | ", stdout);
	put_options(op);
	printf(" | %s | %s | %s | ", gradient(op), computed_by(op),
		op->fold || op->ref || op->traits & OP_VIEW ? "yes" : "no");
	put_tests(tests, op->name);
	puts(" |");
}

static void put_named(const struct list *l, bool (*want)(const struct op_def *))
{
	for (int i = 0; i < l->n; i++) {
		const struct op_def *op = l->op[i];
		if (!want(op))
			continue;
		printf("| `%s` | ", op->loss ? op->loss->name : op_optimizer(op));
		put_options(op);
		fputs(" |\n", stdout);
	}
}

/* What is done instead, and in place of which. */
static void put_refused(const struct list *l)
{
	for (int i = 0; i < l->n; i++) {
		const char *instead = l->op[i]->instead;
		bool told = !instead;
		for (int k = 0; k < i && !told; k++)
			told = l->op[k]->instead == instead;
		for (int k = i; k < l->n && !told; k++)
			if (l->op[k]->instead == instead)
				printf("%s%s", k == i ? "- " : ", ", l->op[k]->name);
		if (!told)
			printf(": %s.\n", instead);
	}
}

int main(int argc, char **argv)
{
	const struct list l = records();
	struct onnx_tests tests;
	if (argc != 2 || !onnx_tests_read(argv[1], &tests)) {
		fputs("usage: operators tests/ops/onnx-results.txt\n", stderr);
		return 2;
	}
	puts("# Operators\n\n"
	     "Made by `tools/operators.c` from the operators' records; the test `docs.operators` "
	     "compares. Do not edit.\n\n"
	     "## From ONNX\n\n"
	     "Opsets: of ONNX, within the 7 to 25 that the importer takes. Options: named numbers "
	     "with defaults;\nother attributes are ONNX's own. Gradient: `lowered` means that "
	     "other "
	     "nodes take the operator's place\nbefore differentiation; `stops` that no gradient "
	     "passes, by definition. Folds: evaluated when compiling\nwhere all inputs are "
	     "known. Tests: ONNX's own that pass, see below.\n\n"
	     "| operator | opsets | inputs | options | gradient | computed by | folds | tests |\n"
	     "|---|---|---|---|---|---|---|---|");
	for (int i = 0; i < l.n; i++)
		if (is_onnx(l.op[i]))
			put_row(l.op[i], &tests);
	puts("\n## Not supported, and what to do instead\n");
	put_refused(&l);
	puts("\n## Losses\n\n| `--loss` | options |\n|---|---|");
	put_named(&l, is_loss);
	puts("\nLosses take `:output=NAME` too, and of [several](commands.md#several-losses) "
	     "`:name=NAME` and "
	     "`:target=NAME`; some [`:against=NAME`](commands.md#losses)\nin a target's place. "
	     "`axis=-1000` stands for PyTorch's rule: axis 1, or "
	     "the "
	     "last one of an\noutput of rank 3. A `LIST` is one of numbers: [losses]"
	     "(commands.md#losses).");
	puts("\n## Optimizers\n\n| `--optimizer` | options |\n|---|---|");
	put_named(&l, is_optimizer);
	puts("\n`eps1=-1` stands for PyTorch's None. A `LIST` is one of numbers. "
	     "[Those with little state](../explanation/small-states.md).");
	puts("\n## Made by gradients and lowering\n\nNot for models: these names appear in "
	     "schedules and in generated code.\n");
	bool first = true;
	for (int i = 0; i < l.n; i++)
		if (is_inner(l.op[i])) {
			printf("%s`%s`%s", first ? "" : ",\n", l.op[i]->name,
				l.op[i]->library ? " (oneDNN or C)" : "");
			first = false;
		}
	puts("");
	onnx_tests_print(&tests);
	onnx_tests_free(&tests);
	return fflush(stdout) != 0;
}

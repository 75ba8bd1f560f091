/* Ops chosen by patterns, and what is said when a pattern chooses none. */
#include "planner/problem/insist.h"

#include <limits.h>
#include <string.h>

enum { OPERATOR_MAX = 64, NAMES_SEEN = 4096 };

/* The operator's name, cut off where it is very long. */
static const char *operator_of(const struct problem_op *op, char buf[static OPERATOR_MAX])
{
	const char *text = op->choice[0].kernel ? op->choice[0].kernel : op->name;
	size_t n = strcspn(text, op->choice[0].kernel ? "(" : ":[");
	n = n < OPERATOR_MAX - 1 ? n : OPERATOR_MAX - 1;
	memcpy(buf, text, n);
	buf[n] = '\0';
	return buf;
}

bool insist_matches(const struct problem_op *op, const char *pattern)
{
	char buf[OPERATOR_MAX];
	return name_fits(pattern, op->name) || name_fits(pattern, operator_of(op, buf));
}

enum status insist_no_match(struct arena *a, const struct problem *p, const char *option,
	const char *pattern, const char *file, struct diag *d)
{
	enum { SHOWN = 12 };
	char shown[SHOWN][OPERATOR_MAX], buf[OPERATOR_MAX];
	int n = 0, best = INT_MAX;
	const char *near = NULL;
	char *list = arena_strdup(a, "");
	for (int o = 0; o < p->nop && o < NAMES_SEEN && list; o++) {
		int far = text_distance(p->op[o].name, pattern);
		if (far < best) {
			best = far;
			near = p->op[o].name;
		}
		operator_of(&p->op[o], buf);
		int k = 0;
		while (k < n && strcmp(shown[k], buf) != 0)
			k++;
		if (k < n || n == SHOWN)
			continue;
		strcpy(shown[n++], buf);
		list = arena_printf(a, "%s%s%s", list, n > 1 ? ", " : "", buf);
	}
	const char *hint = list ? arena_printf(a, "operators here: %s%s; the nearest name: %s",
					  list, n == SHOWN ? ", ..." : "", near ? near : "none")
				: NULL;
	return hint ? diag_fail(d, ST_USAGE, &(struct where){.file = file}, hint,
			      "%s '%s' matches no node and no operator", option, pattern)
		    : diag_nomem(d);
}

enum status insist_once(struct arena *a, struct problem *p, const char *const *pattern,
	const char *file, struct diag *d)
{
	for (; pattern && *pattern; pattern++) {
		bool any = false;
		for (int o = 0; o < p->nop; o++)
			if (insist_matches(&p->op[o], *pattern)) {
				p->op[o].recomputable &= problem_op_moves(&p->op[o]);
				any = true;
			}
		if (!any && file)
			return insist_no_match(a, p, "--no-recompute", *pattern, file, d);
	}
	return ST_OK;
}

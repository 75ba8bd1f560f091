#include "planner/problem/loop_facts.h"

#include <inttypes.h>

const char *const problem_keeps_name[4] = {"nothing", "inside", "carries", "places"};
const char *const loop_number_name[LOOP_NUMBERS] = {
	"turns", "places", "again", "turn_bytes", "kept_bytes"};

int64_t *loop_number(struct problem_loop *l, int k)
{
	int64_t *const number[LOOP_NUMBERS] = {
		&l->turns, &l->places, &l->again, &l->turn_bytes, &l->kept_bytes};
	return number[k];
}

void loop_print(const struct problem_loop *l, bool at, struct text *out)
{
	struct problem_loop x = *l;
	text_add(out, "\"keeps\":\"%s\"", problem_keeps_name[l->keeps]);
	for (int k = 0; k < LOOP_NUMBERS; k++)
		text_add(out, ",\"%s\":%" PRId64, loop_number_name[k], *loop_number(&x, k));
	text_puts(out, l->ends_early ? ",\"ends_early\":true" : "");
	for (int64_t i = 0; at && i < l->nat; i++)
		text_add(out, "%s%" PRId64, i ? "," : ",\"at\":[", l->at[i]);
	text_puts(out, at && l->nat ? "]" : "");
}

/* Bytes of all that the op reads, up to `most`. */
static int64_t bytes_read(const struct problem *p, const struct problem_op *op, int64_t most)
{
	int64_t sum = 0;
	for (int k = 0; k < op->choice[0].nin && sum < most; k++)
		if (!size_add(sum, p->tensor[op->choice[0].in[k]].bytes, &sum))
			return most;
	return sum;
}

const char *loop_fault(const struct problem *p, int o)
{
	const struct problem_op *op = &p->op[o];
	struct problem_loop l = *op->loop;
	for (int k = 0; k < LOOP_NUMBERS; k++)
		if (*loop_number(&l, k) < 0)
			return "a number of its loop is negative";
	if (l.turns < 1)
		return "its loop has no turns";
	if ((l.keeps == KEEPS_PLACES) != (l.places > 0) || l.places > l.turns)
		return "its loop keeps carries in other places than its turns have";
	if (l.turn_bytes > op->choice[0].workspace)
		return "a turn of its loop needs more than its workspace";
	if (l.kept_bytes > bytes_read(p, op, l.kept_bytes))
		return "more is kept of its loop than it reads";
	for (int64_t i = 0; i < l.nat; i++)
		if (l.at[i] <= (i ? l.at[i - 1] : 0) || l.at[i] >= l.turns || i >= l.places)
			return "its loop keeps carries at turns that are not there, or not in "
			       "order";
	return NULL;
}

/* Sequences of ops. */
#include "planner/search/solver.h"

#include <stdlib.h>
#include <string.h>

bool seq_reserve(struct seq *q, int n)
{
	if (n <= q->cap)
		return true;
	int cap = n + n / 2 + 16;
	int *op = realloc(q->op, (size_t)cap * sizeof *op);
	if (!op)
		return false;
	q->op = op;
	q->cap = cap;
	return true;
}

bool seq_copy(struct seq *to, const struct seq *from)
{
	if (!seq_reserve(to, from->n + 1))
		return false;
	if (from->n)
		memcpy(to->op, from->op, (size_t)from->n * sizeof *to->op);
	to->n = from->n;
	return true;
}

void seq_free(struct seq *q)
{
	free(q->op);
	*q = (struct seq){0};
}

/* Sequences of ops. */
#include "planner/solver.h"

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

bool seq_insert(struct seq *q, int at, const int *list, int n)
{
	if (!seq_reserve(q, q->n + n + 1))
		return false;
	memmove(q->op + at + n, q->op + at, (size_t)(q->n - at) * sizeof *q->op);
	memcpy(q->op + at, list, (size_t)n * sizeof *q->op);
	q->n += n;
	return true;
}

void seq_erase(struct seq *q, int at)
{
	memmove(q->op + at, q->op + at + 1, (size_t)(q->n - at - 1) * sizeof *q->op);
	q->n--;
}

void seq_free(struct seq *q)
{
	free(q->op);
	*q = (struct seq){0};
}

/* What the `match` hooks share: match.h. */
#include "ops/match.h"

struct tensor *match_source(struct tensor *t)
{
	while (t->maker && dtype_is_real(t->dtype) &&
		(node_is(t->maker, "Cast") || node_is(t->maker, "CastLike") ||
			node_is(t->maker, "Identity")) &&
		dtype_is_real(t->maker->in[0]->dtype))
		t = t->maker->in[0];
	return t;
}

const struct node *match_node(const struct tensor *t, const char *op)
{
	const struct node *n = match_source((struct tensor *)(uintptr_t)t)->maker;
	return node_is(n, op) ? n : NULL;
}

bool match_number(const struct tensor *t, double *v)
{
	if (t->role != TR_CONSTANT || t->numel != 1 || !dtype_is_real(t->dtype))
		return false;
	*v = tensor_real(t, 0);
	return true;
}

bool match_near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * fabs(b);
}

bool match_with_number(const struct node *n, const char *op, double *v, struct tensor **other)
{
	if (!node_is(n, op))
		return false;
	for (int i = 0; i < 2; i++)
		if (match_number(n->in[1 - i], v)) {
			*other = n->in[i];
			return true;
		}
	return false;
}

int match_axis(struct graph *g, const struct node *n)
{
	int len;
	const int64_t *axes;
	if (node_ints(g, n, "axes", -1, &len, &axes) != ST_OK || len != 1)
		return -1;
	return (int)(axes[0] < 0 ? axes[0] + n->in[0]->rank : axes[0]);
}

struct tensor *match_log_softmax(const struct tensor *t, int axis)
{
	const struct node *n = match_node(t, "LogSoftmax");
	const bool flattens = n && n->op->until == 13; /* from `axis` to the last one */
	if (!n)
		return NULL;
	const int rank = n->in[0]->rank;
	const int64_t along = node_int(n, "axis", flattens ? 1 : -1);
	const bool same = (along < 0 ? along + rank : along) == axis;
	return same && (!flattens || axis == rank - 1) ? match_source(n->in[0]) : NULL;
}

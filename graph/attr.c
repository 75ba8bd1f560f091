/* Reading a node's attributes and checking its shapes. */
#include <inttypes.h>
#include <string.h>

#include "graph/op.h"
#include "graph/op_optimizer.h"

bool node_is(const struct node *n, const char *op)
{
	return n && !strcmp(n->op->name, op);
}

const struct attr *node_attr(const struct node *n, const char *name)
{
	for (int i = 0; i < n->nattr; i++)
		if (!strcmp(n->attr[i].name, name))
			return &n->attr[i];
	return NULL;
}

int64_t node_int(const struct node *n, const char *name, int64_t def)
{
	const struct attr *a = node_attr(n, name);
	return a && a->kind == ATTR_INT ? a->i : def;
}

double node_float(const struct node *n, const char *name, double def)
{
	const struct attr *a = node_attr(n, name);
	if (a && a->kind == ATTR_INT)
		return (double)a->i;
	return a && a->kind == ATTR_FLOAT ? a->f : def;
}

const char *node_string(const struct node *n, const char *name, const char *def)
{
	const struct attr *a = node_attr(n, name);
	return a && a->kind == ATTR_STRING ? a->s : def;
}

int option_word(const struct op_option *o, const char *word)
{
	size_t len = strlen(word);
	int k = 0;
	for (const char *p = o->words; p; k++) {
		if (len && !strncmp(p, word, len) && (p[len] == ' ' || !p[len]))
			return k;
		p = strchr(p, ' ');
		if (p)
			p++;
	}
	return -1;
}

static int count_words(const struct op_option *o)
{
	int n = 1;
	for (const char *p = o->words; *p; p++)
		n += *p == ' ';
	return n;
}

double node_option(const struct node *n, const char *name)
{
	for (const struct op_option *o = n->op->option; o && o->name; o++) {
		if (strcmp(o->name, name) != 0)
			continue;
		const struct attr *a = o->words ? node_attr(n, name) : NULL;
		if (a && a->kind == ATTR_STRING)
			return option_word(o, a->s);
		double v = node_float(n, name, o->value);
		return o->words && !(v >= 0 && v < count_words(o)) ? -1 : v;
	}
	return node_float(n, name, 0);
}

bool node_has_state(const struct node *n, const struct op_state *s)
{
	return !s->with || node_option(n, s->with) != 0;
}

enum status node_ints(struct graph *g, const struct node *n, const char *name, int input, int *len,
	const int64_t **v)
{
	*len = 0;
	*v = NULL;
	const struct attr *a = node_attr(n, name);
	if (a && a->kind == ATTR_INTS) {
		*len = a->n;
		*v = a->ints;
		return ST_OK;
	}
	if (a && a->kind == ATTR_INT) {
		*len = 1;
		*v = &a->i;
		return ST_OK;
	}
	if (input < 0 || input >= n->nin || !n->in[input])
		return ST_OK;
	const struct tensor *t = n->in[input];
	if (t->role != TR_CONSTANT || t->dtype != DT_I64 || t->rank > 1 || t->numel > 1 << 20)
		return node_fail(g, n, graph_unknown_hint(g, t),
			"input %d (%s) is not a constant list of integers", input, name);
	*len = (int)t->numel;
	*v = t->data;
	return ST_OK;
}

enum status node_axis(struct graph *g, const struct node *n, int64_t axis, int rank, int *out)
{
	if (axis < -rank || axis >= rank)
		return node_fail(
			g, n, NULL, "axis %" PRId64 " is out of range for %d axes", axis, rank);
	*out = (int)(axis < 0 ? axis + rank : axis);
	return ST_OK;
}

enum status node_broadcast(struct graph *g, const struct node *n, int ra, const int64_t *a, int rb,
	const int64_t *b, int *r, int64_t *out)
{
	int64_t dim[RANK_MAX];
	int rank = ra > rb ? ra : rb;
	for (int i = 1; i <= rank; i++) {
		int64_t x = i <= ra ? a[ra - i] : 1, y = i <= rb ? b[rb - i] : 1;
		if (x != y && x != 1 && y != 1) {
			struct tensor ta = {.rank = ra}, tb = {.rank = rb};
			memcpy(ta.dim, a, (size_t)ra * sizeof *a);
			memcpy(tb.dim, b, (size_t)rb * sizeof *b);
			char sa[200], sb[200];
			return node_fail(g, n, "check the shapes that reach this node",
				"shapes %s and %s do not broadcast", tensor_shape_text(&ta, sa),
				tensor_shape_text(&tb, sb));
		}
		dim[rank - i] = x == 1 ? y : x;
	}
	*r = rank;
	memcpy(out, dim, (size_t)rank * sizeof *dim);
	return ST_OK;
}

/* What the data-moving families share. */
#include "ops/data.h"

struct op_cost data_move_cost(const struct node *n)
{
	return (struct op_cost){0, 2 * (double)tensor_bytes(n->out[0])};
}

enum status data_settle(
	struct graph *g, struct node *n, int nin, int nattr, const struct attr *attr)
{
	for (int i = 0; i < nattr; i++)
		if (attr[i].kind == ATTR_INTS && !attr[i].ints)
			return diag_nomem(g->diag);
	n->attr = nattr ? arena_memdup(g->arena, attr, (size_t)nattr, sizeof *attr) : NULL;
	if (nattr && !n->attr)
		return diag_nomem(g->diag);
	n->nattr = nattr;
	n->nin = nin;
	return ST_OK;
}

struct attr data_ints(struct graph *g, const char *name, int n, const int64_t *v)
{
	return ATTR_IS(name, n, arena_memdup(g->arena, v, (size_t)n, sizeof *v));
}

enum status data_output(
	struct graph *g, struct node *n, int k, enum dtype t, int rank, const int64_t *dim)
{
	n->out[k] = graph_tensor(g, "", t, rank, dim);
	return n->out[k] ? ST_OK : g->failed;
}

enum status data_infer_like(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[0]->dtype, n->in[0]->rank, n->in[0]->dim);
}

enum status data_infer_like_second(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[1]->dtype, n->in[1]->rank, n->in[1]->dim);
}

enum status data_word(struct graph *g, const struct node *n, const char *name, const char *def,
	const char *const *word, int *out)
{
	const char *v = node_string(n, name, def);
	for (*out = 0; word[*out]; ++*out)
		if (!strcmp(v, word[*out]))
			return ST_OK;
	return node_fail(g, n, NULL, "unknown %s '%s'", name, v);
}

enum status data_lower_to_view(
	struct graph *g, const struct node *n, struct tensor *const *in, struct tensor **out)
{
	out[0] = graph_reshape(g, in[0], n->out[0]->rank, n->out[0]->dim);
	return g->failed;
}

enum status data_lower_same(
	struct graph *g, const struct node *n, struct tensor *const *in, struct tensor **out)
{
	const struct node *m = graph_op_node(
		g, n->op->name, n->nin, in, n->nattr, n->attr, n->param);
	if (m)
		out[0] = m->out[0];
	return g->failed;
}

enum status data_fold_lowered(struct graph *g, const struct node *n, void *const *out)
{
	const struct lower_options o = {.mode = LOWER_EVAL};
	struct tensor *y = NULL;
	TRY(n->op->lower(g, n, n->in, &o, &y));
	if (!y || y->role != TR_CONSTANT || y->dtype != n->out[0]->dtype ||
		y->numel != n->out[0]->numel)
		return node_fail(g, n, "this is a bug in stint", "its lowering does not fold");
	if (y->numel > 0)
		memcpy(out[0], y->data, (size_t)tensor_bytes(y));
	return ST_OK;
}

bool data_element_type(int64_t onnx, enum dtype real, enum dtype *out)
{
	switch (onnx) {
	case 1:  /* FLOAT */
	case 10: /* FLOAT16 */
	case 11: /* DOUBLE */
	case 16: /* BFLOAT16 */
		*out = real;
		return true;
	case 2:  /* UINT8 */
	case 3:  /* INT8 */
	case 4:  /* UINT16 */
	case 5:  /* INT16 */
	case 6:  /* INT32 */
	case 7:  /* INT64 */
	case 12: /* UINT32 */
	case 13: /* UINT64 */
		*out = DT_I64;
		return true;
	case 9: /* BOOL */
		*out = DT_BOOL;
		return true;
	default:
		return false;
	}
}

/* DepthToSpace and SpaceToDepth: blocks of channels as blocks of pixels and back. Each is a
 * transposition of a tensor with its axes split. */
#include <inttypes.h>

#include "ops/data.h"

static enum status block_of(struct graph *g, const struct node *n, int64_t *block)
{
	const struct tensor *x = n->in[0];
	const char *mode = node_string(n, "mode", "DCR");
	if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0)
		return node_fail(g, n, NULL, "mode '%s' is neither DCR nor CRD", mode);
	*block = node_int(n, "blocksize", 0);
	if (x->rank != 4 || *block < 1 || *block > INT32_MAX)
		return node_fail(g, n, NULL, "needs four axes and a block size of 1 or more");
	return ST_OK;
}

static enum status d2s_infer(struct graph *g, struct node *n)
{
	const int64_t *d = n->in[0]->dim;
	int64_t b, dim[4];
	TRY(block_of(g, n, &b));
	if (d[1] % (b * b) != 0 || !size_mul(d[2], b, &dim[2]) || !size_mul(d[3], b, &dim[3]))
		return node_fail(g, n, NULL,
			"%" PRId64 " channels do not split into blocks of %" PRId64 " by %" PRId64,
			d[1], b, b);
	dim[0] = d[0];
	dim[1] = d[1] / (b * b);
	return data_output(g, n, 0, n->in[0]->dtype, 4, dim);
}

static enum status s2d_infer(struct graph *g, struct node *n)
{
	const int64_t *d = n->in[0]->dim;
	int64_t b, dim[4];
	TRY(block_of(g, n, &b));
	if (d[2] % b || d[3] % b || !size_mul(d[1], b * b, &dim[1]))
		return node_fail(g, n, NULL,
			"an image of %" PRId64 " by %" PRId64
			" does not split into blocks of %" PRId64 " by %" PRId64,
			d[2], d[3], b, b);
	dim[0] = d[0];
	dim[2] = d[2] / b;
	dim[3] = d[3] / b;
	return data_output(g, n, 0, n->in[0]->dtype, 4, dim);
}

static bool to_space(const struct node *n)
{
	return n->op->name[0] == 'D';
}

/* The element of the deep tensor for an element of the wide one, [N, C, H, W]. */
static int64_t deep_place(
	const struct node *n, const struct tensor *deep, const struct tensor *wide, int64_t at)
{
	int64_t b = node_int(n, "blocksize", 1), w = at % wide->dim[3], rest = at / wide->dim[3];
	int64_t h = rest % wide->dim[2], c = rest / wide->dim[2] % wide->dim[1];
	int64_t image = rest / wide->dim[2] / wide->dim[1], in_block = h % b * b + w % b;
	bool crd = !strcmp(node_string(n, "mode", "DCR"), "CRD");
	int64_t channel = crd ? c * b * b + in_block : in_block * wide->dim[1] + c;
	return ((image * deep->dim[1] + channel) * deep->dim[2] + h / b) * deep->dim[3] + w / b;
}

static enum status block_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct tensor *x = n->in[0], *y = n->out[0];
	const size_t size = (size_t)dtype_bytes(x->dtype);
	for (int64_t i = 0; i < x->numel; i++) {
		int64_t k = deep_place(n, to_space(n) ? x : y, to_space(n) ? y : x, i);
		int64_t from = to_space(n) ? k : i, to = to_space(n) ? i : k;
		memcpy((char *)out[0] + (size_t)to * size,
			(const char *)x->data + (size_t)from * size, size);
	}
	return ST_OK;
}

static enum status block_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	static const int64_t dcr[] = {0, 3, 4, 1, 5, 2}, crd[] = {0, 1, 4, 2, 5, 3},
			     deep[] = {0, 3, 5, 1, 2, 4}, deep_crd[] = {0, 1, 3, 5, 2, 4};
	const int64_t *d = n->in[0]->dim, *y = n->out[0]->dim, b = node_int(n, "blocksize", 1);
	const bool c_first = !strcmp(node_string(n, "mode", "DCR"), "CRD");
	const int64_t by_dcr[] = {d[0], b, b, y[1], d[2], d[3]};
	const int64_t by_crd[] = {d[0], y[1], b, b, d[2], d[3]};
	const int64_t by_space[] = {d[0], d[1], y[2], b, y[3], b};
	const int64_t *split = !to_space(n) ? by_space : c_first ? by_crd : by_dcr;
	const int64_t *order = !to_space(n) ? (c_first ? deep_crd : deep) : c_first ? crd : dcr;
	const struct attr perm = data_ints(g, "perm", 6, order);
	struct tensor *t = graph_reshape(g, in[0], 6, split);
	t = graph_op(g, "Transpose", 1, &t, 1, &perm);
	out[0] = graph_reshape(g, t, 4, y);
	return g->failed;
}

#define BLOCKS(onnx, infers, ...)                                                                  \
	{                                                                                          \
		.name = onnx, .apart = APART_FIRST, .since = 1, .min_in = 1, .infer = infers,      \
		.fold = block_fold, .lower = block_lower, .example = EXAMPLES(__VA_ARGS__)         \
	}

const struct op_def ops_depthspace[] = {
	BLOCKS("DepthToSpace", d2s_infer, {.in = "a,8,b,c", .attr = "blocksize=2"},
		{.in = "a,8,b,c", .attr = "blocksize=2 mode=CRD"},
		{.in = "1,9,2,3", .attr = "blocksize=3 mode=DCR"},
		{.in = "2,3,4,2", .attr = "blocksize=1"},
		{.in = "2,4,3,2:i64<9", .attr = "blocksize=2"}),
	BLOCKS("SpaceToDepth", s2d_infer, {.in = "a,b,4,6", .attr = "blocksize=2"},
		{.in = "1,2,6,3", .attr = "blocksize=3"},
		{.in = "2,3,2,4", .attr = "blocksize=2 mode=CRD"},
		{.in = "2,2,4,2:bool", .attr = "blocksize=2"}),
	{.name = NULL},
};

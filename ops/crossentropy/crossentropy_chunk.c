/* Cross-entropy of a product's rows in chunks. A language model's scores, rows × vocabulary, are
 * the largest tensor of its training step; made in chunks of rows, each multiplied out, brought to
 * its loss and gradient, and forgotten before the next, they take one chunk's bytes (after Hsu et
 * al., "Liger Kernel", 2024, arXiv 2410.10989, section 3.2, FusedLinearCrossEntropy). Here they are
 * plain nodes: products, losses and their own gradient rules; the weights' gradients are added in
 * the order of the chunks. */
#include "ops/crossentropy/crossentropy_op.h"
#include "ops/crossentropy/labels_op.h"
#include "ops/target_op.h"

enum { X, TARGET, CONTROL, WEIGHT };

/* Rows are taken in chunks where scores are more than two, by their elements (ops/target_op.h). */
enum { CHUNKS_MAX = 64, ROWS_STEP = 128 };

/* Where scores come from: rows times weight, plus a bias perhaps. */
struct head {
	const struct node *product, *add; /* add NULL: the product has its own bias, or none */
	int bias;                         /* of add's inputs */
};

static int readers(const struct graph *g, const struct tensor *t)
{
	int n = 0;
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin; k++)
			n += g->node[i]->in[k] == t;
	return n;
}

/* Who made t, views aside; *shared where others read anything on the way. */
static const struct node *maker_of(const struct graph *from, const struct tensor *t, bool *shared)
{
	*shared |= from && readers(from, t) != 1;
	while (t->maker && t->maker->op->traits & OP_VIEW) {
		t = t->maker->in[0];
		*shared |= from && readers(from, t) != 1;
	}
	return t->maker;
}

/* The product behind scores x; `from`, where given: the graph in which nobody else may read it. */
static bool find_head(const struct graph *from, const struct tensor *x, struct head *h)
{
	bool shared = false;
	const int64_t classes = x->dim[x->rank - 1];
	const struct node *n = maker_of(from, x, &shared);
	*h = (struct head){0};
	if (node_is(n, "Add")) {
		h->add = n;
		h->bias = n->in[0]->numel == classes ? 0 : 1;
		const struct tensor *b = n->in[h->bias], *y = n->in[1 - h->bias];
		if (b->numel != classes || b->rank == 0 || b->dim[b->rank - 1] != classes ||
			y->numel != x->numel)
			return false;
		n = maker_of(from, y, &shared);
	}
	h->product = n;
	return n && !shared && node_is(n, "stint.MatMul") && n->in[0]->rank == 2 &&
	       n->in[1]->rank == 2 && !node_int(n, "transA", 0) && n->out[0]->dim[1] == classes;
}

static bool wants_chunks(const struct graph *from, const struct node *n)
{
	const struct tensor *x = n->in[X];
	struct head h;
	return label_axis(x, node_option(n, "axis")) == x->rank - 1 &&
	       n->in[TARGET]->dtype == DT_I64 && label_reduction(n) != NONE &&
	       !node_int(n, LENIENT, 0) &&
	       (int64_t)node_option(n, "ignore_index") != IGNORE_NOTHING &&
	       readers(from, n->out[1]) == 0 && find_head(from, x, &h);
}

/* How many rows a chunk has, of so many; all: scores are small enough. */
static int64_t chunk_rows(
	const struct graph *g, const struct node *n, int64_t rows, int64_t classes)
{
	const int64_t most = target_piece_elements(g->target);
	const int64_t asked = (int64_t)node_option(n, "chunk");
	if (asked > 0)
		return asked < rows / CHUNKS_MAX ? (rows - 1) / CHUNKS_MAX + 1 : asked;
	if (rows < 2 * ROWS_STEP || rows / 2 <= most / classes)
		return rows;
	int64_t chunks = (rows - 1) / (most / classes > 0 ? most / classes : 1) + 1;
	chunks = chunks < CHUNKS_MAX ? chunks : CHUNKS_MAX;
	const int64_t each = (rows - 1) / chunks + 1;
	return (each + ROWS_STEP - 1) / ROWS_STEP * ROWS_STEP;
}

/* Axis 0 of x in parts of `each`, the last perhaps smaller. */
static struct node *parts_of(struct graph *g, struct tensor *x, int64_t each)
{
	const int64_t n = (x->dim[0] - 1) / each + 1;
	int64_t *size = ARENA_ARRAY(g->arena, int64_t, n);
	if (!size || g->failed != ST_OK) {
		g->failed = g->failed != ST_OK ? g->failed : diag_nomem(g->diag);
		return NULL;
	}
	for (int64_t i = 0; i < n; i++)
		size[i] = i < n - 1 ? each : x->dim[0] - each * (n - 1);
	const struct attr attr[] = {ATTR_I("axis", 0), ATTR_IS("split", (int)n, size)};
	struct node *made;
	const enum status st = graph_node(g, "Split", NULL, 1, &x, (int)n, 2, attr, NULL, &made);
	g->failed = st;
	return st == ST_OK ? made : NULL;
}

/* The sum of a chunk's losses. */
static struct tensor *chunk_loss(struct graph *g, const struct node *n, const struct head *h,
	struct tensor *rows, struct tensor *labels, struct tensor *weight)
{
	const struct attr transposed[] = {
		ATTR_I("transA", 0), ATTR_I("transB", node_int(h->product, "transB", 0))};
	struct tensor *in[3] = {
		rows, h->product->in[1], h->product->nin > 2 ? h->product->in[2] : NULL};
	struct tensor *x = graph_op(g, "stint.MatMul", in[2] ? 3 : 2, in, 2, transposed);
	if (h->add) {
		struct tensor *bias = h->add->in[h->bias];
		x = OP2(g, "Add", x, graph_reshape(g, bias, 1, &bias->numel));
	}
	const struct attr attr[] = {{.name = "reduction", .kind = ATTR_STRING, .s = "sum"},
		ATTR_I("axis", 1), ATTR_F("ignore_index", node_option(n, "ignore_index")),
		ATTR_F("label_smoothing", node_option(n, "label_smoothing"))};
	return graph_op(g, n->op->name, weight ? 4 : 2,
		(struct tensor *[]){x, labels, NULL, weight}, sizeof attr / sizeof *attr, attr);
}

enum status crossentropy_chunk(struct graph *g, const struct graph *from, const struct node *n,
	struct tensor *const *in, struct tensor **out)
{
	struct head h;
	if (!wants_chunks(from, n) || !find_head(NULL, in[X], &h))
		return ST_OK;
	struct tensor *x = h.product->in[0], *weight = n->nin > WEIGHT ? in[WEIGHT] : NULL;
	const int64_t rows = x->dim[0], each = chunk_rows(g, n, rows, h.product->out[0]->dim[1]);
	if (each >= rows)
		return ST_OK;
	const struct attr ignored = ATTR_F("ignore_index", node_option(n, "ignore_index"));
	struct node *counted = graph_op_node(g, "stint.CountedLabels", weight ? 3 : 2,
		(struct tensor *[]){in[TARGET], n->nin > CONTROL ? in[CONTROL] : NULL, weight}, 1,
		&ignored, NULL);
	struct node *part = parts_of(g, x, each);
	struct node *label = counted ? parts_of(g, counted->out[0], each) : NULL;
	struct tensor *sum = NULL;
	for (int i = 0; part && label && i < part->nout; i++) {
		struct tensor *loss = chunk_loss(g, n, &h, part->out[i], label->out[i], weight);
		sum = sum ? OP2(g, "Add", sum, loss) : loss;
	}
	if (g->failed == ST_OK && label_reduction(n) == MEAN)
		sum = OP2(g, "Div", sum, counted->out[1]);
	out[0] = sum;
	return g->failed;
}

/* Attention stacks. N is the number of layers. */
#include "families.h"

/* The sizes of a stack, in elements; four bytes each. */
struct stack {
	int64_t batch, length, width, heads, vocabulary;
	bool flash;   /* attention is one op, else its parts are */
	bool dropout; /* recomputed from its counter: nothing is saved */
	bool first;   /* the norm stands before its block (GPT), else behind the sum (BERT) */
};

struct block {
	struct net *n;
	const struct stack *s;
	struct arena *a;
	int layer;
	int64_t rows; /* tokens */
};

static const char *called(const struct block *b, const char *what)
{
	const char *s = arena_printf(b->a, "h%d.%s", b->layer, what);
	return s ? s : "";
}

static int product(const struct block *b, const char *what, int x, int64_t from, int64_t to)
{
	struct net_linear l = {.out = 4 * b->rows * to,
		.weight = 4 * from * to,
		.bias = 4 * to,
		.flops = 2.0 * (double)b->rows * (double)from * (double)to};
	return net_linear(b->n, called(b, what), x, &l);
}

static int norm(const struct block *b, const char *what, int x)
{
	return net_norm(b->n, called(b, what), x, 4 * b->rows, 4 * b->s->width, false);
}

static int attend(const struct block *b, int x)
{
	const struct stack *s = b->s;
	int64_t pairs = s->batch * s->heads * s->length * s->length, d = s->width / s->heads;
	double flops = 2.0 * (double)pairs * (double)d;
	int qkv = product(b, "qkv", x, s->width, 3 * s->width), part[3] = {0}, y;
	if (s->flash) {
		y = net_attention(
			b->n, called(b, "attention"), qkv, 4 * b->rows * s->heads, 2 * flops);
	} else {
		net_split(b->n, called(b, "split"), qkv, 3, part);
		y = net_product(b->n, called(b, "scores"), part[0], part[1], 4 * pairs, flops);
		y = net_unary(b->n, called(b, "mask"), y, NET_NOTHING);
		y = net_unary(b->n, called(b, "softmax"), y, NET_OUTPUT);
		y = net_product(b->n, called(b, "mix"), y, part[2], 4 * b->rows * s->width, flops);
	}
	y = product(b, "proj", y, s->width, s->width);
	return s->dropout ? net_unary(b->n, called(b, "drop"), y, NET_NOTHING) : y;
}

static int feed(const struct block *b, int x)
{
	x = product(b, "fc1", x, b->s->width, 4 * b->s->width);
	x = net_unary(b->n, called(b, "gelu"), x, NET_INPUT);
	return product(b, "fc2", x, 4 * b->s->width, b->s->width);
}

static int layer(const struct block *b, int x)
{
	if (b->s->first) {
		x = net_add(b->n, called(b, "add1"), x, attend(b, norm(b, "ln1", x)));
		return net_add(b->n, called(b, "add2"), x, feed(b, norm(b, "ln2", x)));
	}
	x = norm(b, "ln1", net_add(b->n, called(b, "add1"), x, attend(b, x)));
	return norm(b, "ln2", net_add(b->n, called(b, "add2"), x, feed(b, x)));
}

static struct problem *stack(struct arena *a, int n, const struct stack *s, const char *name)
{
	struct net net = net_start(a, 0);
	int64_t rows = s->batch * s->length;
	struct block b = {.n = &net, .s = s, .a = a, .rows = rows};
	net.fused = true;
	int tokens = net_input(&net, 8 * rows, "tokens"),
	    places = net_input(&net, 8 * rows, "places");
	int table = net_param(&net, 4 * s->vocabulary * s->width, "tokens.weight");
	int where = net_param(&net, 4 * s->length * s->width, "places.weight");
	int x = net_lookup(&net, "embed", tokens, table, 4 * rows * s->width);
	int y = net_lookup(&net, "place", places, where, 4 * rows * s->width);
	x = net_add(&net, "embed.add", x, y);
	for (b.layer = 0; b.layer < n; b.layer++)
		x = layer(&b, x);
	x = net_norm(&net, "last", x, 4 * rows, 4 * s->width, false);
	x = net_shared(&net, "logits", x, table, 4 * rows * s->vocabulary,
		2.0 * (double)rows * (double)s->width * (double)s->vocabulary);
	return net_train(&net, x, 8 * rows, name);
}

struct problem *family_gpt(struct arena *a, int n, uint64_t seed)
{
	const struct stack s = {.batch = 8,
		.length = 512,
		.width = 768,
		.heads = 12,
		.vocabulary = 16384,
		.dropout = true,
		.first = true};
	(void)seed;
	return stack(a, n, &s, arena_printf(a, "gpt-%d", n));
}

struct problem *family_flash(struct arena *a, int n, uint64_t seed)
{
	const struct stack s = {.batch = 8,
		.length = 512,
		.width = 768,
		.heads = 12,
		.vocabulary = 50257,
		.flash = true,
		.first = true};
	(void)seed;
	return stack(a, n, &s, arena_printf(a, "flash-%d", n));
}

struct problem *family_bert(struct arena *a, int n, uint64_t seed)
{
	const struct stack s = {.batch = 32,
		.length = 128,
		.width = 1024,
		.heads = 16,
		.vocabulary = 30522,
		.dropout = true};
	(void)seed;
	return stack(a, n, &s, arena_printf(a, "bert-%d", n));
}

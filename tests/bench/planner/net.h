/* Training graphs of networks: forward ops recorded on a tape, their gradients and updates added by
 * walking it back. Sizes in bytes of float32. Private to this folder. */
#ifndef STINT_TESTS_BENCH_NET_H
#define STINT_TESTS_BENCH_NET_H

#include "make.h"

struct net;
struct net_record;

struct net_param {
	int tensor, state; /* the momentum */
	int64_t bytes;
	int uses, grad; /* gradients to come; their sum so far or -1 */
};

struct net {
	struct make m;
	struct net_record *tape;
	int ntape, ctape;
	struct net_param *param;
	int nparam, cparam;
	int *grad;  /* per forward tensor: its gradient so far, -1 for none */
	bool fused; /* one update op for an op's weight and bias instead of one for each */
	int input;  /* no gradient is made for this one */
};

/* A convolution or matrix product. */
struct net_linear {
	int64_t out, weight, bias; /* bytes; no bias where 0 */
	double flops;      /* of the forward product: each of the two gradients costs the same */
	int64_t workspace; /* of each of the three */
};

struct net net_start(struct arena *a, uint64_t seed);
int net_input(struct net *n, int64_t bytes, const char *name);
int net_param(struct net *n, int64_t bytes, const char *name); /* a parameter's number */

/* All return the output's tensor. */
int net_linear(struct net *n, const char *name, int x, const struct net_linear *l);
/* y = x times a parameter that others use too. */
int net_shared(struct net *n, const char *name, int x, int param, int64_t out, double flops);
/* Rows of a table; no gradient for `tokens`. */
int net_lookup(struct net *n, const char *name, int tokens, int param, int64_t out);
/* Layer norm or, with `running`, batch norm: mean and inverse deviation are outputs too, and
 * running statistics are a run-once update. `stat` is the bytes of one of them, `width` of gamma.
 */
int net_norm(struct net *n, const char *name, int x, int64_t stat, int64_t width, bool running);
enum net_saves { NET_NOTHING, NET_INPUT, NET_OUTPUT }; /* what the gradient reads beside gy */
int net_unary(struct net *n, const char *name, int x, enum net_saves saves);
int net_add(struct net *n, const char *name, int a, int b);
/* Max pool (with an index of a byte an element) or, without, average pool. */
int net_pool(struct net *n, const char *name, int x, int64_t out, bool index);
int net_concat(struct net *n, const char *name, const int *x, int nx);
/* x in equal parts. */
void net_split(struct net *n, const char *name, int x, int parts, int *out);
/* A product of two activations. */
int net_product(struct net *n, const char *name, int a, int b, int64_t out, double flops);
/* Attention in one op: qkv → out and the sums of the softmax. */
int net_attention(struct net *n, const char *name, int qkv, int64_t sums, double flops);

/* The loss, then every gradient and update. */
struct problem *net_train(struct net *n, int logits, int64_t target, const char *name);

int64_t net_bytes(const struct net *n, int t);

/* --- Between net.c and net_back.c --- */

enum net_kind {
	NET_LINEAR,
	NET_SHARED,
	NET_LOOKUP,
	NET_NORM,
	NET_UNARY,
	NET_ADD,
	NET_POOL,
	NET_CONCAT,
	NET_SPLIT,
	NET_PRODUCT,
	NET_ATTENTION
};

struct net_record {
	enum net_kind kind;
	const char *name;
	const int *x, *y; /* tensors */
	int nx, ny;
	int param[2], nparam;
	double flops;
	int64_t workspace, bias;
	enum net_saves saves;
	bool index;
};

#endif

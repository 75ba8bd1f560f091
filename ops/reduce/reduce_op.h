/* Reductions: what the records (reduce.c) and the calls of kernels (reduce_emit.c) share. */
#ifndef STINT_OPS_REDUCE_OP_H
#define STINT_OPS_REDUCE_OP_H

#include "codegen/call.h"
#include "ops/data.h"

/* How two results are joined into one. */
enum reduce_join { JOIN_SUM, JOIN_PRODUCT, JOIN_MAX, JOIN_MIN };

/* What is joined of each element x. `other`: the second input's element at the output's place. */
enum reduce_term {
	TERM_SELF,
	TERM_ABSOLUTE,
	TERM_SQUARE,
	TERM_EXP,     /* exp(x - other) */
	TERM_EQUAL,   /* 1 where x == other */
	TERM_ZERO,    /* 1 where x == 0 */
	TERM_NONZERO, /* x, or 1 in place of 0 */
};

/* The records' variants. */
enum reduction {
	SUM,
	MEAN,
	L1,
	L2,
	SUM_SQUARE,
	MAX,
	MIN,
	PROD,
	SUM_EXP,
	COUNT,
	ZEROS,
	PROD_NONZERO,
	LOG_SUM, /* these two are lowered to others */
	LOG_SUM_EXP,
};

/* One kind of reduction: terms joined, then a last step. */
struct reduce_kind {
	enum reduce_join join;
	enum reduce_term term;
	bool mean, root; /* the last step: division by the count, square root */
};

static inline bool reduce_has_other(const struct reduce_kind *k)
{
	return k->term == TERM_EXP || k->term == TERM_EQUAL;
}

/* Neighbouring axes that are both reduced, or both kept, as one. */
struct reduce_group {
	int64_t dim, stride;
	bool reduced;
};
struct reduce_shape {
	int n;
	struct reduce_group group[RANK_MAX];
	int64_t count; /* elements that become one */
};

const struct reduce_kind *reduce_kind_of(const struct node *n);
/* Groups of axes, axes of size 1 dropped. */
struct reduce_shape reduce_shape_of(const struct node *n);
/* reduce_fold.c */
enum status reduce_fold(struct graph *g, const struct node *n, void *const *out);
/* ReduceLogSum, ReduceLogSumExp */
enum status reduce_log_fold(struct graph *g, const struct node *n, void *const *out);
/* reduce_emit.c */
int64_t reduce_workspace(const struct node *n, const struct target *t);
enum status reduce_emit(struct emit *e, const struct node *n);
enum status reduce_emit_cuda(struct emit *e, const struct node *n);
/* The kernels' structs "how", and "shape" of so many groups. */
enum { REDUCE_FIELDS = 6 };
struct call_struct reduce_how(
	struct call_field field[REDUCE_FIELDS], const struct reduce_kind *k, int64_t count);
struct reduce_groups {
	int64_t dim[RANK_MAX], stride[RANK_MAX], reduced[RANK_MAX];
	struct call_field field[REDUCE_FIELDS];
};
struct call_struct reduce_groups_of(const struct reduce_shape *s, struct reduce_groups *g);
/* reduce_cuda.c: of reals of which some are joined */
bool reduce_has_cuda(const struct node *n);
int64_t reduce_cuda_workspace(const struct node *n, const struct target *t);
enum status reduce_cuda_call(struct emit *e, const struct node *n);

#endif

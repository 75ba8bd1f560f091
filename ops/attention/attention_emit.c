/* Attention's kernels: how the work is cut into tasks, and the scratch each needs. The functions
 * are kernels/attention.h's and attention_grad.h's. */
#include <stdio.h>

#include "ops/attention/attention_op.h"
#include "ops/dropout_op.h"
#include "ops/product/gemm_op.h"
#include "ops/target_op.h"

/* Keys that are worked on at once (ATTENTION_KEYS of kernels/attention_scores.h), queries whose
 * columns are turned into rows at once (ATTENTION_TURN), and keys of a task where the tasks are
 * blocks of keys. */
enum { KEYS = 96, TURN = 128, KEYS_TASK = 4 * KEYS };

/* Queries of a task of the forward kernel: many, as every task packs all keys again, but enough
 * tasks for the threads. A query's result is the same in any block. */
static int64_t forward_block(const struct attention *p, int threads)
{
	enum { MOST = 384, LEAST = 96 };
	int64_t blocks = div_up(p->tq, MOST);
	while (blocks < p->tq / LEAST && p->batch * p->heads * blocks < 2 * (int64_t)threads)
		blocks++;
	return max64(round_up(div_up(p->tq, max64(blocks, 1)), GEMM_COL_UNIT), GEMM_COL_UNIT);
}

/* Queries that the gradient packs at once: fixed, as sums over queries are cut here. */
static int64_t grad_block(const struct attention *p)
{
	return max64(min64(round_up(p->tq, GEMM_COL_UNIT), 2 * TURN), GEMM_COL_UNIT);
}

static int64_t forward_elements(const struct attention *p, int threads)
{
	const int64_t n = forward_block(p, threads);
	const int64_t tiles = p->ratio > 0 || (p->masked && !p->mask_bool) ? 2 : 1;
	return round_up(n * (2 + p->d + p->dv) + tiles * KEYS * GEMM_COL_UNIT + KEYS * p->d +
				KEYS * round_up(p->dv, GEMM_ROW_UNIT),
		16);
}

static int64_t grad_elements(const struct attention *p)
{
	const int64_t n = grad_block(p), d = p->d, dv = p->dv;
	return round_up(
		n * (2 * d + dv + round_up(d, GEMM_COL_UNIT) + round_up(dv, GEMM_COL_UNIT) + 2) +
			KEYS * (d + dv + round_up(d, GEMM_ROW_UNIT)) + 4 * KEYS * GEMM_COL_UNIT +
			2 * KEYS * TURN,
		16);
}

static int64_t real_bytes(const struct tensor *t)
{
	return t->dtype == DT_F64 ? 8 : 4;
}

int64_t attention_workspace(const struct node *n, const struct target *t)
{
	return forward_elements(n->param, t->threads) * real_bytes(n->in[IN_Q]) * t->threads;
}

int64_t attention_grad_workspace(const struct node *n, const struct target *t)
{
	return grad_elements(n->param) * real_bytes(n->in[GRAD_Q]) * t->threads;
}

/* A kernel's `struct attention`, and what its fields point to. */
struct shape {
	int64_t dmask[2];
	struct call_field field[27];
	struct call_struct s;
};

static const struct call_struct *shape_of(
	const struct emit *e, const struct attention *p, int64_t block, struct shape *shape)
{
	const int64_t plane = p->tq * p->tk;
	const bool noisy = p->ratio > 0;
	shape->dmask[0] = p->mask_dim[1] * plane;
	shape->dmask[1] = p->mask_dim[1] > 1 ? plane : 0;
	const struct call_field field[] = {{"batch", ARG_INT(p->batch)},
		{"heads", ARG_INT(p->heads)}, {"group", ARG_INT(p->group)},
		{"block", ARG_INT(block)}, {"tq", ARG_INT(p->tq)}, {"tk", ARG_INT(p->tk)},
		{"d", ARG_INT(p->d)}, {"dv", ARG_INT(p->dv)},
		{"q", ARG_INTS(3, p->stride[ATTENTION_Q])},
		{"k", ARG_INTS(3, p->stride[ATTENTION_K])},
		{"v", ARG_INTS(3, p->stride[ATTENTION_V])},
		{"o", ARG_INTS(3, p->stride[ATTENTION_OUT])},
		{"mask", ARG_IF(p->masked, ARG_INTS(4, p->mask_stride))},
		{"dmask", ARG_IF(p->masked, ARG_INTS(2, shape->dmask))},
		{"period", ARG_INT(p->mask_dim[0])}, {"lower", ARG_INT(p->lower)},
		{"upper", ARG_INT(p->upper)}, {"scale", ARG_REAL(p->scale)},
		{"cap", ARG_REAL(p->softcap)}, {"empty", ARG_INT((int)p->empty)},
		{"node", ARG_IF(noisy, ARG_INT(p->noise))},
		{"keep_from", ARG_IF(noisy, ARG_INT((int64_t)dropout_keep_from(p->ratio)))},
		{"keep", ARG_IF(noisy, ARG_REAL(1 / (1 - p->ratio)))},
		{"shard", ARG_IF(noisy, ARG_INT(e->g->shards_differ))}, {.name = NULL}};
	memcpy(shape->field, field, sizeof field);
	shape->s = (struct call_struct){"struct attention", "a", shape->field};
	return &shape->s;
}

/* Multiplications and additions of `products` products of queries and keys. */
static double work_of(const struct attention *p, int products)
{
	return 2.0 * products * (double)(p->batch * p->heads) * (double)(p->tq * p->tk) *
	       (double)max64(p->d, 1);
}

enum status attention_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const int threads = e->g->target->threads;
	const int64_t block = forward_block(p, threads);
	const bool noisy = p->ratio > 0;
	struct shape shape;
	return call_kernel(e,
		&(struct kernel_call){.file = "attention.h",
			.function = "attention",
			.ntype = 1,
			.type = {n->in[IN_Q]},
			.turns = p->batch * p->heads * div_up(p->tq, block),
			.work = work_of(p, 2),
			.args = CALL_ARGS(ARG_STRUCT(shape_of(e, p, block, &shape)), ARG_Y(0),
				ARG_Y(1), ARG_X_AT(IN_Q, p->offset[0]),
				ARG_X_AT(IN_K, p->offset[1]), ARG_X_AT(IN_V, p->offset[2]),
				p->masked && !p->mask_bool ? ARG_X(IN_MASK) : ARG_NULL,
				p->mask_bool ? ARG_X(IN_MASK) : ARG_NULL,
				noisy ? ARG_X(IN_CONTROL) : ARG_NULL,
				noisy ? ARG_NAME("attention_noise") : ARG_NULL,
				ARG_OWN(0,
					forward_elements(p, threads) * real_bytes(n->in[IN_Q])))});
}

/* TO_MASK: the first output; TO_LAST: the one behind the others. */
enum { TO_Q = 1, TO_KV = 2, TO_MASK = 4, TO_LAST = 8 };

/* A kernel's `struct attention_grad`: what a gradient reads and, of `to`, writes. */
struct given {
	struct call_field field[15];
	struct call_struct s;
	char type[40];
};

static const struct call_struct *given_of(
	const struct node *n, const char *name, int to, struct given *g)
{
	const struct attention *p = n->param;
	const bool noisy = p->ratio > 0, kv = (to & TO_KV) != 0;
	const int64_t *at = p->offset;
	const struct call_field field[] = {{"dy", ARG_X(GRAD_DY)}, {"q", ARG_X_AT(GRAD_Q, at[0])},
		{"k", ARG_X_AT(GRAD_K, at[1])}, {"v", ARG_X_AT(GRAD_V, at[2])},
		{"y", ARG_X(GRAD_OUT)}, {"lse", ARG_X(GRAD_LSE)},
		{p->mask_bool ? "allow" : "mask", ARG_IF(p->masked, ARG_X(GRAD_MASK))},
		{"dlse", ARG_IF(node_input(n, GRAD_DLSE), ARG_X(GRAD_DLSE))},
		{"control", ARG_IF(noisy, ARG_X(GRAD_CONTROL))},
		{"draw", ARG_IF(noisy, ARG_NAME("attention_noise"))},
		{"dq", ARG_IF(to & TO_Q, ARG_Y_AT(0, at[0]))},
		{"dk", ARG_IF(kv, ARG_Y_AT(p->packed ? 0 : 1, at[1]))},
		{"dv", ARG_IF(kv, ARG_Y_AT(p->packed ? 0 : 2, at[2]))},
		{"dmask", ARG_IF(to & (TO_MASK | TO_LAST),
				  ARG_Y(to & TO_MASK ? 0 : attention_parts(p)))}};
	memcpy(g->field, field, sizeof field);
	g->field[sizeof field / sizeof *field] = (struct call_field){.name = NULL};
	snprintf(g->type, sizeof g->type, "struct attention_grad%s",
		dtype_is_narrow(n->in[GRAD_Q]->dtype)
			? n->in[GRAD_Q]->dtype == DT_BF16 ? "_bf16" : "_fp16"
			: "");
	g->s = (struct call_struct){g->type, name, g->field};
	return &g->s;
}

/* A kernel of attention_grad.h: `to` says what it writes, `planes` is its number, if it has one. */
struct grad_call {
	const char *function, *given;
	int64_t turns;
	int products, to;
	int64_t planes;
};

static enum status call(struct emit *e, const struct node *n, const struct grad_call *c)
{
	const struct attention *p = n->param;
	struct shape shape;
	struct given given;
	return call_kernel(
		e, &(struct kernel_call){.file = "attention_grad.h",
			   .function = c->function,
			   .ntype = 1,
			   .type = {n->in[GRAD_Q]},
			   .turns = c->turns,
			   .work = work_of(p, c->products),
			   .args = CALL_ARGS(ARG_STRUCT(shape_of(e, p, grad_block(p), &shape)),
				   ARG_STRUCT(given_of(n, c->given, c->to, &given)),
				   ARG_IF(c->planes, ARG_INT(c->planes)),
				   ARG_OWN(0, grad_elements(p) * real_bytes(n->in[GRAD_Q])))});
}

/* Heads of k and v whose queries share their rows of the mask. */
static int64_t heads_of_mask(const struct attention *p)
{
	return p->mask_dim[1] == 1 ? p->heads / p->group : 1;
}

/* Tasks, where each has all batches and heads that share a mask. */
static int64_t mask_tasks(const struct attention *p)
{
	return p->mask_dim[0] * (p->heads / p->group / heads_of_mask(p));
}

/* As long as the threads find work, and the mask is small beside what it is to stand in memory
 * with.
 */
bool attention_joins(const struct graph *g, const struct attention *p)
{
	const int64_t tasks = mask_tasks(p), threads = g->target->threads;
	return target_joins_mask_gradient(g->target) &&
	       (tasks % threads == 0 || tasks >= 4 * threads) &&
	       4 * p->mask_dim[0] * p->mask_dim[1] * p->tk <= p->batch * p->heads * p->d;
}

/* Whether one task a head keeps the threads busy: 5 products then, 7 in blocks. */
static bool by_heads(const struct attention *p, int threads)
{
	const int64_t tasks = p->batch * (p->heads / p->group);
	const double blocks = (double)(tasks * p->group * div_up(p->tq, grad_block(p))) /
			      (double)threads;
	const double rounds = (double)(div_up(tasks, threads) * p->group) *
			      (double)div_up(p->tq, grad_block(p));
	return 5 * rounds <= 7 * blocks || (p->tq <= grad_block(p) && p->tk <= KEYS_TASK);
}

enum status attention_grad_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const int64_t heads = p->heads / p->group;
	if (n->nout > attention_parts(p))
		return call(e, n,
			&(struct grad_call){"attention_grad_masks", "g", mask_tasks(p), 5,
				TO_Q | TO_KV | TO_LAST, heads_of_mask(p)});
	if (by_heads(p, e->g->target->threads))
		return call(e, n,
			&(struct grad_call){
				"attention_grad_heads", "g", p->batch * heads, 5, TO_Q | TO_KV, 0});
	/* blocks of queries, for q's gradient, and then blocks of keys, for those of k and v: the
	 * same sums in the same order, and the probabilities twice */
	TRY(call(e, n,
		&(struct grad_call){"attention_grad_queries", "gq",
			p->batch * p->heads * div_up(p->tq, grad_block(p)), 3, TO_Q, 0}));
	return call(e, n,
		&(struct grad_call){"attention_grad_keys", "g",
			p->batch * heads * div_up(p->tk, KEYS_TASK), 4, TO_KV, 0});
}

/* The mask's gradient, summed over the batches and heads that share a value. */
enum status attention_mask_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const int64_t planes = p->mask_dim[1] == 1 ? 1 : p->heads;
	return call(e, n,
		&(struct grad_call){"attention_mask_grad", "g",
			p->mask_dim[0] * planes * div_up(p->tq, grad_block(p)), 2, TO_MASK,
			planes});
}

/* Attention's kernels: how the work is cut into tasks, and the scratch each needs. The functions
 * they call are in attention_text.h. */
#include <stdio.h>

#include "ops/attention.h"
#include "ops/attention_text.h"
#include "ops/dropout.h"
#include "ops/gemm.h"

/* Keys that are worked on at once (ATTENTION_KEYS of the text), queries whose columns are turned
 * into rows at once (ATTENTION_TURN), and keys of a task where the tasks are blocks of keys. */
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
	if (t->cuda)
		return 0;
	return forward_elements(n->param, t->threads) * real_bytes(n->in[IN_Q]) * t->threads;
}

int64_t attention_grad_workspace(const struct node *n, const struct target *t)
{
	if (t->cuda)
		return attention_tensor_workspace(n);
	return grad_elements(n->param) * real_bytes(n->in[GRAD_Q]) * t->threads;
}

int64_t attention_mask_workspace(const struct node *n, const struct target *t)
{
	return t->cuda ? 0 : attention_grad_workspace(n, t);
}

static void emit_strides(struct emit *e, const char *name, const int64_t *v, int n)
{
	emit(e, " .%s = {", name);
	for (int i = 0; i < n; i++)
		emit(e, "%s%lld", i ? ", " : "", (long long)v[i]);
	emit(e, "},");
}

/* Declares `a`, and what every kernel calls; `t`: one of those that are packed. */
static void emit_shape(
	struct emit *e, const struct attention *p, int64_t block, const struct tensor *t)
{
	static const char *const names[ATTENTION_TENSORS] = {"q", "k", "v", "o"};
	char scale[40], cap[40], keep[40];
	const int64_t plane = p->tq * p->tk;
	const int64_t dmask[2] = {p->mask_dim[1] * plane, p->mask_dim[1] > 1 ? plane : 0};
	gemm_emit_thread(e);
	gemm_emit_macro(e);
	gemm_emit_pack_a(e, t);
	gemm_emit_pack_b(e, t);
	gemm_emit_pack_b(e, NULL); /* masks */
	emit_helper(e, "attention", attention_text);
	emit(e,
		"\tstatic const struct attention a = {.heads = %lld, .group = %lld, .block = %lld, "
		".tq = %lld, .tk = %lld,\n",
		(long long)p->heads, (long long)p->group, (long long)block, (long long)p->tq,
		(long long)p->tk);
	emit(e, "\t\t.d = %lld, .dv = %lld,", (long long)p->d, (long long)p->dv);
	for (int i = 0; i < ATTENTION_TENSORS; i++)
		emit_strides(e, names[i], p->stride[i], 3);
	emit(e, "\n\t\t");
	if (p->masked) {
		emit_strides(e, "mask", p->mask_stride, 4);
		emit_strides(e, "dmask", dmask, 2);
		emit(e, "\n\t\t");
	}
	emit(e, ".period = %lld, .lower = %lld, .upper = %lld, .scale = %s, .cap = %s, .empty = %d",
		(long long)p->mask_dim[0], (long long)p->lower, (long long)p->upper,
		emit_real(e, p->scale, scale), emit_real(e, p->softcap, cap), (int)p->empty);
	if (p->ratio > 0)
		emit(e, ",\n\t\t.node = %lld, .keep_from = %llu, .keep = %s", (long long)p->noise,
			(unsigned long long)dropout_keep_from(p->ratio),
			emit_real(e, 1 / (1 - p->ratio), keep));
	emit(e, "};\n");
	if (p->ratio > 0)
		emit_helper(e, "attention_noise", attention_noise_text);
}

/* Multiplications and additions of `products` products of queries and keys. */
static double work_of(const struct attention *p, int products)
{
	return 2.0 * products * (double)(p->batch * p->heads) * (double)(p->tq * p->tk) *
	       (double)max64(p->d, 1);
}

typedef char part_text[40];

/* attention_rows into elements of t. */
static void emit_rows(struct emit *e, const struct tensor *t)
{
	const bool narrow = dtype_is_narrow(t->dtype);
	if (!narrow)
		gemm_emit_turn(e);
	emit_helper_on(e, "attention_rows",
		narrow ? attention_rows_narrow_text : attention_rows_text, 1, &t);
}

/* Of the functions that read elements of t. */
static const char *suffix(const struct tensor *t)
{
	return t->dtype == DT_BF16 ? "_bf16" : t->dtype == DT_F16 ? "_fp16" : "";
}

static void emit_grad_helpers(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const struct tensor *q = n->in[GRAD_Q], *dq = n->out[0];
	const bool narrow = dtype_is_narrow(q->dtype);
	emit_shape(e, p, grad_block(p), q);
	emit_rows(e, dq);
	emit_helper_on(
		e, "attention_dot", narrow ? attention_dot_narrow_text : attention_dot_text, 1, &q);
	emit_helper_on(e, "attention_grad", attention_grad_text, 1, &q);
}

/* "x0 + 384": where operand `which` begins in a tensor. */
static const char *part(const struct attention *p, const char *name, int which, part_text text)
{
	if (p->offset[which] == 0)
		snprintf(text, sizeof(part_text), "%s", name);
	else
		snprintf(text, sizeof(part_text), "%s + %lld", name, (long long)p->offset[which]);
	return text;
}

enum status attention_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const int threads = e->g->target->threads;
	const int64_t block = forward_block(p, threads);
	part_text text[3];
	const struct tensor *q = n->in[IN_Q];
	if (e->g->target->cuda)
		return attention_cuda_emit(e, n);
	emit_shape(e, p, block, q);
	emit_rows(e, q);
	emit_helper_on(e, "attention_forward", attention_forward_text, 1, &q);
	const struct emit_loop loop[] = {
		{"b", p->batch, 1}, {"h", p->heads, 1}, {"i", p->tq, block}};
	emit_loops(e, work_of(p, 2), 3, loop);
	emit(e, "\n\t\t\t\tattention_block%s(&a, %s, %s, %s, %s, %s, %s, y0, y1, b, h, i,\n",
		suffix(q), part(p, "x0", 0, text[0]), part(p, "x1", 1, text[1]),
		part(p, "x2", 2, text[2]), p->masked && !p->mask_bool ? "x3" : "NULL",
		p->mask_bool ? "x3" : "NULL", p->ratio > 0 ? "x4, attention_noise" : "NULL, NULL");
	emit(e, "\t\t\t\t\t(real *)ws + thread_index() * %lld);\n",
		(long long)forward_elements(p, threads));
	return ST_OK;
}

/* TO_MASK: the first output; TO_LAST: the one behind the others. */
enum { TO_Q = 1, TO_KV = 2, TO_MASK = 4, TO_LAST = 8 };

/* Declares `name`, of what a gradient kernel reads and, of `to`, writes. */
static void emit_grad_data(struct emit *e, const struct node *n, const char *name, int to)
{
	static const char *const names[] = {"dq", "dk", "dv"};
	const struct attention *p = n->param;
	part_text text[3];
	emit(e,
		"\tconst struct attention_grad%s %s = {.dy = x0, .q = %s, .k = %s, .v = %s, .y = "
		"x4, "
		".lse = x5,\n\t\t",
		suffix(n->in[GRAD_Q]), name, part(p, "x1", 0, text[0]), part(p, "x2", 1, text[1]),
		part(p, "x3", 2, text[2]));
	if (p->masked)
		emit(e, ".%s = x6, ", p->mask_bool ? "allow" : "mask");
	if (node_has(n, GRAD_DLSE))
		emit(e, ".dlse = x8, ");
	if (p->ratio > 0)
		emit(e, ".control = x7, .draw = attention_noise, ");
	for (int i = 0, any = 0; i < 3; i++)
		if (to & (i == 0 ? TO_Q : TO_KV)) {
			const char y[] = {'y', (char)(p->packed ? '0' : '0' + i), 0};
			emit(e, "%s.%s = %s", any++ ? ", " : "", names[i], part(p, y, i, text[0]));
		}
	if (to & TO_LAST)
		emit(e, ", .dmask = y%d", attention_parts(p));
	emit(e, "%s};\n", to & TO_MASK ? ".dmask = y0" : "");
}

static void emit_scratch(struct emit *e, const struct node *n, const char *tabs)
{
	emit(e, "%sreal *w = (real *)ws + thread_index() * %lld;\n", tabs,
		(long long)grad_elements(n->param));
}

static void emit_over_queries(struct emit *e, const struct attention *p, const char *tabs)
{
	emit(e, "%sfor (int64_t h = kv * %lld; h < (kv + 1) * %lld; h++)\n", tabs,
		(long long)p->group, (long long)p->group);
	emit(e, "%s\tfor (int64_t i = 0; i < %lld; i += %lld)\n", tabs, (long long)p->tq,
		(long long)grad_block(p));
}

/* A task for every head of k and v: all it needs is computed once. */
static void emit_grad_heads(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	emit_grad_data(e, n, "g", TO_Q | TO_KV);
	const struct emit_loop loop[] = {{"b", p->batch, 1}, {"kv", p->heads / p->group, 1}};
	emit_loops(e, work_of(p, 5), 2, loop);
	emit(e, " {\n");
	emit_scratch(e, n, "\t\t\t");
	emit(e, "\t\t\tattention_clear%s(&a, &g, b, kv, 0, %lld);\n", suffix(n->in[GRAD_Q]),
		(long long)p->tk);
	emit_over_queries(e, p, "\t\t\t");
	emit(e, "\t\t\t\t\tattention_block_grad%s(&a, &g, b, h, i, 0, %lld, w);\n\t\t}\n",
		suffix(n->in[GRAD_Q]), (long long)p->tk);
}

/* Tasks are blocks of queries, for q's gradient, and then blocks of keys, for those of k and v:
 * the same sums in the same order, and the probabilities twice. */
static void emit_grad_blocks(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const long long tk = p->tk;
	const struct emit_loop queries[] = {
		{"b", p->batch, 1}, {"h", p->heads, 1}, {"i", p->tq, grad_block(p)}};
	const struct emit_loop keys[] = {
		{"b", p->batch, 1}, {"kv", p->heads / p->group, 1}, {"j", tk, KEYS_TASK}};
	emit_grad_data(e, n, "gq", TO_Q);
	emit_grad_data(e, n, "g", TO_KV);
	emit_loops(e, work_of(p, 3), 3, queries);
	emit(e, " {\n");
	emit_scratch(e, n, "\t\t\t\t");
	emit(e, "\t\t\t\tattention_block_grad%s(&a, &gq, b, h, i, 0, %lld, w);\n\t\t\t}\n",
		suffix(n->in[GRAD_Q]), tk);
	emit_loops(e, work_of(p, 4), 3, keys);
	emit(e, " {\n");
	emit_scratch(e, n, "\t\t\t\t");
	emit(e, "\t\t\t\tconst int64_t end = MIN(j + %d, %lld);\n", KEYS_TASK, tk);
	emit(e, "\t\t\t\tattention_clear%s(&a, &g, b, kv, j, end);\n", suffix(n->in[GRAD_Q]));
	emit_over_queries(e, p, "\t\t\t\t");
	emit(e, "\t\t\t\t\t\tattention_block_grad%s(&a, &g, b, h, i, j, end, w);\n\t\t\t}\n",
		suffix(n->in[GRAD_Q]));
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

/* A task for what shares a mask: batches and heads in the order of the mask's own kernel. */
static void emit_grad_masks(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const long long plane = p->tq * p->tk, heads = heads_of_mask(p);
	const long long planes = p->mask_dim[1] == 1 ? 1 : p->group;
	emit_grad_data(e, n, "g", TO_Q | TO_KV | TO_LAST);
	const struct emit_loop loop[] = {
		{"c", p->mask_dim[0], 1}, {"r", p->heads / p->group / heads, 1}};
	emit_loops(e, work_of(p, 5), 2, loop);
	emit(e, " {\n");
	emit_scratch(e, n, "\t\t\t");
	emit(e, "\t\t\treal *dmask = y%d + (c * %lld + r * %lld) * %lld;\n", attention_parts(p),
		(long long)p->mask_dim[1], planes, plane);
	emit(e, "\t\t\tfor (int64_t k = 0; k < %lld; k++)\n\t\t\t\tdmask[k] = 0;\n",
		planes * plane);
	emit(e, "\t\t\tfor (int64_t b = c; b < %lld; b += %lld)\n", (long long)p->batch,
		(long long)p->mask_dim[0]);
	emit(e, "\t\t\t\tfor (int64_t kv = r * %lld; kv < (r + 1) * %lld; kv++) {\n", heads, heads);
	emit(e, "\t\t\t\t\tattention_clear%s(&a, &g, b, kv, 0, %lld);\n", suffix(n->in[GRAD_Q]),
		(long long)p->tk);
	emit_over_queries(e, p, "\t\t\t\t\t");
	emit(e,
		"\t\t\t\t\t\t\tattention_block_grad%s(&a, &g, b, h, i, 0, %lld, w);\n"
		"\t\t\t\t}\n\t\t}\n",
		suffix(n->in[GRAD_Q]), (long long)p->tk);
}

/* As long as the threads find work, and the mask is small beside what it is to stand in memory
 * with.
 */
bool attention_joins(const struct graph *g, const struct attention *p)
{
	const int64_t tasks = mask_tasks(p), threads = g->target->threads;
	return !g->target->cuda && (tasks % threads == 0 || tasks >= 4 * threads) &&
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
	if (e->g->target->cuda)
		return attention_grad_cuda_emit(e, n);
	emit_grad_helpers(e, n);
	if (n->nout > attention_parts(p))
		emit_grad_masks(e, n);
	else if (by_heads(p, e->g->target->threads))
		emit_grad_heads(e, n);
	else
		emit_grad_blocks(e, n);
	return ST_OK;
}

/* The mask's gradient, summed over the batches and heads that share a value. */
enum status attention_mask_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const long long period = p->mask_dim[0], heads = p->heads, plane = p->tq * p->tk;
	const bool shared = p->mask_dim[1] == 1;
	if (e->g->target->cuda)
		return attention_mask_cuda_emit(e, n);
	emit_grad_helpers(e, n);
	emit_grad_data(e, n, "g", TO_MASK);
	const struct emit_loop loop[] = {
		{"c", period, 1}, {"r", shared ? 1 : heads, 1}, {"i", p->tq, grad_block(p)}};
	emit_loops(e, work_of(p, 2), 3, loop);
	emit(e, " {\n");
	emit_scratch(e, n, "\t\t\t\t");
	emit(e, "\t\t\t\tconst int64_t end = MIN(i + %lld, %lld);\n", (long long)grad_block(p),
		(long long)p->tq);
	emit(e, "\t\t\t\tfor (int64_t k = i * %lld; k < end * %lld; k++)\n", (long long)p->tk,
		(long long)p->tk);
	emit(e, "\t\t\t\t\ty0[(c * %lld + r) * %lld + k] = 0;\n", shared ? 1 : heads, plane);
	emit(e, "\t\t\t\tfor (int64_t b = c; b < %lld; b += %lld)\n", (long long)p->batch, period);
	emit(e, "\t\t\t\t\tfor (int64_t h = r; h < %lld; h += %lld)\n", heads, shared ? 1 : heads);
	emit(e, "\t\t\t\t\t\tattention_block_grad%s(&a, &g, b, h, i, 0, %lld, w);\n\t\t\t}\n",
		suffix(n->in[GRAD_Q]), (long long)p->tk);
	return ST_OK;
}

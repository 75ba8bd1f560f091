/* Attention's kernels for a GPU: the shape as a type that their functions are compiled for, the
 * tasks, and the launch. The functions are kernels/attention.cuh's; what tensor cores can do is
 * attention_tensor.c's. */
#include <stdio.h>

#include "ops/attention/attention_op.h"
#include "ops/dropout_op.h"

enum { TILE = 64, THREADS = 256, WIDEST = 128, LANES = 16 };

/* Parts of an axis of `width`, and how many times 16 columns one has. */
static int64_t parts_of(int64_t width)
{
	return max64(div_up(width, WIDEST), 1);
}

static int64_t columns_of(int64_t width, int64_t parts)
{
	return max64(div_up(width, parts * LANES), 1);
}

const struct call_struct *attention_cuda_shape(
	const struct attention *p, const struct attention_tiles *t, struct attention_traits *out)
{
	static const char *const strides[ATTENTION_TENSORS][3] = {
		{"q0", "q1", "q2"}, {"k0", "k1", "k2"}, {"v0", "v1", "v2"}, {"o0", "o1", "o2"}};
	static const char *const mask[4] = {"m0", "m1", "m2", "m3"};
	const bool noisy = p->ratio > 0;
	const struct call_field field[] = {{"batch", ARG_INT(p->batch)},
		{"heads", ARG_INT(p->heads)}, {"group", ARG_INT(p->group)}, {"tq", ARG_INT(p->tq)},
		{"tk", ARG_INT(p->tk)}, {"d", ARG_INT(p->d)}, {"dv", ARG_INT(p->dv)},
		{"tasks", ARG_INT(t->tasks)}, {"parts", ARG_INT(t->parts)},
		{"qtiles", ARG_INT(div_up(p->tq, t->rows))},
		{"ktiles", ARG_INT(div_up(p->tk, t->rows))},
		{"masked", ARG_INT(p->masked + p->mask_bool)}, {"period", ARG_INT(p->mask_dim[0])},
		{"mheads", ARG_INT(p->mask_dim[1] == 1 ? 1 : p->heads)},
		{"lower", ARG_INT(p->lower)}, {"upper", ARG_INT(p->upper)},
		{"capped", ARG_INT(p->softcap > 0)}, {"empty", ARG_INT((int)p->empty)},
		{"shifted", ARG_INT(t->shifted)}, {"noisy", ARG_INT(noisy)},
		{"node", ARG_INT(p->noise)}, {"shard", ARG_INT(noisy && t->shard)},
		{"keep_from", ARG_INT(noisy ? (int64_t)dropout_keep_from(p->ratio) : 0)},
		{"scale", ARG_REAL(p->scale)},
		{"cap", ARG_IF(p->softcap > 0, ARG_REAL(p->softcap))},
		{"keep", ARG_IF(noisy, ARG_REAL(1 / (1 - p->ratio)))}};
	int n = sizeof field / sizeof *field;
	memcpy(out->field, field, sizeof field);
	for (int i = 0; i < ATTENTION_TENSORS; i++)
		for (int k = 0; k < 3; k++)
			out->field[n++] = (struct call_field){
				strides[i][k], ARG_INT(p->stride[i][k])};
	for (int i = 0; i < 4; i++)
		out->field[n++] = (struct call_field){mask[i], ARG_INT(p->mask_stride[i])};
	for (int i = 0; i < t->nmore; i++)
		out->field[n++] = t->more[i];
	out->field[n] = (struct call_field){.name = NULL};
	out->s = (struct call_struct){"struct", "shape", out->field};
	return &out->s;
}

/* The mask of the template's type, or a pointer to nothing. */
static struct call_arg mask_of(const struct attention *p, int input)
{
	return p->masked ? ARG_X(input) : ARG_NAME("(const real *)0");
}

static struct call_arg control_of(const struct attention *p, int input)
{
	return p->ratio > 0 ? ARG_X(input) : ARG_NAME("(const int64_t *)0");
}

enum status attention_cuda_forward(struct emit *e, const struct node *n, struct kernel_call c)
{
	const struct attention *p = n->param;
	c.args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_X_AT(IN_Q, p->offset[0]),
		ARG_X_AT(IN_K, p->offset[1]), ARG_X_AT(IN_V, p->offset[2]), mask_of(p, IN_MASK),
		control_of(p, IN_CONTROL));
	return call_kernel(e, &c);
}

const struct call_struct *attention_cuda_given(const struct node *n, struct attention_given *out)
{
	const struct attention *p = n->param;
	const struct call_field field[] = {{"dy", ARG_X(GRAD_DY)},
		{"q", ARG_X_AT(GRAD_Q, p->offset[0])}, {"k", ARG_X_AT(GRAD_K, p->offset[1])},
		{"v", ARG_X_AT(GRAD_V, p->offset[2])}, {"y", ARG_X(GRAD_OUT)},
		{"lse", ARG_X(GRAD_LSE)},
		{"dlse", node_input(n, GRAD_DLSE) ? ARG_X(GRAD_DLSE) : ARG_NAME("(const real *)0")},
		{"mask", mask_of(p, GRAD_MASK)}, {"control", control_of(p, GRAD_CONTROL)},
		{.name = NULL}};
	memcpy(out->field, field, sizeof field);
	snprintf(out->type, sizeof out->type, "struct attention_given<%s, %s>",
		emit_type(n->in[GRAD_Q]), p->mask_bool ? "unsigned char" : "real");
	out->s = (struct call_struct){out->type, "g", out->field};
	return &out->s;
}

enum status attention_cuda_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const int64_t parts = parts_of(p->dv);
	struct attention_traits traits;
	if (attention_tensor_takes(p, n->in[IN_Q]))
		return attention_tensor_emit(e, n);
	const struct attention_tiles t = {.shard = e->g->shards_differ,
		.rows = TILE,
		.tasks = p->batch * p->heads * div_up(p->tq, TILE) * parts,
		.parts = parts};
	return attention_cuda_forward(e, n,
		(struct kernel_call){.file = "attention.cuh",
			.function = "attention_forward",
			.tasks = t.tasks,
			.threads = THREADS,
			.shared = {"attention_tile"},
			.traits = attention_cuda_shape(p, &t, &traits),
			.nconstant = 1,
			.constant = {columns_of(p->dv, parts)}});
}

enum status attention_grad_cuda_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const int64_t parts = parts_of(max64(p->d, p->dv));
	const int64_t keys = p->batch * (p->heads / p->group) * div_up(p->tk, TILE);
	const int64_t queries = p->batch * p->heads * div_up(p->tq, TILE);
	struct attention_traits traits;
	struct attention_given given;
	if (attention_tensor_takes(p, n->in[GRAD_Q]))
		return attention_tensor_grad_emit(e, n);
	const struct attention_tiles t = {.shard = e->g->shards_differ,
		.rows = TILE,
		.tasks = (keys + queries) * parts,
		.parts = parts,
		.shifted = node_input(n, GRAD_DLSE)};
	return call_kernel(
		e, &(struct kernel_call){.file = "attention.cuh",
			   .function = "attention_grad",
			   .tasks = t.tasks,
			   .threads = THREADS,
			   .shared = {"attention_tile"},
			   .traits = attention_cuda_shape(p, &t, &traits),
			   .nconstant = 2,
			   .constant = {columns_of(p->d, parts), columns_of(p->dv, parts)},
			   .args = CALL_ARGS(ARG_Y_AT(0, p->offset[0]),
				   ARG_Y_AT(p->packed ? 0 : 1, p->offset[1]),
				   ARG_Y_AT(p->packed ? 0 : 2, p->offset[2]),
				   ARG_STRUCT(attention_cuda_given(n, &given)))});
}

enum status attention_mask_cuda_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	struct attention_traits traits;
	struct attention_given given;
	const struct attention_tiles t = {.shard = e->g->shards_differ,
		.rows = TILE,
		.tasks = p->mask_dim[0] * p->mask_dim[1] * div_up(p->tq, TILE) *
			 div_up(p->tk, TILE),
		.parts = 1,
		.shifted = node_input(n, GRAD_DLSE)};
	return call_kernel(e,
		&(struct kernel_call){.file = "attention.cuh",
			.function = "attention_dmask",
			.tasks = t.tasks,
			.threads = THREADS,
			.shared = {"attention_tile"},
			.traits = attention_cuda_shape(p, &t, &traits),
			.args = CALL_ARGS(ARG_Y(0), ARG_STRUCT(attention_cuda_given(n, &given)))});
}

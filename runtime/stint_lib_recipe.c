/* SPDX-License-Identifier: MIT-0 */
/* Recipes: which primitive does a call, and what has to be copied for it.
 *
 * A call is one primitive between reorders: operands whose dense row-major layout is not the one
 * the primitive wants are copied into the workspace in its layout, and copied back from there.
 * The workspace is
 *
 *	scratchpad (the largest of the primitives') | copy of operand 0 | copy of operand 1 | ...
 *
 * each part 64-aligned. A convolution whose copies would be large runs over the batch in equal
 * parts, so that only a part is copied at once; the weight's gradient is then summed part by part,
 * in order. Only oneDNN's own kernels are taken ("brg...", "jit..."): measured on 2.6.3, one
 * execution of those allocates at most 7 blocks of 152 bytes (its table of arguments), for any
 * shape, while "gemm:jit", "x64:gemm:jit" and the reference kernels allocate packing buffers (16
 * KiB to 460 KiB a thread) in every call. */
#include "stint_lib_recipe.h"

#include <string.h>

#include "stint_lib.h"

static dnnl_data_type_t type_of(int types, int bit)
{
	return types & bit ? dnnl_bf16 : dnnl_f32;
}

static dnnl_status_t dense(
	dnnl_memory_desc_t *md, int rank, const dnnl_dim_t *dim, dnnl_data_type_t type)
{
	dnnl_dims_t stride, d;
	dnnl_dim_t s = 1;
	for (int i = rank - 1; i >= 0; i--) {
		d[i] = dim[i];
		stride[i] = s;
		s *= dim[i];
	}
	return dnnl_memory_desc_init_by_strides(md, rank, d, type, stride);
}

/* Any layout: the primitive's choice. */
static dnnl_status_t any(dnnl_memory_desc_t *md, const dnnl_memory_desc_t *like)
{
	return dnnl_memory_desc_init_by_tag(
		md, like->ndims, like->dims, like->data_type, dnnl_format_tag_any);
}

/* The kernels that do not allocate: see above. */
static int implementation_taken(const_dnnl_primitive_desc_t pd)
{
	const char *name = NULL;
	return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success &&
	       name && (strncmp(name, "brg", 3) == 0 || strncmp(name, "jit", 3) == 0) &&
	       !strstr(name, "gemm:");
}

/* The attributes of what adds to what is there. */
static dnnl_status_t adding_make(struct recipe *r)
{
	dnnl_post_ops_t ops;
	dnnl_status_t st = dnnl_primitive_attr_clone(&r->adding, r->attr);
	if (!st)
		st = dnnl_post_ops_create(&ops);
	if (st)
		return st;
	st = dnnl_post_ops_append_sum(ops, 1);
	if (!st)
		st = dnnl_primitive_attr_set_post_ops(r->adding, ops);
	dnnl_post_ops_destroy(ops);
	return st;
}

/* --- matmul --- */

/* A batch of r by c matrices, stored transposed or not, or one for the whole batch. */
static dnnl_status_t matrices(dnnl_memory_desc_t *md, int batched, int64_t b, int64_t r, int64_t c,
	int transposed, dnnl_data_type_t type)
{
	dnnl_dims_t dim = {b, r, c}, stride = {r * c, transposed ? 1 : c, transposed ? r : 1};
	return dnnl_memory_desc_init_by_strides(
		md, batched ? 3 : 2, dim + !batched, type, stride + !batched);
}

static dnnl_status_t recipe_matmul(struct recipe *r, const struct stint_product *p, int types)
{
	const int64_t b = p->batch, m = p->m, n = p->n, k = p->k;
	const int batched = b > 1, bias = p->extra == STINT_PRODUCT_BIAS;
	const int adds = p->extra == STINT_PRODUCT_ADD;
	struct operand *o = r->operand;
	dnnl_matmul_desc_t d;
	if (!bias && !adds && p->extra != STINT_PRODUCT_PLAIN)
		return dnnl_unimplemented;
	r->noperand = bias ? 4 : 3;
	o[0].arg = DNNL_ARG_SRC;
	o[1].arg = DNNL_ARG_WEIGHTS;
	o[2].arg = DNNL_ARG_BIAS;
	struct operand *y = &o[r->noperand - 1];
	y->arg = DNNL_ARG_DST;
	y->output = 1;
	dnnl_status_t st = matrices(&o[0].plain, batched, p->each0 ? b : 1, m, k, p->t0,
		type_of(types, STINT_X0_NARROW));
	if (!st)
		st = matrices(&o[1].plain, batched, p->each1 ? b : 1, k, n, p->t1,
			type_of(types, STINT_X1_NARROW));
	if (!st && bias)
		st = matrices(&o[2].plain, batched, 1, 1, n, 0, dnnl_f32);
	if (!st)
		st = matrices(&y->plain, batched, b, m, n, 0, type_of(types, STINT_Y0_NARROW));
	if (!st)
		st = dnnl_matmul_desc_init(
			&d, &o[0].plain, &o[1].plain, bias ? &o[2].plain : NULL, &y->plain);
	if (!st && adds)
		st = adding_make(r);
	if (!st)
		st = dnnl_primitive_desc_create(
			&r->main, &d, adds ? r->adding : r->attr, r->engine, NULL);
	r->begin = adds ? dnnl_memory_desc_get_size(&y->plain) : 0;
	for (int i = 0; i < r->noperand; i++)
		o[i].used = o[i].plain;
	return st;
}

/* --- convolution --- */

struct conv {
	dnnl_memory_desc_t x, w, b, y; /* as the call has them */
	dnnl_dims_t stride, dilation, before, after;
	int bias;
	int keep_x; /* x as it is: the first layer's few channels */
	dnnl_alg_kind_t algorithm;
};

int stint_lib_block(void)
{
	const unsigned isa = dnnl_get_effective_cpu_isa();
	const unsigned avx512 = dnnl_cpu_isa_avx512_core, avx2 = dnnl_cpu_isa_avx2;
	return (isa & avx512) == avx512 ? 16 : (isa & avx2) == avx2 ? 8 : 0;
}

/* [N, C, ...] stored as [N, C/B, ..., B]. */
static dnnl_status_t in_blocks(
	dnnl_memory_desc_t *md, int rank, const dnnl_dim_t *dim, dnnl_data_type_t type)
{
	const int wide = stint_lib_block() == 16;
	const dnnl_format_tag_t tag = rank == 4 ? (wide ? dnnl_nChw16c : dnnl_nChw8c)
						: (wide ? dnnl_nCdhw16c : dnnl_nCdhw8c);
	return dnnl_memory_desc_init_by_tag(md, rank, dim, type, tag);
}

/* Which types x, the weight and y have: operand 0, operand 1 and the result, in another order for
 * each kind. */
struct conv_types {
	dnnl_data_type_t x, w, y;
};

static struct conv_types conv_types_of(const struct stint_lib_call *call)
{
	const dnnl_data_type_t first = type_of(call->types, STINT_X0_NARROW),
			       second = type_of(call->types, STINT_X1_NARROW),
			       result = type_of(call->types, STINT_Y0_NARROW);
	return call->kind == STINT_CALL_CONV_FORWARD ? (struct conv_types){first, second, result}
	       : call->kind == STINT_CALL_CONV_DATA  ? (struct conv_types){result, second, first}
						     : (struct conv_types){first, result, second};
}

static dnnl_status_t conv_describe(struct conv *c, const struct stint_lib_call *call)
{
	const struct conv_types type = conv_types_of(call);
	const struct stint_convolution *s = &call->conv;
	const int grouped = s->groups > 1;
	dnnl_dims_t x = {s->n, s->c}, y = {s->n, s->k}, w = {s->k, s->c};
	if (grouped) {
		w[0] = s->groups;
		w[1] = s->k / s->groups;
		w[2] = s->c / s->groups;
	}
	for (int i = 0; i < s->axes; i++) {
		x[2 + i] = s->size[i];
		y[2 + i] = s->out[i];
		w[2 + grouped + i] = s->kernel[i];
		c->stride[i] = s->stride[i];
		c->dilation[i] = s->dilation[i] - 1;
		c->before[i] = s->before[i];
		/* Positions after the last window do not count. */
		const dnnl_dim_t span = (s->out[i] - 1) * s->stride[i] +
					(s->kernel[i] - 1) * s->dilation[i] + 1;
		c->after[i] = span - s->size[i] - s->before[i];
	}
	c->bias = s->bias;
	c->algorithm = s->way == STINT_CONV_DIRECT ? dnnl_convolution_direct
						   : dnnl_convolution_winograd;
	dnnl_status_t st = (s->x_blocked ? in_blocks : dense)(&c->x, 2 + s->axes, x, type.x);
	if (!st)
		st = dense(&c->w, 2 + grouped + s->axes, w, type.w);
	if (!st)
		st = dense(&c->b, 1, &s->k, dnnl_f32);
	return st ? st : (s->y_blocked ? in_blocks : dense)(&c->y, 2 + s->axes, y, type.y);
}

static dnnl_status_t conv_desc(
	dnnl_convolution_desc_t *d, struct conv *c, enum stint_call_kind kind)
{
	const dnnl_alg_kind_t alg = c->algorithm;
	dnnl_memory_desc_t x = c->x, w, y;
	dnnl_status_t st = c->keep_x ? dnnl_success : any(&x, &c->x);
	if (!st)
		st = any(&w, &c->w);
	if (!st)
		st = any(&y, &c->y);
	if (st)
		return st;
	if (kind == STINT_CALL_CONV_DATA)
		return dnnl_dilated_convolution_backward_data_desc_init(
			d, alg, &x, &w, &y, c->stride, c->dilation, c->before, c->after);
	if (kind == STINT_CALL_CONV_WEIGHT)
		return dnnl_dilated_convolution_backward_weights_desc_init(
			d, alg, &x, &w, NULL, &y, c->stride, c->dilation, c->before, c->after);
	return dnnl_dilated_convolution_forward_desc_init(d, dnnl_forward_training, alg, &x, &w,
		c->bias ? &c->b : NULL, &y, c->stride, c->dilation, c->before, c->after);
}

static void operand_set(struct recipe *r, int arg, int output, const dnnl_memory_desc_t *plain,
	dnnl_query_t what, int index)
{
	struct operand *o = &r->operand[r->noperand++];
	const dnnl_memory_desc_t *used = dnnl_primitive_desc_query_md(r->main, what, index);
	o->batched = arg == DNNL_ARG_SRC || arg == DNNL_ARG_DST || arg == DNNL_ARG_DIFF_SRC ||
		     arg == DNNL_ARG_DIFF_DST;
	o->part = o->batched ? dnnl_memory_desc_get_size(plain) : 0;
	o->arg = arg;
	o->output = output;
	o->plain = *plain;
	o->used = used ? *used : *plain;
}

/* Images a round: the most that divide the batch and whose copies, channels rounded up to blocks of
 * 16, stay within a MiB a thread. */
static int64_t conv_part(const struct stint_convolution *s, int threads)
{
	double x = s->x_blocked ? 0 : (double)((s->c + 15) / 16 * 16);
	double y = s->y_blocked ? 0 : (double)((s->k + 15) / 16 * 16);
	for (int i = 0; i < s->axes; i++) {
		x *= (double)s->size[i];
		y *= (double)s->out[i];
	}
	int64_t part = s->n;
	while (part > 1 && (s->n % part != 0 || (double)part * (x + y) * 4 > 1048576.0 * threads))
		part--;
	return part;
}

static dnnl_status_t conv_primitive(struct recipe *r, struct conv *c, enum stint_call_kind kind)
{
	dnnl_convolution_desc_t d;
	dnnl_status_t st = dnnl_success;
	if (kind != STINT_CALL_CONV_FORWARD) {
		/* A backward primitive takes the forward one as a hint: one that there is, all
		 * narrow where a part is. */
		struct conv hint = *c;
		c->bias = hint.bias = 0;
		if (c->x.data_type == dnnl_bf16 || c->y.data_type == dnnl_bf16)
			hint.x.data_type = hint.w.data_type = hint.y.data_type = dnnl_bf16;
		st = conv_desc(&d, &hint, STINT_CALL_CONV_FORWARD);
		if (!st)
			st = dnnl_primitive_desc_create(&r->hint, &d, r->attr, r->engine, NULL);
	}
	if (!st)
		st = conv_desc(&d, c, kind);
	return st ? st : dnnl_primitive_desc_create(&r->main, &d, r->attr, r->engine, r->hint);
}

static void conv_operands(struct recipe *r, const struct conv *c, enum stint_call_kind kind)
{
	if (kind == STINT_CALL_CONV_FORWARD) {
		operand_set(r, DNNL_ARG_SRC, 0, &c->x, dnnl_query_src_md, 0);
		operand_set(r, DNNL_ARG_WEIGHTS, 0, &c->w, dnnl_query_weights_md, 0);
		if (c->bias)
			operand_set(r, DNNL_ARG_BIAS, 0, &c->b, dnnl_query_weights_md, 1);
		operand_set(r, DNNL_ARG_DST, 1, &c->y, dnnl_query_dst_md, 0);
	} else if (kind == STINT_CALL_CONV_DATA) {
		operand_set(r, DNNL_ARG_DIFF_DST, 0, &c->y, dnnl_query_diff_dst_md, 0);
		operand_set(r, DNNL_ARG_WEIGHTS, 0, &c->w, dnnl_query_weights_md, 0);
		operand_set(r, DNNL_ARG_DIFF_SRC, 1, &c->x, dnnl_query_diff_src_md, 0);
	} else {
		operand_set(r, DNNL_ARG_SRC, 0, &c->x, dnnl_query_src_md, 0);
		operand_set(r, DNNL_ARG_DIFF_DST, 0, &c->y, dnnl_query_diff_dst_md, 0);
		operand_set(r, DNNL_ARG_DIFF_WEIGHTS, 1, &c->w, dnnl_query_diff_weights_md, 0);
	}
}

static void recipe_forget(struct recipe *r)
{
	if (r->main)
		dnnl_primitive_desc_destroy(r->main);
	if (r->hint)
		dnnl_primitive_desc_destroy(r->hint);
	r->main = r->hint = NULL;
	r->noperand = 0;
}

/* For so many images at once. An x of few channels is read as it is where the library can. */
static dnnl_status_t conv_try(struct recipe *r, struct stint_lib_call call, int64_t images)
{
	struct stint_convolution *s = &call.conv;
	struct conv c = {0};
	r->rounds = images ? (int)(s->n / images) : 1;
	s->n = images;
	dnnl_status_t st = conv_describe(&c, &call);
	if (st)
		return st;
	c.keep_x = s->groups == 1 && s->c < 8 && !s->x_blocked;
	st = conv_primitive(r, &c, call.kind);
	if (c.keep_x && (st || !implementation_taken(r->main))) {
		recipe_forget(r);
		c.keep_x = 0;
		st = conv_primitive(r, &c, call.kind);
	}
	if (!st)
		conv_operands(r, &c, call.kind);
	return st;
}

/* All images at once, unless they are to be halved or would have to be copied. */
static dnnl_status_t recipe_conv(struct recipe *r, const struct stint_lib_call *call, int threads)
{
	const struct stint_convolution *s = &call->conv;
	const int halves = s->way == STINT_CONV_HALVES;
	int copied = 0;
	if (s->axes < 2 || s->axes > 3 || s->last || (halves && (s->n < 2 || s->n % 2)))
		return dnnl_unimplemented;
	dnnl_status_t st = conv_try(r, *call, halves ? s->n / 2 : s->n);
	for (int i = 0; i < r->noperand; i++)
		copied |= r->operand[i].batched &&
			  !dnnl_memory_desc_equal(&r->operand[i].plain, &r->operand[i].used);
	const int64_t part = conv_part(s, threads);
	if (st || halves || !copied || part == s->n)
		return st;
	recipe_forget(r);
	return conv_try(r, *call, part);
}

/* --- recipes --- */

void recipe_free(struct recipe *r)
{
	for (int i = 0; i < MAX_OPERAND; i++)
		if (r->operand[i].reorder)
			dnnl_primitive_desc_destroy(r->operand[i].reorder);
	recipe_forget(r);
	if (r->attr)
		dnnl_primitive_attr_destroy(r->attr);
	if (r->adding)
		dnnl_primitive_attr_destroy(r->adding);
	if (r->engine)
		dnnl_engine_destroy(r->engine);
	memset(r, 0, sizeof *r);
}

size_t scratch_of(const_dnnl_primitive_desc_t pd)
{
	const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(
		pd, dnnl_query_scratchpad_md, 0);
	return md ? dnnl_memory_desc_get_size(md) : 0;
}

static size_t aligned(size_t n)
{
	return (n + 63) / 64 * 64;
}

int operand_adds(const struct recipe *r, const struct operand *o)
{
	return o->output && r->rounds > 1 && !o->batched;
}

/* Reorders, and the workspace's layout. */
static dnnl_status_t recipe_place(struct recipe *r)
{
	size_t scratch = scratch_of(r->main);
	for (int i = 0; i < r->noperand; i++) {
		struct operand *o = &r->operand[i];
		const int adds = operand_adds(r, o);
		o->copied = adds || !dnnl_memory_desc_equal(&o->plain, &o->used);
		if (!o->copied)
			continue;
		if (adds && adding_make(r))
			return dnnl_out_of_memory;
		const dnnl_memory_desc_t *from = o->output ? &o->used : &o->plain;
		const dnnl_memory_desc_t *to = o->output ? &o->plain : &o->used;
		dnnl_status_t st = dnnl_reorder_primitive_desc_create(
			&o->reorder, from, r->engine, to, r->engine, adds ? r->adding : r->attr);
		if (st)
			return st;
		if (scratch_of(o->reorder) > scratch)
			scratch = scratch_of(o->reorder);
	}
	r->workspace = aligned(scratch);
	for (int i = 0; i < r->noperand; i++)
		if (r->operand[i].copied) {
			r->operand[i].offset = r->workspace;
			r->workspace += aligned(dnnl_memory_desc_get_size(&r->operand[i].used));
		}
	return dnnl_success;
}

int recipe_make(struct recipe *r, const struct stint_lib_call *call, int threads)
{
	memset(r, 0, sizeof *r);
	r->rounds = 1;
	dnnl_status_t st = dnnl_engine_create(&r->engine, dnnl_cpu, 0);
	if (!st)
		st = dnnl_primitive_attr_create(&r->attr);
	if (!st)
		st = dnnl_primitive_attr_set_scratchpad_mode(r->attr, dnnl_scratchpad_mode_user);
	if (st)
		return -1;
	st = call->kind == STINT_CALL_PRODUCT ? recipe_matmul(r, &call->product, call->types)
					      : recipe_conv(r, call, threads);
	if (st || !implementation_taken(r->main))
		return -1;
	return recipe_place(r) ? -1 : 0;
}

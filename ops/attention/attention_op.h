/* Scaled-dot-product attention: what the files of the family share. Private to ops/.
 *
 * stint.Attention(q, k, v [, mask]) -> out, lse: softmax(scale q kᵀ + mask) v for every batch and
 * head, without the matrix of scores (Dao et al., "FlashAttention", 2022; Milakov and Gimelshein,
 * "Online normalizer calculation for softmax", 2018). The shapes, with T tokens, H heads of q and
 * G of k and v, where G divides H:
 *
 *	q [B,H,Tq,D]  k [B,G,Tk,D]  v [B,G,Tk,Dv]  out [B,H,Tq,Dv]  lse [B,H,Tq]
 *	mask broadcasts to [B,H,Tq,Tk]: real, added to the scores; boolean, false is -infinity. Its
 *	batch axis may also be a divisor P of B: batch b takes row b mod P.
 *
 * lse is the logarithm of the sum of the row's exponentials: what the gradient rebuilds them from.
 *
 * Attributes: scale (1), softcap c (0: none): a score s becomes c tanh(s / c) before the mask;
 * lower and upper (none): query i sees keys j with lower <= j - i <= upper only; `layout`, for
 * each of q, k, v, out how it is stored: enum attention_layout; `empty`: enum empty_row.
 *
 * Where q, k and v are parts of one tensor, it stands for all three, in any shape, and attributes
 * say where they lie: place_q, place_k and place_v, each an offset and the strides of batch, head
 * and token; sizes, which are B, H, G, Tq, Tk, D and Dv.
 *
 * Dropout of the probabilities is part of it: `ratio`, `active` and `noise` say what the Dropout
 * node `dropout` of the model says (struct dropout). A lowered node drops out where it reads the
 * control tensor, the very elements that the Dropout node would. */
#ifndef STINT_OPS_ATTENTION_OP_H
#define STINT_OPS_ATTENTION_OP_H

#include "ops/data.h"

/* What a row gives that sees no key: all its scores are -infinity. */
enum empty_row {
	EMPTY_NAN,  /* NaN, as softmax does */
	EMPTY_ZERO, /* zeros */
	/* zeros, and so does any row that softmax would make NaN: Softmax, IsNaN, Where */
	EMPTY_NAN_ZERO,
};

enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_OUT, ATTENTION_TENSORS };

/* In which order a tensor's axes are stored; the last, D, is always dense. */
enum attention_layout {
	LAYOUT_BHT,
	LAYOUT_BTH,
	LAYOUT_TBH,
	LAYOUT_HBT,
	LAYOUT_THB,
	LAYOUT_HTB,
	LAYOUT_COUNT
};
enum { AXIS_BATCH, AXIS_HEAD, AXIS_TOKEN, AXIS_WIDTH, AXES };
enum { PLACE = 4, SIZES = 7 }; /* numbers of the attributes place_q, ..., and sizes */
/* Where batch, head and token stand among the four axes. */
extern const int attention_axes[LAYOUT_COUNT][3];

struct attention {
	int64_t batch, heads, group; /* group: heads of q that share one of k and v */
	int64_t tq, tk, d, dv;
	int64_t stride[ATTENTION_TENSORS][3]; /* of batch, head, token; the last axis is dense */
	bool packed;                   /* q, k and v are one tensor, and so is their gradient */
	int64_t offset[ATTENTION_OUT]; /* of the first element of q, k, v */
	bool masked, mask_bool;
	int64_t mask_dim[4], mask_stride[4]; /* stride 0 where it broadcasts */
	int64_t lower, upper;                /* -tq and tk where there is no bound */
	double scale, softcap;
	enum empty_row empty;
	enum attention_layout layout[ATTENTION_TENSORS];
	double ratio;  /* of a dropout; 0: none */
	int64_t noise; /* whose random numbers */
};

/* Inputs of stint.Attention by position, and those of its gradients. */
enum { IN_Q, IN_K, IN_V, IN_MASK, IN_CONTROL };
enum { GRAD_DY, GRAD_Q, GRAD_K, GRAD_V, GRAD_OUT, GRAD_LSE, GRAD_MASK, GRAD_CONTROL, GRAD_DLSE };

/* Outputs of the gradient: those of q, k and v, or of the tensor that they are parts of. The mask's
 * may follow them. */
static inline int attention_parts(const struct attention *p)
{
	return p->packed ? 1 : 3;
}

/* attention_emit.c */
/* Whether one kernel should give the mask's gradient too: then a task has all that shares a mask.
 */
bool attention_joins(const struct graph *g, const struct attention *p);
enum status attention_emit(struct emit *e, const struct node *n);
int64_t attention_workspace(const struct node *n, const struct target *t);
enum status attention_grad_emit(struct emit *e, const struct node *n);
int64_t attention_grad_workspace(const struct node *n, const struct target *t);
enum status attention_mask_emit(struct emit *e, const struct node *n);

/* attention_cuda.c: the same for a GPU. */
enum status attention_cuda_emit(struct emit *e, const struct node *n);
enum status attention_grad_cuda_emit(struct emit *e, const struct node *n);
enum status attention_mask_cuda_emit(struct emit *e, const struct node *n);

/* What they share. Tiles of `rows` queries, or keys; `more`: fields of the shape that are a
 * kernel's own. */
enum { ATTENTION_FIELDS = 56 };
struct attention_tiles {
	int rows, nmore;
	int64_t tasks, parts;
	bool shifted; /* the gradient of lse is given */
	bool shard;   /* micro-batches differ */
	const struct call_field *more;
};
struct attention_traits {
	struct call_field field[ATTENTION_FIELDS];
	struct call_struct s;
};
const struct call_struct *attention_cuda_shape(
	const struct attention *p, const struct attention_tiles *t, struct attention_traits *out);
/* `c` with the forward kernels' arguments. */
enum status attention_cuda_forward(struct emit *e, const struct node *n, struct kernel_call c);
/* What a gradient reads: kernels' `struct attention_given`. */
struct attention_given {
	struct call_field field[10];
	struct call_struct s;
	char type[64];
};
const struct call_struct *attention_cuda_given(const struct node *n, struct attention_given *out);

/* attention_tensor.c: on tensor cores. */
/* Whether its texts can do it, where q is `t`; else attention_cuda.c's do. */
bool attention_tensor_takes(const struct attention *p, const struct tensor *t);
enum status attention_tensor_emit(struct emit *e, const struct node *n);
enum status attention_tensor_grad_emit(struct emit *e, const struct node *n);
/* Scratch of the gradient: a real number for each query. */
int64_t attention_tensor_workspace(const struct node *n, const struct target *t);

/* attention_onnx.c: ONNX's operator. */
enum status attention_onnx_infer(struct graph *g, struct node *n);
enum status attention_onnx_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out);

/* Brings q, k and v to where they are stored, if they are parts of one tensor: replaces the three
 * inputs and adds PACK_ATTRS attributes. */
enum status attention_lower_parts(
	struct graph *g, struct tensor **in, struct attr *attr, int *nattr);

/* attention_match.c */
enum status attention_match(struct graph *g, const struct node *n, struct tensor **replace);

#endif

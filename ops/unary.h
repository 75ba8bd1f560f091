/* What files of functions of one input are written with: activation.c, rounding.c, trigonometry.c.
 */
#ifndef STINT_OPS_UNARY_H
#define STINT_OPS_UNARY_H

#include "ops/data.h"

/* Gradients that read (dy, y) or (dy, x), and have the node's options. */
#define RULE(id, op, other)                                                                        \
	static enum status id##_rule(struct graph *g, const struct node *n,                        \
		struct tensor *const *dy, const bool *want, struct tensor **dx)                    \
	{                                                                                          \
		(void)want;                                                                        \
		dx[0] = graph_op(                                                                  \
			g, op, 2, (struct tensor *[]){dy[0], n->other[0]}, n->nattr, n->attr);     \
		return g->failed;                                                                  \
	}

/* A gradient with a text of its own, id_grad, on dy (a) and the other (b); and its rule. */
#define SLOPE(id, op, other, text)                                                                 \
	static const char id##_grad_expr[] = #text;                                                \
	POINTWISE_REF(id##_grad, text, )                                                           \
	RULE(id, op, other)
#define SLOPE_OPT1(id, op, other, o0, text)                                                        \
	static const char id##_grad_expr[] = #text;                                                \
	POINTWISE_REF(id##_grad, text, const double o0 = option[0])                                \
	RULE(id, op, other)
#define SLOPE_OPT2(id, op, other, o0, o1, text)                                                    \
	static const char id##_grad_expr[] = #text;                                                \
	POINTWISE_REF(id##_grad, text, const double o0 = option[0]; const double o1 = option[1])   \
	RULE(id, op, other)

#define ANY EXAMPLES({.in = "a,B"}, {.in = "2,3,7,5"}, {.in = "1"})
#define POSITIVE EXAMPLES({.in = "a,B", .low = 0.3, .high = 2}, {.in = "33", .low = 0.3, .high = 2})
#define NOT_ZERO                                                                                   \
	EXAMPLES({.in = "a,B", .low = 0.2, .high = 2}, {.in = "33", .low = -2, .high = -0.2})

#define UNARY(onnx, first, id, ...)                                                                \
	{                                                                                          \
		.name = onnx, .since = first, .min_in = 1, .traits = OP_POINTWISE,                 \
		.expr = id##_expr, .ref = id##_ref, .grad = id##_rule, __VA_ARGS__                 \
	}
#define GRADIENT(ours, id, ...)                                                                    \
	{                                                                                          \
		.name = ours, .min_in = 2, .traits = OP_POINTWISE, .expr = id##_expr,              \
		.ref = id##_ref, __VA_ARGS__                                                       \
	}

#endif

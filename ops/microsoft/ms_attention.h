/* What ONNX Runtime's kinds of attention share. */
#ifndef STINT_OPS_MS_ATTENTION_H
#define STINT_OPS_MS_ATTENTION_H

#include "ops/microsoft/ms.h"

/* What is to be attended to. */
struct attend {
	struct tensor *q, *k, *v; /* all of three axes, or all of four, heads first */
	/* end: of each sample's keys; queries then stand at the end */
	struct tensor *mask, *past_k, *past_v, *end;
	int64_t heads, kv;
	bool causal;
	int64_t left; /* keys before a query's own that it sees; -1: all */
	int scores;   /* qk_matmul_output_mode */
	double softcap;
};

/* ONNX's node, with as many outputs; NULL: failed. */
struct node *ms_attend(struct expansion *x, const struct attend *a, int nout);
/* Attribute `scale`; 0: as the width has it. */
double ms_scale(const struct node *n);
/* The number of heads that an attribute tells. */
enum status ms_heads(const struct expansion *x, const char *name, int64_t *out);
/* Report what is not supported. */
enum status ms_refuse(const struct expansion *x, const char *hint, const char *what);
/* The hint for a past that is more than tensors to join. */
extern const char ms_no_cache[];

/* [B,T,heads * D] as [B,heads,T,D], and back. */
struct tensor *ms_heads_first(struct graph *g, struct tensor *t, int64_t heads);
struct tensor *ms_heads_last(struct graph *g, struct tensor *t);
/* 0, 1, ... n - 1 */
struct tensor *ms_counting(struct graph *g, int64_t n);
/* `first`, one number, and what follows it: [1,count]. */
struct tensor *ms_from(struct graph *g, struct tensor *first, int64_t count);
/* Keys of each sample in [start, end), of `count`: [B,1,1,count]. start NULL: 0. */
struct tensor *ms_keys_between(
	struct graph *g, int64_t count, struct tensor *start, struct tensor *end);
/* Parts of t along its last axis, which is as long as all of them. */
enum status ms_parts(
	struct expansion *x, struct tensor *t, int n, const int64_t *size, struct tensor ***out);
/* t, [B,S,heads * D] or [B,heads,S,D], turned by the rows of two tables at `place`, [B,S] or
 * [1,S]; of each head the first `turned` values, 0: all. */
struct tensor *ms_rotated(struct expansion *x, struct tensor *t, int64_t heads, int64_t turned,
	bool interleaved, struct tensor *place, struct tensor *const table[2]);

#endif

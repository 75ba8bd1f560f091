/* Recognising attention that is spelled out. Private to ops/. */
#ifndef STINT_OPS_ATTENTION_MATCH_H
#define STINT_OPS_ATTENTION_MATCH_H

#include "ops/attention/attention_op.h"
#include "ops/match.h"
#include "ops/product/gemm_op.h"

/* --- attention_view.c --- */

enum { VIEW_ATOMS = 8 };

/* n elements, `stride` apart in a dense tensor. */
struct atom {
	int64_t n, stride;
};

/* An operand's axes as walks over the elements of `base`, outer before inner. */
struct view {
	struct tensor *base;
	int64_t size[AXES];
	int count[AXES];
	struct atom atom[AXES][VIEW_ATOMS];
	int64_t offset; /* of the first element, in `base` */
	double scale;   /* that was taken out on the way */
};

/* A view as the kernel reads it: `base` with the shape `dim`. */
struct view_read {
	struct tensor *base;
	int64_t dim[AXES], group;
	enum attention_layout layout;
	double scale;
};

struct view view_begin(struct tensor *t, const int64_t size[AXES], const int order[AXES]);
bool view_transpose(struct view *v, const struct node *n, bool forward);
/* One node further back; false where that is not possible. */
bool view_back(struct view *v, bool scaled);
bool view_settle(const struct view *v, struct view_read *out);
/* The furthest tensor behind a view that the kernel can read; `scaled`: scalings may be taken out;
 * `grouped`: heads may share. */
bool view_find(struct view v, bool scaled, bool grouped, struct view_read *out);

/* --- attention_pack.c --- */

/* `base` where q, k and v (in `layout`) are parts of it that together are all of it; NULL: they are
 * not. `attr` then says where they lie (attention_op.h). */
enum { PACK_ATTRS = 4 };
struct tensor *attention_pack(struct graph *g, struct tensor *const *in, const int64_t *layout,
	struct attr attr[PACK_ATTRS]);

/* --- attention_scores.c --- */

enum { MATCH_TERMS = 6 };

/* Scores as they go into the softmax. */
struct scores {
	const struct node *product; /* the MatMul of q and transposed k */
	double scale, softcap;
	struct tensor *head_scale; /* NULL, or what each head's scores are multiplied with */
	int nterm;
	struct term {
		struct tensor *t; /* added, or, where DT_BOOL, false is -infinity */
		bool negate;      /* true is */
	} term[MATCH_TERMS];
};

/* A constant of any shape with one value. */
bool match_uniform(const struct tensor *t, double *v);
/* Reads what goes into a softmax, down to the product of q and k. False: it is something else. */
bool scores_read(struct graph *g, struct tensor *t, struct scores *s);

/* Terms as the kernel takes them. */
struct mask {
	struct tensor *t; /* NULL: none */
	int64_t lower, upper;
	bool bounded; /* lower and upper hold */
};
/* size: batch, heads, queries, keys. False: there is no such mask. */
bool scores_mask(struct graph *g, const struct scores *s, const int64_t size[4], struct mask *m);

#endif

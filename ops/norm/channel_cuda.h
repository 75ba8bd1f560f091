/* Sums over all values of a channel, on a GPU: how x is cut among blocks, and the calls. In a
 * first stage blocks sum parts of x, in a second one the parts' sums meet in their order. Private
 * to ops/. */
#ifndef STINT_OPS_CHANNEL_CUDA_H
#define STINT_OPS_CHANNEL_CUDA_H

#include "codegen/call.h"
#include "ops/data.h"

/* x as [images, groups, inner, width], of channels [groups, width]. */
struct channel_split {
	int64_t images, groups, inner, width;
	/* Where width is 1 a part is so many images, or so many elements of one. */
	int64_t take, slice, slices;
	/* Else it is `slice` of the images * inner rows, and a block has 4 * lanes columns. */
	int64_t strips;
	int lanes;
	int64_t parts, tasks;
	int pack; /* elements that a thread loads at once, where all rows begin aligned to them */
	bool packed;
};

struct channel_split channel_split(
	int64_t images, int64_t groups, int64_t inner, int64_t width, bool narrow);
/* Of the scratch `ws`: two doubles for each part and channel. */
int64_t channel_split_bytes(const struct channel_split *s);
/* The shape as the kernels' type, with `more` fields (NULL: none; ended as CALL_FIELDS are). */
enum { CHANNEL_FIELDS = 12, CHANNEL_MORE = 4 };
struct channel_traits {
	struct call_field field[CHANNEL_FIELDS + CHANNEL_MORE];
	struct call_struct s;
};
const struct call_struct *channel_shape(
	const struct channel_split *s, const struct call_field *more, struct channel_traits *out);
/* The calls of the two stages: `c` but for its launch and its shared memory. */
enum status channel_first_stage(
	struct emit *e, const struct channel_split *s, struct kernel_call c);
enum status channel_last_stage(struct emit *e, int64_t channels, struct kernel_call c);

/* Struct norm's and struct batchnorm's nodes. */
/* The gradients of scale and bias become outputs number `first` and the next. */
enum status norm_scale_cuda_stages(struct emit *e, const struct node *n, int first);
int64_t norm_scale_cuda_workspace(const struct node *n, const struct target *t);
enum status batchnorm_stats_cuda_emit(struct emit *e, const struct node *n);
enum status batchnorm_sums_cuda_emit(struct emit *e, const struct node *n);
int64_t batchnorm_cuda_workspace(const struct node *n, const struct target *t);

#endif

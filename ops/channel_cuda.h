/* Sums over all values of a channel, on a GPU: how x is cut among blocks, and their texts. In a
 * first stage blocks sum parts of x, in a second one the parts' sums meet in their order. Private
 * to ops/. */
#ifndef STINT_OPS_CHANNEL_CUDA_H
#define STINT_OPS_CHANNEL_CUDA_H

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
/* "struct shape", with `more` enumerators ("" or ", a = 1"), and the helpers' texts. */
void channel_split_emit(struct emit *e, const struct channel_split *s, const char *more);
/* The launches of the two stages; shared memory is "room" in both. */
void channel_first_stage(struct emit *e, const struct channel_split *s);
void channel_last_stage(struct emit *e, const struct channel_split *s);

/* Texts of CUDA kernels; struct norm's and struct batchnorm's nodes. */
/* The gradients of scale and bias become outputs number `first` and the next. */
enum status norm_scale_cuda_stages(struct emit *e, const struct node *n, int first);
int64_t norm_scale_cuda_workspace(const struct node *n);
enum status batchnorm_stats_cuda_emit(struct emit *e, const struct node *n);
enum status batchnorm_sums_cuda_emit(struct emit *e, const struct node *n);
int64_t batchnorm_cuda_workspace(const struct node *n);

#endif

/* SPDX-License-Identifier: MIT-0 */
/* What the losses of classes share (labels.h), by one block of 256 threads. */
#ifndef STINT_KERNELS_LABELS_CUH
#define STINT_KERNELS_LABELS_CUH

#include "block.cuh"
#include "countedlabels.h"
#include "labels.h"

struct label_parts {
	double part[BLOCK_WARPS];
	int bad_row;
};

/* The divisor of a mean of labels. */
static __device__ __forceinline__ void count_rows(
	label_parts &shared, double *counted, const targets *t)
{
	const int64_t valid = valid_rows(t);
	double count = 0;
	for (int64_t r = threadIdx.x; r < valid; r += blockDim.x)
		if (row_counts(t, r, valid))
			count += row_weight(t, r);
	count = block_sum(count, shared.part);
	if (threadIdx.x == 0)
		*counted = count;
}

/* The output of all rows' losses. Labels that are no class are refused, unless t->lenient: what the
 * first such row holds is told, and all threads return. */
static __device__ __forceinline__ int join_losses(label_parts &shared, real *y, const double *loss,
	const targets *t, reduction how, int64_t *bad)
{
	enum { NO_ROW = 0x7FFFFFFF };
	const bool checks = t->label && !t->lenient;
	const int64_t valid = valid_rows(t);
	double total = 0, count = 0;
	if (threadIdx.x == 0)
		shared.bad_row = NO_ROW;
	__syncthreads();
	for (int64_t r = threadIdx.x; r < valid; r += blockDim.x) {
		if (checks && !is_ignored(t, t->label[r]) && !is_class(t, t->label[r]))
			atomicMin(&shared.bad_row, (int)r);
		total += loss[r];
		if (how == REDUCE_MEAN && row_counts(t, r, valid))
			count += row_weight(t, r);
	}
	__syncthreads();
	if (shared.bad_row != NO_ROW)
		return threadIdx.x == 0 ? BAD_INDEX(t->label[shared.bad_row]) : 1;
	if (how == REDUCE_NONE) {
		for (int64_t r = threadIdx.x; r < t->rows; r += blockDim.x)
			y[r] = (real)loss[r];
		return 0;
	}
	total = block_sum(total, shared.part);
	if (how == REDUCE_MEAN)
		total /= block_sum(count, shared.part);
	if (threadIdx.x == 0)
		y[0] = (real)total;
	return 0;
}

/* As countedlabels.h has it. */
static __device__ __forceinline__ void counted_labels(
	label_parts &shared, int64_t *y, real *count, const int64_t *label, const targets *t)
{
	const int64_t valid = valid_rows(t);
	double n = 0;
	for (int64_t r = threadIdx.x; r < t->rows; r += blockDim.x) {
		const int64_t counted = counted_label(label, r, valid, t->ignored);
		y[r] = counted;
		n += counted_weight(t, counted);
	}
	n = block_sum(n, shared.part);
	if (threadIdx.x == 0)
		count[0] = (real)n;
}

#endif

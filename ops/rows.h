/* CUDA texts of operators that work on rows [rows, n, inner] along n: how rows are given to
 * threads, and the helpers (kernels/rows.cuh). Private to ops/. */
#ifndef STINT_OPS_ROWS_H
#define STINT_OPS_ROWS_H

#include "ops/family.h"

/* Warps' and blocks' sums. */
void block_sums_helper(struct emit *e);

/* Rows whose elements are neighbours. */
struct rows_shape {
	int threads; /* of a row: 32 or 256 */
	int pack;    /* elements that a thread reads at once */
};
struct rows_shape rows_shape_of(int64_t rows, int64_t n, const struct tensor *x);
/* Blocks of ROWS_THREADS threads that have a row, or a column, each for all of theirs. */
enum { ROWS_THREADS = 256 };
int64_t rows_tasks(int64_t rows, struct rows_shape s);
int64_t columns_tasks(int64_t columns, int groups);
/* What rows and columns are summed in: shared memory `part` of reals, and `wides` of doubles. */
enum rows_sums { SUMS_NONE, SUMS_REAL, SUMS_WIDE };
/* Rows of blocks of 256 threads: the launch, what sums need, and the head of the loop over `r`,
 * with its brace. */
void rows_open(struct emit *e, int64_t rows, struct rows_shape s, enum rows_sums sums);

/* Columns: threads that share one. */
int columns_groups(int64_t columns, int64_t n);

#endif

/* How a GPU's kernels of operators that work on rows [rows, n, inner] along n give rows to threads
 * (kernels/rows.cuh). Private to ops/. */
#ifndef STINT_OPS_ROWS_H
#define STINT_OPS_ROWS_H

#include "ops/family.h"

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
/* Columns: threads that share one. */
int columns_groups(int64_t columns, int64_t n);

#endif

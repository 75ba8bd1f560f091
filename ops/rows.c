/* How a GPU's kernels give rows, and columns, to threads: rows.h. */
#include "ops/rows.h"

#include "ops/product/gemm_op.h"

enum { THREADS = ROWS_THREADS, WARP = 32, BYTES_AT_ONCE = 16 };

/* --- Rows --- */

struct rows_shape rows_shape_of(int64_t rows, int64_t n, const struct tensor *x)
{
	const bool few = rows < 4 * WARP * WARP;
	struct rows_shape s = {.threads = n >= 1024 || (few && n >= THREADS) ? THREADS : WARP,
		.pack = BYTES_AT_ONCE / (int)dtype_bytes(x->dtype)};
	while (s.pack > 1 && s.pack * s.threads > n)
		s.pack /= 2;
	return s;
}

int64_t rows_tasks(int64_t rows, struct rows_shape s)
{
	return div_up(rows * s.threads, THREADS);
}

/* --- Columns --- */

enum { MOST_GROUPS = 8, LONG = 32 };

int columns_groups(int64_t columns, int64_t n)
{
	return n >= LONG && columns < (int64_t)1 << 16 ? MOST_GROUPS : 1;
}

int64_t columns_tasks(int64_t columns, int groups)
{
	return div_up(columns, THREADS / groups);
}

/* How CUDA texts give rows, and columns, to threads: rows.h. */
#include "ops/rows.h"

#include <inttypes.h>

#include "ops/gemm.h"

enum { THREADS = ROWS_THREADS, WARP = 32, BYTES_AT_ONCE = 16 };

void block_sums_helper(struct emit *e)
{
	emit_source(e, "block.cuh", 0, NULL);
}

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

void rows_open(struct emit *e, int64_t rows, struct rows_shape s, enum rows_sums sums)
{
	block_sums_helper(e);
	emit_source(e, "rows.cuh", 0, NULL);
	emit_launch(e, rows_tasks(rows, s), THREADS);
	if (sums != SUMS_NONE)
		emit(e, "\t__shared__ real part[BLOCK_WARPS];\n");
	if (sums == SUMS_WIDE)
		emit(e, "\t__shared__ double wides[BLOCK_WARPS];\n");
	emit(e, "\tfor (int64_t r = THREAD / %d; r < %" PRId64 "; r += THREADS / %d) {\n",
		s.threads, rows, s.threads);
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

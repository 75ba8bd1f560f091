/* SPDX-License-Identifier: MIT-0 */
/* Copies of boxes on a GPU (box.h), by packs of neighbours: a box of packs has its sizes and places
 * in packs. Turns are shared over all packs, so that neighbouring threads read and write
 * neighbours. */
#ifndef STINT_KERNELS_COPY_CUH
#define STINT_KERNELS_COPY_CUH

#include "box.h"
#include "elements.cuh"

template <int BYTES> struct bits;
template <> struct bits<1> {
	typedef uint8_t type;
};
template <> struct bits<2> {
	typedef uint16_t type;
};
template <> struct bits<4> {
	typedef uint32_t type;
};
template <> struct bits<8> {
	typedef uint2 type;
};
template <> struct bits<16> {
	typedef uint4 type;
};

/* A number that 32 bits hold is divided several times as fast. */
template <int WIDE> struct turn_number {
	typedef uint32_t type;
};
template <> struct turn_number<1> {
	typedef uint64_t type;
};

template <int BYTES, int WIDE>
static __device__ __forceinline__ void copy_packs(
	void *y, const void *x, const struct box *b, int64_t from, int64_t to)
{
	typedef typename bits<BYTES>::type pack;
	typedef typename turn_number<WIDE>::type number;
	for (int64_t turn = from; turn < to; turn++) {
		number rest = (number)turn;
		int64_t px = b->xoff, py = b->yoff;
		UNROLL
		for (int k = b->rank - 1; k >= 0; k--) {
			const number dim = (number)b->dim[k], i = rest % dim;
			rest /= dim;
			px += (int64_t)i * b->xs[k];
			py += (int64_t)i * b->ys[k];
		}
		((pack *)y)[py] = ((const pack *)x)[px];
	}
}

/* A transposition (copy.h) through tiles in shared memory, by blocks of 256 threads. */
enum { TILE = 32, TILE_ROWS = 8 };

template <int BYTES> struct copy_tile {
	typename bits<BYTES>::type of[TILE][TILE + 1];
};

template <int BYTES, int WIDE>
static __device__ __forceinline__ void copy_tiles(copy_tile<BYTES> &tile, void *to,
	const void *from, const struct box *b, int t, int64_t tasks)
{
	typedef typename bits<BYTES>::type element;
	typedef typename turn_number<WIDE>::type number;
	element *const y = (element *)to;
	const element *const x = (const element *)from;
	const int last = b->rank - 1;
	const int lane = (int)threadIdx.x % TILE, row = (int)threadIdx.x / TILE;
	for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
		number rest = (number)task;
		int64_t px = b->xoff, py = b->yoff, rows = 0, columns = 0;
		UNROLL
		for (int k = last; k >= 0; k--) {
			const int64_t side = k == t || k == last ? TILE : 1;
			const number tiles = (number)((b->dim[k] + side - 1) / side);
			const int64_t begin = (int64_t)(rest % tiles) * side;
			rest /= tiles;
			px += begin * b->xs[k];
			py += begin * b->ys[k];
			if (k == t)
				rows = MIN(b->dim[k] - begin, side);
			if (k == last)
				columns = MIN(b->dim[k] - begin, side);
		}
		if (lane < rows)
			for (int j = row; j < columns; j += TILE_ROWS)
				tile.of[j][lane] = x[px + lane + j * b->xs[last]];
		__syncthreads();
		if (lane < columns)
			for (int i = row; i < rows; i += TILE_ROWS)
				y[py + i * b->ys[t] + lane] = tile.of[lane][i];
		__syncthreads();
	}
}

/* All of y, of `dim` packs: along each axis x's number (i - start) / step where i is in the inset,
 * `size` long; zeros elsewhere. */
struct inset {
	int rank;
	int64_t dim[BOX_RANK], start[BOX_RANK], step[BOX_RANK], size[BOX_RANK], xs[BOX_RANK];
	int64_t xoff;
};

template <int BYTES, int WIDE>
static __device__ __forceinline__ void copy_inset(
	void *y, const void *x, const struct inset *s, int64_t from, int64_t to)
{
	typedef typename bits<BYTES>::type pack;
	typedef typename turn_number<WIDE>::type number;
	for (int64_t turn = from; turn < to; turn++) {
		number rest = (number)turn;
		int64_t px = s->xoff;
		bool inside = true;
		UNROLL
		for (int k = s->rank - 1; k >= 0; k--) {
			const number dim = (number)s->dim[k];
			const int64_t i = (int64_t)(rest % dim) - s->start[k], at = i / s->step[k];
			rest /= dim;
			inside = inside && i >= 0 && at < s->size[k] && i % s->step[k] == 0;
			px += at * s->xs[k];
		}
		((pack *)y)[turn] = inside ? ((const pack *)x)[px] : pack{};
	}
}

#endif

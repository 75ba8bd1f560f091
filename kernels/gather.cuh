/* SPDX-License-Identifier: MIT-0 */
/* Slices by indices on a GPU, and the gradients of tables (gather.h). Indices out of range are told
 * by the last launch, and passed over by the others. */
#ifndef STINT_KERNELS_GATHER_CUH
#define STINT_KERNELS_GATHER_CUH

#include "elements.cuh"
#include "walk.h"

enum { NO_PLACE = 0x7FFFFFFF };
/* The first of indices [from, end) that is out of range, in each thread of a block, all of which
 * call; NO_PLACE: none. */
FORM int first_out_of_range(
	const int64_t *index, int64_t from, int64_t end, int64_t size, int &first)
{
	if (threadIdx.x == 0)
		first = NO_PLACE;
	__syncthreads();
	for (int64_t m = from + threadIdx.x; m < end; m += blockDim.x)
		if (index[m] < -size || index[m] >= size)
			atomicMin(&first, (int)m);
	__syncthreads();
	const int found = first;
	__syncthreads();
	return found;
}

struct gather_room {
	int first;
};

/* In packs of V neighbours, of which a slice has `slice`; the first block checks the indices. */
template <int CHECKED, int V, class X>
FORM int gather_packs(gather_room &room, X *y, const X *x, const int64_t *index, int64_t outer,
	int64_t size, int64_t count, int64_t slice, int64_t *bad)
{
	const pack<X, V> *const from = (const pack<X, V> *)x;
	pack<X, V> *const to = (pack<X, V> *)y;
	if (CHECKED && blockIdx.x == 0) {
		const int place = first_out_of_range(index, 0, count, size, room.first);
		if (place != NO_PLACE && threadIdx.x == 0)
			return BAD_INDEX(index[place]);
	}
	for (int64_t i = THREAD; i < outer * count * slice; i += THREADS) {
		const int64_t m = i / slice % count, o = i / (slice * count);
		const int64_t v = index[m] < 0 ? index[m] + size : index[m];
		if (!CHECKED || (v >= 0 && v < size))
			to[i] = from[(o * size + v) * slice + i % slice];
	}
	return 0;
}

/* The indices of picks, by one block. */
FORM int block_check_walk(
	gather_room &room, const int64_t *index, int64_t n, const struct walk *w, int64_t *bad)
{
	if (threadIdx.x == 0)
		room.first = NO_PLACE;
	__syncthreads();
	const int64_t found = walk_first_bad(w, index, threadIdx.x, blockDim.x, n);
	if (found < n)
		atomicMin(&room.first, (int)found);
	__syncthreads();
	return room.first == NO_PLACE ? 0 : threadIdx.x == 0 ? BAD_INDEX(index[room.first]) : 1;
}

/* --- The gradient of a table ---
 *
 * It sorts the indices by row, stably, and adds up what belongs to a row in the order of its
 * places. The sorted list is cut into chunks, so that a token that is everywhere keeps the whole
 * device busy: a chunk's sums, then, for rows that several chunks have, the chunks'. The cuts go by
 * the number of indices alone.
 *
 * Template parameter S: size, inner, count, padding as in gather.h; tile, tiles, chunk, chunks: how
 * it is cut; bits of a digit, digits; counts, bad, rests: where these begin in scratch, behind two
 * lists of entries. */
template <class S> FORM uint2 *scatter_list(char *ws, int which)
{
	return (uint2 *)(ws + which * (S::counts / 2));
}

/* Indices in order of their rows, and those of one row in order of their places, so that a row's
 * sum is always made the same way: a radix sort, a digit of S::bits at a time from the lowest.
 * Tiles of S::tile indices are a block's. An entry is (row, place); indices out of range, and of
 * the padding, have row S::size, behind all others. */
template <class S> FORM uint2 scatter_entry(const int64_t *index, int64_t m)
{
	const int64_t v = index[m] < 0 ? index[m] + S::size : index[m];
	return make_uint2(
		(unsigned)(v >= 0 && v < S::size && v != S::padding ? v : S::size), (unsigned)m);
}

template <class S, int PASS>
FORM uint2 scatter_load(const int64_t *index, const uint2 *from, int64_t m)
{
	if constexpr (PASS == 0)
		return scatter_entry<S>(index, m);
	else
		return from[m];
}

template <class S, int PASS> FORM unsigned scatter_digit(uint2 entry)
{
	return entry.x >> (PASS * S::bits) & (S::digits - 1);
}

/* How often a tile has each digit: counts[tile][digit]. */
template <class S, int PASS>
FORM void scatter_count(int64_t tile, const int64_t *index, const uint2 *from, unsigned *counts,
	unsigned (*ranks)[S::digits])
{
	const int64_t first = tile * S::tile, end = MIN(first + S::tile, S::count);
	for (int d = (int)threadIdx.x; d < S::digits; d += 256)
		ranks[0][d] = 0;
	__syncthreads();
	for (int64_t m = first + threadIdx.x; m < end; m += 256)
		atomicAdd(&ranks[0][scatter_digit<S, PASS>(scatter_load<S, PASS>(index, from, m))],
			1u);
	__syncthreads();
	for (int d = (int)threadIdx.x; d < S::digits; d += 256)
		counts[tile * S::digits + d] = ranks[0][d];
	__syncthreads();
}

/* Where a tile's entries with each digit go: behind those with lower ones, and those of earlier
 * tiles. */
template <class S> FORM void scatter_places(int64_t tile, const unsigned *counts, unsigned *places)
{
	enum { MINE = S::digits / 32 };
	unsigned before[(S::digits + 255) / 256];
	for (int k = 0; k < (S::digits + 255) / 256; k++) {
		const int d = k * 256 + (int)threadIdx.x;
		unsigned all = 0;
		before[k] = 0;
		for (int64_t t = 0; t < S::tiles && d < S::digits; t++) {
			const unsigned n = counts[t * S::digits + d];
			before[k] += t < tile ? n : 0;
			all += n;
		}
		if (d < S::digits)
			places[d] = all;
	}
	__syncthreads();
	if (threadIdx.x < 32) {
		unsigned mine = 0, start;
		for (int k = 0; k < MINE; k++)
			mine += places[threadIdx.x * MINE + k];
		start = mine;
		for (unsigned by = 1; by < 32; by *= 2) {
			const unsigned lower = __shfl_up_sync(0xFFFFFFFFu, start, by);
			start += threadIdx.x >= by ? lower : 0;
		}
		start -= mine;
		for (int k = 0; k < MINE; k++) {
			const unsigned n = places[threadIdx.x * MINE + k];
			places[threadIdx.x * MINE + k] = start;
			start += n;
		}
	}
	__syncthreads();
	for (int k = 0; k < (S::digits + 255) / 256; k++)
		if (k * 256 + (int)threadIdx.x < S::digits)
			places[k * 256 + threadIdx.x] += before[k];
	__syncthreads();
}

/* A tile's entries into their places: an eighth of it is a warp's, in order. */
template <class S, int PASS>
FORM void scatter_sort(int64_t tile, const int64_t *index, const uint2 *from, uint2 *to,
	const unsigned *counts, unsigned *places, unsigned (*ranks)[S::digits])
{
	const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
	const int64_t first = tile * S::tile + warp * (S::tile / 8),
		      end = MIN(first + S::tile / 8, S::count);
	scatter_places<S>(tile, counts, places);
	for (int d = lane; d < S::digits; d += 32)
		ranks[warp][d] = 0;
	__syncwarp();
	for (int64_t m = first + lane; m < end; m += 32)
		atomicAdd(
			&ranks[warp][scatter_digit<S, PASS>(scatter_load<S, PASS>(index, from, m))],
			1u);
	__syncthreads();
	for (int d = (int)threadIdx.x; d < S::digits; d += 256) {
		unsigned place = places[d];
		for (int w = 0; w < 8; w++) {
			const unsigned n = ranks[w][d];
			ranks[w][d] = place;
			place += n;
		}
	}
	__syncthreads();
	for (int64_t m = first + lane; m - lane < end; m += 32) {
		const bool there = m < end;
		const uint2 entry = there ? scatter_load<S, PASS>(index, from, m)
					  : make_uint2(0, 0);
		const unsigned d = scatter_digit<S, PASS>(entry);
		unsigned alike = __ballot_sync(0xFFFFFFFFu, there); /* lanes with the same digit */
		for (int b = 0; b < S::bits; b++) {
			const unsigned set = __ballot_sync(0xFFFFFFFFu, d >> b & 1);
			alike &= d >> b & 1 ? set : ~set;
		}
		const unsigned rank = (unsigned)__popc(alike & ((1u << lane) - 1));
		if (there)
			to[ranks[warp][d] + rank] = entry;
		__syncwarp();
		if (there && rank == 0)
			ranks[warp][d] += (unsigned)__popc(alike);
		__syncwarp();
	}
	__syncthreads();
}

template <class S> struct scatter_room {
	unsigned ranks[8][S::digits], places[S::digits];
	int first;
};

/* The first launch also zeroes the gradient, and looks for indices out of range. */
template <class S> FORM void scatter_zero(real *y, int64_t n)
{
	for (int64_t i = THREAD; i < n; i += THREADS)
		y[i] = 0;
}
template <class S>
FORM void scatter_search(scatter_room<S> &room, char *ws, const int64_t *index, int64_t tile)
{
	const int place = first_out_of_range(
		index, tile * S::tile, MIN((tile + 1) * S::tile, S::count), S::size, room.first);
	if (threadIdx.x == 0)
		((int *)(ws + S::bad))[tile] = place;
}

/* Pass PASS reads the list that the one before has written. */
template <class S, int PASS>
FORM void scatter_count_tile(scatter_room<S> &room, char *ws, const int64_t *index, int64_t tile)
{
	scatter_count<S, PASS>(tile, index, scatter_list<S>(ws, (PASS + 1) % 2),
		(unsigned *)(ws + S::counts), room.ranks);
}
template <class S, int PASS>
FORM void scatter_sort_tile(scatter_room<S> &room, char *ws, const int64_t *index, int64_t tile)
{
	scatter_sort<S, PASS>(tile, index, scatter_list<S>(ws, (PASS + 1) % 2),
		scatter_list<S>(ws, PASS % 2), (unsigned *)(ws + S::counts), room.places,
		room.ranks);
}

/* All passes by one block: no other has indices. */
template <class S, int CHECKED, int PASS, int PASSES>
FORM void scatter_passes(scatter_room<S> &room, char *ws, const int64_t *index)
{
	if constexpr (PASS < PASSES) {
		scatter_count_tile<S, PASS>(room, ws, index, 0);
		scatter_sort_tile<S, PASS>(room, ws, index, 0);
		scatter_passes<S, CHECKED, PASS + 1, PASSES>(room, ws, index);
	}
}
template <class S, int CHECKED, int PASSES>
FORM void scatter_one_tile(
	scatter_room<S> &room, real *y, char *ws, const int64_t *index, int64_t n)
{
	if (blockIdx.x == 0) {
		if (CHECKED)
			scatter_search<S>(room, ws, index, 0);
		scatter_passes<S, CHECKED, 0, PASSES>(room, ws, index);
	}
	scatter_zero<S>(y, n);
}

/* A launch to count, and one to sort. */
template <class S, int CHECKED, int PASS>
FORM void scatter_count_tiles(
	scatter_room<S> &room, real *y, char *ws, const int64_t *index, int64_t n)
{
	for (int64_t tile = blockIdx.x; tile < S::tiles; tile += gridDim.x) {
		if (CHECKED && PASS == 0)
			scatter_search<S>(room, ws, index, tile);
		scatter_count_tile<S, PASS>(room, ws, index, tile);
	}
	if (PASS == 0)
		scatter_zero<S>(y, n);
}
template <class S, int PASS>
FORM void scatter_sort_tiles(scatter_room<S> &room, char *ws, const int64_t *index)
{
	for (int64_t tile = blockIdx.x; tile < S::tiles; tile += gridDim.x)
		scatter_sort_tile<S, PASS>(room, ws, index, tile);
}

/* Element `column` of the sums of a chunk's entries, a row after the other. What continues a row of
 * the chunk before goes to *rest; all else is the row's, or its beginning. */
template <class S>
FORM void scatter_chunk(const uint2 *entry, int64_t chunk, const real *dy, real *y, real *rest)
{
	const int64_t from = chunk * S::chunk, end = MIN(from + S::chunk, S::count);
	unsigned row = entry[from].x;
	bool continues = from > 0 && entry[from - 1].x == row;
	real sum = 0;
	for (int64_t m = from; m < end; m += 8) {
		unsigned r[8];
		real v[8];
		for (int k = 0; k < 8; k++) {
			const uint2 e = entry[MIN(m + k, end - 1)];
			r[k] = e.x;
			v[k] = dy[e.y * S::inner];
		}
		for (int k = 0; k < 8 && m + k < end; k++) {
			if (r[k] != row) {
				*(continues ? rest : y + row * S::inner) = sum;
				continues = false;
				row = r[k];
				sum = 0;
			}
			sum += v[k];
		}
	}
	if (row < S::size)
		*(continues ? rest : y + row * S::inner) = sum;
}

/* Adds what later chunks have of the row that begins in this one and goes on behind it. */
template <class S>
FORM void scatter_rest(const uint2 *entry, int64_t chunk, real *y, const real *rest)
{
	const int64_t from = chunk * S::chunk, end = from + S::chunk;
	const unsigned row = entry[end - 1].x;
	if (row >= S::size || entry[end].x != row || (from > 0 && entry[from - 1].x == row))
		return;
	int64_t last = chunk + 1, behind = S::chunks; /* the last chunk that begins with the row */
	while (behind - last > 1) {
		const int64_t middle = last + (behind - last) / 2;
		if (entry[middle * S::chunk].x == row)
			last = middle;
		else
			behind = middle;
	}
	real sum = y[row * S::inner];
	for (int64_t c = chunk + 1; c <= last; c += 8) {
		real v[8];
		for (int k = 0; k < 8; k++)
			v[k] = rest[MIN(c + k, last) * S::inner];
		for (int k = 0; k < 8 && c + k <= last; k++)
			sum += v[k];
	}
	y[row * S::inner] = sum;
}

/* What the first bad index is, by the last launch. */
template <class S, int CHECKED>
FORM int scatter_tell(const char *ws, const int64_t *index, int64_t *bad)
{
	const int *const place = (const int *)(ws + S::bad);
	for (int64_t t = 0; CHECKED && t < S::tiles && THREAD == 0; t++)
		if (place[t] != NO_PLACE)
			return BAD_INDEX(index[place[t]]);
	return 0;
}

/* Columns of chunks; LIST has the sorted entries. */
template <class S, int CHECKED, int LIST>
FORM int scatter_chunks(
	real *y, char *ws, const real *dy, const int64_t *index, int64_t outer, int64_t *bad)
{
	if (S::chunks == 1 && scatter_tell<S, CHECKED>(ws, index, bad))
		return 1;
	for (int64_t i = THREAD; i < outer * S::chunks * S::inner; i += THREADS) {
		const int64_t column = i % S::inner, chunk = i / S::inner % S::chunks;
		const int64_t o = i / (S::inner * S::chunks);
		scatter_chunk<S>(scatter_list<S>(ws, LIST), chunk,
			dy + o * S::count * S::inner + column, y + o * S::size * S::inner + column,
			(real *)(ws + S::rests) + (o * S::chunks + chunk) * S::inner + column);
	}
	return 0;
}
template <class S, int CHECKED, int LIST>
FORM int scatter_rests(real *y, char *ws, const int64_t *index, int64_t outer, int64_t *bad)
{
	const int64_t chunks = S::chunks - 1;
	if (scatter_tell<S, CHECKED>(ws, index, bad))
		return 1;
	for (int64_t i = THREAD; i < outer * chunks * S::inner; i += THREADS) {
		const int64_t column = i % S::inner, chunk = i / S::inner % chunks;
		const int64_t o = i / (S::inner * chunks);
		scatter_rest<S>(scatter_list<S>(ws, LIST), chunk,
			y + o * S::size * S::inner + column,
			(real *)(ws + S::rests) + o * S::chunks * S::inner + column);
	}
	return 0;
}

#endif

/* SPDX-License-Identifier: MIT-0 */
/* conv_forward and conv_grad_x where bytes are dear: elements of x are read where they lie, and the
 * terms of each sum are added in conv.h's order. */
#ifndef STINT_KERNELS_CONV_LEAN_H
#define STINT_KERNELS_CONV_LEAN_H

/* row[0..n): what the windows j, j+1, ... of the grid q see in a plane x of size d, in places
 * index * stride + f of each axis; 0 outside. */
KERNEL_PART void conv_gather(int64_t n, int64_t j, const int64_t *q, const int64_t *stride,
	const int64_t *f, const real *x, const int64_t *d, real *restrict row)
{
	const int64_t s = stride[2];
	int64_t c = j % q[2], b = j / q[2] % q[1], a = j / q[2] / q[1];
	while (n > 0) {
		const int64_t run = q[2] - c < n ? q[2] - c : n;
		const int64_t ia = a * stride[0] + f[0], ib = b * stride[1] + f[1],
			      ic = c * s + f[2];
		int64_t lo = run, hi = run;
		if (ia >= 0 && ia < d[0] && ib >= 0 && ib < d[1]) {
			lo = ic < 0 ? (s - 1 - ic) / s : 0;
			hi = ic < d[2] ? (d[2] - 1 - ic) / s + 1 : 0;
			lo = lo < run ? lo : run;
			hi = hi < lo ? lo : hi < run ? hi : run;
		}
		for (int64_t t = 0; t < lo; t++)
			row[t] = 0;
		if (lo < hi) {
			const real *from = x + (ia * d[1] + ib) * d[2] + ic;
			if (s == 1)
				memcpy(row + lo, from + lo, (size_t)(hi - lo) * sizeof *row);
			else
				for (int64_t t = lo; t < hi; t++)
					row[t] = from[t * s];
		}
		for (int64_t t = hi; t < run; t++)
			row[t] = 0;
		row += run;
		n -= run;
		c = 0;
		b++;
		if (b == q[1]) {
			b = 0;
			a++;
		}
	}
}

/* Where windows j to j + LEAN_COLUMNS of the grid q, the last of n in the place of those behind it,
 * see a plane of size d under tap t: indexes to off[t]; -1 outside. */
static inline void lean_places(int64_t n, int64_t j, const int64_t *q, const int64_t *stride,
	int64_t ntap, const int64_t (*tap)[4], const int64_t *d, int32_t (*off)[LEAN_COLUMNS])
{
	for (int c = 0; c < LEAN_COLUMNS; c++) {
		const int64_t at = j + MIN(c, n - 1), row = at / q[2];
		const int64_t i2 = (at - row * q[2]) * stride[2], i1 = row % q[1] * stride[1],
			      i0 = row / q[1] * stride[0];
		for (int64_t t = 0; t < ntap; t++) {
			const int64_t a = i0 + tap[t][0], b = i1 + tap[t][1], e = i2 + tap[t][2];
			const int in = a >= 0 && a < d[0] && b >= 0 && b < d[1] && e >= 0 &&
				       e < d[2];
			off[t][c] = in ? (int32_t)((a * d[1] + b) * d[2] + e) : -1;
		}
	}
}

/* s[i][c] = the sum of terms k to k + n, numbered over planes, then taps. */
static inline void lean_terms(int64_t m, int64_t k, int64_t n, int64_t ntap,
	const int64_t (*tap)[4], const real *a, int64_t ars, int64_t acs, const real *x,
	int64_t plane, int32_t (*off)[LEAN_COLUMNS], real s[LEAN_ROWS][LEAN_COLUMNS])
{
	const int64_t p = k / ntap;
	const real *row[LEAN_ROWS];
	real sum[LEAN_ROWS][LEAN_COLUMNS] = {{0}};
	for (int i = 0; i < LEAN_ROWS; i++)
		row[i] = a + MIN(i, m - 1) * ars + p * acs;
	x += p * plane;
	for (int64_t t = k - p * ntap; n > 0; n--) {
		real v[LEAN_COLUMNS];
		for (int c = 0; c < LEAN_COLUMNS; c++)
			v[c] = off[t][c] < 0 ? 0 : x[off[t][c]];
		for (int i = 0; i < LEAN_ROWS; i++)
			for (int c = 0; c < LEAN_COLUMNS; c++)
				sum[i][c] = FUSED(row[i][tap[t][3]], v[c], sum[i][c]);
		if (++t < ntap)
			continue;
		t = 0;
		x += plane;
		for (int i = 0; i < LEAN_ROWS; i++)
			row[i] += acs;
	}
	for (int i = 0; i < LEAN_ROWS; i++)
		for (int c = 0; c < LEAN_COLUMNS; c++)
			s[i][c] = sum[i][c];
}

/* c[m][n] = (add: c +) the sum over `planes` planes of x and ntap taps: a's element of row i, plane
 * p and tap t is a[i * ars + p * acs + tap[t][3]]; column j + k is window j + k of the grid q,
 * displaced by tap[t]. w: int32_t[ntap][LEAN_COLUMNS]; numbers are of 32 bits, those of `tap` too.
 */
KERNEL_PART void conv_product(int64_t m, int64_t n, int64_t j, int64_t planes, int64_t ntap,
	const int64_t (*tap)[4], const real *a, int64_t ars, int64_t acs, const real *x,
	const int64_t *d, const int64_t *q, const int64_t *stride, real *c, int64_t ldc, int add,
	real *w)
{
	int32_t(*off)[LEAN_COLUMNS] = (int32_t(*)[LEAN_COLUMNS])(void *)w;
	const int64_t depth = planes * ntap, plane = d[0] * d[1] * d[2];
	for (int64_t i = 0; !add && depth == 0 && i < m; i++)
		for (int64_t k = 0; k < n; k++)
			c[i * ldc + k] = 0;
	for (int64_t j0 = 0; j0 < n; j0 += LEAN_COLUMNS) {
		lean_places(n - j0, j + j0, q, stride, ntap, tap, d, off);
		for (int64_t i = 0; i < m; i += LEAN_ROWS)
			for (int64_t k = 0; k < depth; k += GEMM_KC) {
				real s[LEAN_ROWS][LEAN_COLUMNS];
				lean_terms(MIN(m - i, LEAN_ROWS), k, MIN(depth - k, GEMM_KC), ntap,
					tap, a + i * ars, ars, acs, x, plane, off, s);
				lean_store(MIN(m - i, LEAN_ROWS), MIN(n - j0, LEAN_COLUMNS),
					(const real(*)[LEAN_COLUMNS])s, c + i * ldc + j0, ldc,
					add || k > 0);
			}
	}
}

/* --- Forward --- */

/* Channels y[0..m), windows j to j + n, from `planes` planes of x. */
KERNEL_PART void conv_forward_block(const struct window *w, int64_t m, int64_t n, int64_t j,
	int64_t planes, const real *weight, const real *x, real *y, int add, void *ws)
{
	const int64_t taps = window_taps(w);
	int64_t(*tap)[4] = (int64_t(*)[4])ws;
	for (int64_t t = 0; t < taps; t++) {
		const int64_t at[3] = {t / w->kernel[2] / w->kernel[1],
			t / w->kernel[2] % w->kernel[1], t % w->kernel[2]};
		for (int i = 0; i < 3; i++)
			tap[t][i] = at[i] * w->dilation[i] - w->before[i];
		tap[t][3] = t;
	}
	conv_product(m, n, j, planes, taps, (const int64_t(*)[4])tap, weight, planes * taps, taps,
		x, w->size, w->out, w->stride, y, window_out(w), add, (real *)(tap + taps));
}

/* A turn is a block of one image's channels of a group: s->rows filters, or what is left of the
 * group's, by s->columns windows. bias: of each filter, or NULL. ws: scratch of this worker. */
static inline void conv_forward(const struct window *w, const struct conv_shape *s, real *y,
	const real *x, const real *weight, const real *bias, void *ws, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w);
	const int64_t plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t turn = from; turn < to; turn++) {
		const struct conv_block b = conv_block_of(s, filters, out, turn);
		const int64_t k = b.group * filters + b.i;
		const int64_t m = MIN(filters - b.i, s->rows), n = MIN(out - b.j, s->columns);
		real *const block = y + (b.image * s->filters + k) * out + b.j;
		if (bias)
			conv_bias(m, n, block, out, bias + k);
		conv_forward_block(w, m, n, b.j, channels, weight + k * channels * taps,
			x + (b.image * s->channels + b.group * channels) * plane, block,
			bias != NULL, ws);
	}
}

/* --- The gradient of x --- */

/* Channels dx[0..m): of the elements whose index is `phase` modulo the stride, those numbered j to
 * j + most. They meet only the taps that hit them, so that no product is with a zero in between. */
KERNEL_PART void conv_grad_x_block(const struct window *w, int64_t phase, int64_t m, int64_t most,
	int64_t j, int64_t planes, const real *weight, int64_t channels, const real *dy, real *dx,
	void *ws)
{
	static const int64_t one[3] = {1, 1, 1};
	const int64_t all = window_taps(w);
	const int64_t plane = window_plane(w);
	const int64_t s[3] = {w->stride[0], w->stride[1], w->stride[2]};
	const int64_t at[3] = {phase / s[2] / s[1], phase / s[2] % s[1], phase % s[2]};
	int64_t(*tap)[4] = (int64_t(*)[4])ws;
	int64_t q[3], taps = 0;
	for (int i = 0; i < 3; i++)
		q[i] = at[i] < w->size[i] ? (w->size[i] - 1 - at[i]) / s[i] + 1 : 0;
	int64_t n = q[0] * q[1] * q[2] - j;
	if (n <= 0)
		return;
	n = n < most ? n : most;
	for (int64_t t = 0; t < all; t++) {
		const int64_t k[3] = {t / w->kernel[2] / w->kernel[1],
			t / w->kernel[2] % w->kernel[1], t % w->kernel[2]};
		int hit = 1;
		for (int i = 0; i < 3; i++) {
			const int64_t f = at[i] + w->before[i] - k[i] * w->dilation[i];
			hit = hit && f % s[i] == 0;
			tap[taps][i] = f / s[i];
		}
		tap[taps][3] = t;
		taps += hit;
	}
	real *work = (real *)(tap + all + 1);
	if (s[0] * s[1] * s[2] == 1) {
		conv_product(m, n, j, planes, taps, (const int64_t(*)[4])tap, weight, all,
			channels * all, dy, w->out, q, one, dx + j, plane, 0, work);
		return;
	}
	real *c = work;
	conv_product(m, n, j, planes, taps, (const int64_t(*)[4])tap, weight, all, channels * all,
		dy, w->out, q, one, c, n, 0, work + m * most);
	for (int64_t k = 0; k < n; k++) {
		const int64_t i2 = (j + k) % q[2] * s[2] + at[2],
			      i1 = (j + k) / q[2] % q[1] * s[1] + at[1];
		const int64_t i0 = (j + k) / q[2] / q[1] * s[0] + at[0];
		for (int64_t i = 0; i < m; i++)
			dx[i * plane + (i0 * w->size[1] + i1) * w->size[2] + i2] = c[i * n + k];
	}
}

/* A turn is a block of one image's channels of a group, of one phase of the stride: s->rows
 * channels, or what is left of the group's, by s->columns elements. ws: scratch of this worker. */
static inline void conv_grad_x(const struct window *w, const struct conv_shape *s, real *dx,
	const real *dy, const real *weight, void *ws, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w);
	const int64_t plane = window_plane(w), out = window_out(w);
	const int64_t phases = w->stride[0] * w->stride[1] * w->stride[2];
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	const int64_t down = (channels + s->rows - 1) / s->rows;
	int64_t most = 1; /* elements of a phase */
	for (int a = 0; a < 3; a++)
		most *= (w->size[a] + w->stride[a] - 1) / w->stride[a];
	const int64_t across = (most + s->columns - 1) / s->columns;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t j = turn % across * s->columns, i = turn / across % down * s->rows;
		const int64_t phase = turn / across / down % phases;
		const int64_t product = turn / across / down / phases;
		const int64_t image = product / s->groups, group = product % s->groups;
		const int64_t k = group * filters;
		conv_grad_x_block(w, phase, MIN(channels - i, s->rows), s->columns, j, filters,
			weight + (k * channels + i) * taps, channels,
			dy + (image * s->filters + k) * out,
			dx + (image * s->channels + group * channels + i) * plane, ws);
	}
}

#endif

/* The functions of ops/pool_cuda.c. W holds the window's numbers; a place's neighbours along the
 * last spatial axis lie STEP elements apart (channels last: the channels). */
#ifndef STINT_OPS_POOL_CUDA_TEXT_H
#define STINT_OPS_POOL_CUDA_TEXT_H

/* clang-format off */
static const char pool_place_cuda_text[] =
"/* The place in an image that output (a, b, c) sees under tap (t0, t1, t2); -1: padding. */\n"
"template <class W> static __device__ __forceinline__ int pool_place(int a, int b, int c, int t0, int t1, int t2)\n"
"{\n"
"	const int i = a * W::stride0 + t0 * W::dilation0 - W::before0;\n"
"	const int j = b * W::stride1 + t1 * W::dilation1 - W::before1;\n"
"	const int k = c * W::stride2 + t2 * W::dilation2 - W::before2;\n"
"	const bool inside = i >= 0 && i < W::size0 && j >= 0 && j < W::size1 && k >= 0 && k < W::size2;\n"
"	return inside ? (i * W::size1 + j) * W::size2 + k : -1;\n"
"}\n"
"/* see(at) of each place in an image that output (a, b, c) sees, in their order. */\n"
"template <class W, class S> static __device__ __forceinline__ void pool_seen(int a, int b, int c, S see)\n"
"{\n"
"	for (int t0 = 0; t0 < W::kernel0; t0++)\n"
"		for (int t1 = 0; t1 < W::kernel1; t1++)\n"
"			for (int t2 = 0; t2 < W::kernel2; t2++) {\n"
"				const int at = pool_place<W>(a, b, c, t0, t1, t2);\n"
"				if (at >= 0)\n"
"					see(at);\n"
"			}\n"
"}\n";

static const char pool_max_cuda_text[] =
"/* The largest that output (a, b, c) sees; a NaN stays one. */\n"
"template <class W> static __device__ __forceinline__ real @name(const @0 *x, int a, int b, int c)\n"
"{\n"
"	real most = -INFINITY;\n"
"	pool_seen<W>(a, b, c, [&](int at) {\n"
"		const real v = @value0(x[at * W::step]);\n"
"		most = v > most || v != v ? v : most;\n"
"	});\n"
"	return most;\n"
"}\n";

static const char pool_where_cuda_text[] =
"/* The place of the first of the largest that output (a, b, c) sees; -1: it sees none. */\n"
"template <class W> static __device__ __forceinline__ int @name(const @0 *x, int a, int b, int c)\n"
"{\n"
"	real most = -INFINITY;\n"
"	int where = -1;\n"
"	pool_seen<W>(a, b, c, [&](int at) {\n"
"		const real v = @value0(x[at * W::step]);\n"
"		if (v > most || v != v || where < 0) {\n"
"			most = v;\n"
"			where = at;\n"
"		}\n"
"	});\n"
"	return where;\n"
"}\n"
"/* Of channel 0's plane, as ONNX numbers it. */\n"
"template <class W> static __device__ __forceinline__ int64_t pool_index(int where, int64_t first, int column_major)\n"
"{\n"
"	const int i = where / W::size2 / W::size1, j = where / W::size2 % W::size1, k = where % W::size2;\n"
"	return where < 0 ? -1 : first + (column_major ? i + (j + (int64_t)k * W::size1) * W::size0 : where);\n"
"}\n";

static const char pool_wins_cuda_text[] =
"/* Whether `mine`, which output (a, b, c) sees at place `me`, is the first of the largest it sees. */\n"
"template <class W> static __device__ __forceinline__ bool @name(const @0 *x, int a, int b, int c, int me, real mine)\n"
"{\n"
"	bool wins = true;\n"
"	for (int t0 = 0; wins && t0 < W::kernel0; t0++)\n"
"		for (int t1 = 0; wins && t1 < W::kernel1; t1++)\n"
"			for (int t2 = 0; wins && t2 < W::kernel2; t2++) {\n"
"				const int at = pool_place<W>(a, b, c, t0, t1, t2);\n"
"				const real v = at < 0 || at == me ? -INFINITY : @value0(x[at * W::step]);\n"
"				/* the last NaN, if there is any */\n"
"				if (at >= 0 && at != me)\n"
"					wins = at < me ? mine > v || mine != mine : v == v && !(v > mine);\n"
"			}\n"
"	return wins;\n"
"}\n";

static const char pool_output_cuda_text[] =
"/* The output whose window begins at a place along an axis, padding counted; -1: none does. */\n"
"template <int STRIDE, int OUT> static __device__ __forceinline__ int pool_output(int at)\n"
"{\n"
"	return at >= 0 && at % STRIDE == 0 && at / STRIDE < OUT ? at / STRIDE : -1;\n"
"}\n"
"/* see(a, b, c, at) of each output (a, b, c), element `at` of its plane, that sees place (i, j, k), in their order. */\n"
"template <class W, class S> static __device__ __forceinline__ void pool_seers(int i, int j, int k, S see)\n"
"{\n"
"	for (int t0 = W::kernel0 - 1; t0 >= 0; t0--)\n"
"		for (int t1 = W::kernel1 - 1; t1 >= 0; t1--)\n"
"			for (int t2 = W::kernel2 - 1; t2 >= 0; t2--) {\n"
"				const int a = pool_output<W::stride0, W::out0>(i + W::before0 - t0 * W::dilation0);\n"
"				const int b = pool_output<W::stride1, W::out1>(j + W::before1 - t1 * W::dilation1);\n"
"				const int c = pool_output<W::stride2, W::out2>(k + W::before2 - t2 * W::dilation2);\n"
"				if (a >= 0 && b >= 0 && c >= 0)\n"
"					see(a, b, c, (a * W::out1 + b) * W::out2 + c);\n"
"			}\n"
"}\n";

static const char pool_max_grad_cuda_text[] =
"/* The sum of the dy of those outputs of which x at (i, j, k) is the first of the largest, in their order. */\n"
"template <class W> static __device__ __forceinline__ real @name(const @0 *x, const @1 *dy, int i, int j, int k)\n"
"{\n"
"	const int me = (i * W::size1 + j) * W::size2 + k;\n"
"	const real mine = @value0(x[me * W::step]);\n"
"	real sum = 0;\n"
"	pool_seers<W>(i, j, k, [&](int a, int b, int c, int at) {\n"
"		if (pool_wins@suffix<W>(x, a, b, c, me, mine))\n"
"			sum += @value1(dy[at * W::step]);\n"
"	});\n"
"	return sum;\n"
"}\n";

static const char pool_gather_cuda_text[] =
"/* The sum of the dy of those outputs whose index says place (i, j, k), in their order; `first`: the index of the\n"
" * plane's first place. */\n"
"template <class W> static __device__ __forceinline__ real @name(const int64_t *index, const @0 *dy, int64_t first, int i, int j, int k)\n"
"{\n"
"	const int64_t me = first + (i * W::size1 + j) * W::size2 + k;\n"
"	real sum = 0;\n"
"	pool_seers<W>(i, j, k, [&](int, int, int, int at) {\n"
"		if (index[at] == me)\n"
"			sum += @value0(dy[at]);\n"
"	});\n"
"	return sum;\n"
"}\n";

static const char pool_count_cuda_text[] =
"/* What the sum over a window is divided by: how many elements it sees; with PAD, padding counts. */\n"
"static __device__ __forceinline__ int pool_count_along(int first, int step, int kernel, int end, bool pad)\n"
"{\n"
"	int n = 0;\n"
"	for (int t = 0; t < kernel; t++)\n"
"		n += (pad || first + t * step >= 0) && first + t * step < end;\n"
"	return n > 0 ? n : 1;\n"
"}\n"
"template <class W> static __device__ __forceinline__ real pool_count(int a, int b, int c)\n"
"{\n"
"	if (W::sums)\n"
"		return 1;\n"
"	const int n0 = pool_count_along(a * W::stride0 - W::before0, W::dilation0, W::kernel0, W::end0, W::pad);\n"
"	const int n1 = pool_count_along(b * W::stride1 - W::before1, W::dilation1, W::kernel1, W::end1, W::pad);\n"
"	const int n2 = pool_count_along(c * W::stride2 - W::before2, W::dilation2, W::kernel2, W::end2, W::pad);\n"
"	return (real)((int64_t)n0 * n1 * n2);\n"
"}\n";

static const char pool_average_cuda_text[] =
"/* The mean of what output (a, b, c) sees. */\n"
"template <class W> static __device__ __forceinline__ real @name(const @0 *x, int a, int b, int c)\n"
"{\n"
"	real sum = 0;\n"
"	pool_seen<W>(a, b, c, [&](int at) { sum += @value0(x[at * W::step]); });\n"
"	return W::sums ? sum : sum / pool_count<W>(a, b, c);\n"
"}\n";

static const char pool_average_grad_cuda_text[] =
"/* The sum of the shares of dy of the outputs that see (i, j, k), in their order. */\n"
"template <class W> static __device__ __forceinline__ real @name(const @0 *dy, int i, int j, int k)\n"
"{\n"
"	real sum = 0;\n"
"	pool_seers<W>(i, j, k, [&](int a, int b, int c, int at) {\n"
"		const real share = @value0(dy[at * W::step]);\n"
"		sum += W::sums ? share : share / pool_count<W>(a, b, c);\n"
"	});\n"
"	return sum;\n"
"}\n";
/* clang-format on */

#endif

/* Reductions as CUDA text: what the kernels of reduce_cuda.c call. Private to ops/. */
#ifndef STINT_OPS_REDUCE_CUDA_TEXT_H
#define STINT_OPS_REDUCE_CUDA_TEXT_H

/* clang-format off */
/* Template parameters: K, what is joined and how; S, where the elements are. */
static const char reduce_join_text[] =
"/* What an element counts as; what comes from an earlier stage is that already. */\n"
"template <class K, class X> static __device__ __forceinline__ double reduce_term(X x, real other)\n"
"{\n"
"	return (double)K::term(get_value(x), other);\n"
"}\n"
"template <class K> static __device__ __forceinline__ double reduce_term(double x, real)\n"
"{\n"
"	return x;\n"
"}\n"
"/* Over a row's threads by a fixed tree; the first has the result. */\n"
"template <class K, int THREADS_OF> static __device__ __forceinline__ double reduce_join(double x, double *part)\n"
"{\n"
"	for (int half = 16; half > 0; half /= 2)\n"
"		x = K::join(x, __shfl_xor_sync(0xFFFFFFFFu, x, half));\n"
"	if constexpr (THREADS_OF == ROW_BLOCK) {\n"
"		const int lane = (int)threadIdx.x % 32;\n"
"		if (lane == 0)\n"
"			part[threadIdx.x / 32] = x;\n"
"		__syncthreads();\n"
"		x = part[lane % 8];\n"
"		for (int half = 4; half > 0; half /= 2)\n"
"			x = K::join(x, __shfl_xor_sync(0xFFFFFFFFu, x, half));\n"
"		__syncthreads();\n"
"	}\n"
"	return x;\n"
"}\n";

static const char reduce_row_text[] =
"/* Elements [from, end) of those that one output is made of, which begin at x: packs of V lie side by side. */\n"
"template <class K, class S, int THREADS_OF, int V, class X>\n"
"static __device__ __forceinline__ double reduce_row(const X *x, int64_t from, int64_t end, real other, double *part)\n"
"{\n"
"	double sum = K::start();\n"
"	for (int64_t j = from + row_thread<THREADS_OF>() * V; j < end; j += THREADS_OF * V) {\n"
"		const pack<X, V> p = *(const pack<X, V> *)(x + S::along(j));\n"
"		for (int k = 0; k < V; k++)\n"
"			sum = K::join(sum, reduce_term<K>(p.of[k], other));\n"
"	}\n"
"	return reduce_join<K, THREADS_OF>(sum, part);\n"
"}\n";

static const char reduce_columns_text[] =
"/* Rows [from, end) of V columns that begin at x, for each of WIDTH threads side by side; 256 / WIDTH such groups\n"
" * share the rows. The first group has the results. */\n"
"template <class K, class S, int WIDTH, int V, class X>\n"
"static __device__ __forceinline__ void reduce_columns(\n"
"	double (&sum)[V], const X *x, int64_t from, int64_t end, bool inside, const real (&other)[V], double (*part)[256])\n"
"{\n"
"	const int t = (int)threadIdx.x, group = t / WIDTH;\n"
"	int groups = 256 / WIDTH;\n"
"	for (int k = 0; k < V; k++)\n"
"		sum[k] = K::start();\n"
"	for (int64_t j = from + group; j < end && inside; j += 256 / WIDTH) {\n"
"		const pack<X, V> p = *(const pack<X, V> *)(x + S::along(j));\n"
"		for (int k = 0; k < V; k++)\n"
"			sum[k] = K::join(sum[k], reduce_term<K>(p.of[k], other[k]));\n"
"	}\n"
"	while (groups > 1) {\n"
"		const int half = (groups + 1) / 2;\n"
"		for (int k = 0; k < V; k++)\n"
"			part[k][t] = sum[k];\n"
"		__syncthreads();\n"
"		for (int k = 0; k < V && group + half < groups; k++)\n"
"			sum[k] = K::join(sum[k], part[k][t + half * WIDTH]);\n"
"		__syncthreads();\n"
"		groups = half;\n"
"	}\n"
"}\n";
/* clang-format on */

#endif

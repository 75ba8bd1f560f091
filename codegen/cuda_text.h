/* What CUDA kernels are written with, as text: header-free, for NVRTC (--fmad=false
 * --device-as-default-execution-space). What needs PTX is left out where STINT_SHIM is defined:
 * there tests/gpu/shim/primitives.h has the same functions for a CPU. Layouts: PTX
 * ISA 9.1, 9.7.14.5.7 (m16n8k8), 9.7.14.5.8 (m16n8k16), 9.7.14.5.15 (ldmatrix), and "cp.async". */
#ifndef STINT_CODEGEN_CUDA_TEXT_H
#define STINT_CODEGEN_CUDA_TEXT_H

/* clang-format off */
static const char cuda_types_text[] =
"\n"
"/* As stdint.h has them where a `long` has 64 bits; there is no header to include. */\n"
"typedef signed char int8_t;\n"
"typedef unsigned char uint8_t;\n"
"typedef short int16_t;\n"
"typedef unsigned short uint16_t;\n"
"typedef int int32_t;\n"
"typedef unsigned int uint32_t;\n"
"typedef long int64_t;\n"
"typedef unsigned long uint64_t;\n";

static const char cuda_numbers_text[] =
"\n"
"#ifndef INFINITY\n"
"#define INFINITY __int_as_float(0x7F800000)\n"
"#define NAN __int_as_float(0x7FC00000)\n"
"#endif\n"
"#ifndef INT64_MAX\n"
"#define INT64_MAX 0x7FFFFFFFFFFFFFFF\n"
"#define INT64_MIN (-INT64_MAX - 1)\n"
"#endif\n";

static const char cuda_dynamic_text[] =
"\n"
"/* The shared memory whose size the launch gives, as elements of a type. */\n"
"#ifndef STINT_SHIM\n"
"#define DYNAMIC_SHARED(type, name)                                                                 \\\n"
"\textern __shared__ __align__(128) unsigned char dynamic_shared_[];                          \\\n"
"\ttype *const name = (type *)dynamic_shared_\n"
"#endif\n";

static const char cuda_shared_address_text[] =
"\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ unsigned shared_address(const void *p)\n"
"{\n"
"\treturn (unsigned)__cvta_generic_to_shared(p);\n"
"}\n"
"#endif\n";

static const char cuda_mma_bf16_text[] =
"\n"
"/* d += a b for a of 16 x 16 and b of 16 x 8 bf16, d of 16 x 8 floats, spread over a warp: with g = lane / 4\n"
" * and t = lane % 4, a[] holds two of a row each: (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8); b[] two\n"
" * of a column each: (2t, g), (2t + 8, g); d[] (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1). */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ void mma_bf16(float *d, const unsigned *a, const unsigned *b)\n"
"{\n"
"\tasm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, \"\n"
"\t\t     \"{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
"\t\t     : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3])\n"
"\t\t     : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));\n"
"}\n"
"#endif\n";

static const char cuda_mma_f16_text[] =
"\n"
"/* d += a b for a of 16 x 16 and b of 16 x 8 f16, d of 16 x 8 floats, spread over a warp: with g = lane / 4\n"
" * and t = lane % 4, a[] holds two of a row each: (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8); b[] two\n"
" * of a column each: (2t, g), (2t + 8, g); d[] (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1). */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ void mma_f16(float *d, const unsigned *a, const unsigned *b)\n"
"{\n"
"\tasm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, \"\n"
"\t\t     \"{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
"\t\t     : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3])\n"
"\t\t     : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));\n"
"}\n"
"#endif\n";

static const char cuda_mma_tf32_text[] =
"\n"
"/* d += a b for a of 16 x 8 and b of 8 x 8 tf32 (round_tf32 makes them), d of 16 x 8 floats: with g = lane / 4\n"
" * and t = lane % 4, a[] holds (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4); b[] (t, g), (t + 4, g); d[] as\n"
" * mma_bf16's. */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ void mma_tf32(float *d, const unsigned *a, const unsigned *b)\n"
"{\n"
"\tasm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, \"\n"
"\t\t     \"{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
"\t\t     : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3])\n"
"\t\t     : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));\n"
"}\n"
"#endif\n";

static const char cuda_round_tf32_text[] =
"\n"
"/* A float to 10 bits of fraction, ties away from zero. */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ unsigned round_tf32(float x)\n"
"{\n"
"\tunsigned y;\n"
"\tasm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(y) : \"f\"(x));\n"
"\treturn y;\n"
"}\n"
"#endif\n";

static const char cuda_ldmatrix_x4_text[] =
"\n"
"/* Four matrices of 8 x 8 elements of 16 bits from shared memory: lane 8 m + i says where row i of matrix m\n"
" * is (16 bytes, aligned), and gets in r[m] elements (lane / 4, 2 (lane % 4)) and the next of matrix m. */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ void ldmatrix_x4(unsigned *r, const void *row)\n"
"{\n"
"\tasm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\"\n"
"\t\t     : \"=r\"(r[0]), \"=r\"(r[1]), \"=r\"(r[2]), \"=r\"(r[3])\n"
"\t\t     : \"r\"(shared_address(row))\n"
"\t\t     : \"memory\");\n"
"}\n"
"#endif\n";

static const char cuda_ldmatrix_x4_trans_text[] =
"\n"
"/* The same, of each matrix's transpose. */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ void ldmatrix_x4_trans(unsigned *r, const void *row)\n"
"{\n"
"\tasm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\"\n"
"\t\t     : \"=r\"(r[0]), \"=r\"(r[1]), \"=r\"(r[2]), \"=r\"(r[3])\n"
"\t\t     : \"r\"(shared_address(row))\n"
"\t\t     : \"memory\");\n"
"}\n"
"#endif\n";

static const char cuda_cp_async_4_text[] =
"\n"
"/* Starts a copy of 4 bytes (both aligned to it) from global to shared memory, the first `have` of them, then\n"
" * zeros. It is there once cp_async_wait says so, for others behind the next barrier. */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ void cp_async_4(void *shared, const void *global, int have)\n"
"{\n"
"\tasm volatile(\"cp.async.ca.shared.global [%0], [%1], 4, %2;\"\n"
"\t\t     :\n"
"\t\t     : \"r\"(shared_address(shared)), \"l\"(__cvta_generic_to_global(global)), \"r\"(have)\n"
"\t\t     : \"memory\");\n"
"}\n"
"#endif\n";

static const char cuda_cp_async_8_text[] =
"\n"
"/* Starts a copy of 8 bytes (both aligned to it) from global to shared memory, the first `have` of them, then\n"
" * zeros. It is there once cp_async_wait says so, for others behind the next barrier. */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ void cp_async_8(void *shared, const void *global, int have)\n"
"{\n"
"\tasm volatile(\"cp.async.ca.shared.global [%0], [%1], 8, %2;\"\n"
"\t\t     :\n"
"\t\t     : \"r\"(shared_address(shared)), \"l\"(__cvta_generic_to_global(global)), \"r\"(have)\n"
"\t\t     : \"memory\");\n"
"}\n"
"#endif\n";

static const char cuda_cp_async_16_text[] =
"\n"
"/* Starts a copy of 16 bytes (both aligned to it) from global to shared memory, the first `have` of them, then\n"
" * zeros. It is there once cp_async_wait says so, for others behind the next barrier. */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ void cp_async_16(void *shared, const void *global, int have)\n"
"{\n"
"\tasm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\"\n"
"\t\t     :\n"
"\t\t     : \"r\"(shared_address(shared)), \"l\"(__cvta_generic_to_global(global)), \"r\"(have)\n"
"\t\t     : \"memory\");\n"
"}\n"
"#endif\n";

static const char cuda_cp_async_commit_text[] =
"\n"
"/* What this thread has started since the last one is a group. */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ void cp_async_commit()\n"
"{\n"
"\tasm volatile(\"cp.async.commit_group;\" : : : \"memory\");\n"
"}\n"
"#endif\n";

static const char cuda_cp_async_wait_text[] =
"\n"
"/* Until all but the last n of this thread's groups are there. */\n"
"#ifndef STINT_SHIM\n"
"template <int n> static __device__ __forceinline__ void cp_async_wait()\n"
"{\n"
"\tasm volatile(\"cp.async.wait_group %0;\" : : \"n\"(n) : \"memory\");\n"
"}\n"
"#endif\n";

static const char cuda_pack_bf16_text[] =
"\n"
"/* Two floats as bf16, to the nearest, ties to even: the first in the lower half. */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ unsigned pack_bf16(float low, float high)\n"
"{\n"
"\tunsigned y;\n"
"\tasm(\"cvt.rn.bf16x2.f32 %0, %1, %2;\" : \"=r\"(y) : \"f\"(high), \"f\"(low));\n"
"\treturn y;\n"
"}\n"
"#endif\n";

static const char cuda_pack_f16_text[] =
"\n"
"/* Two floats as f16, to the nearest, ties to even: the first in the lower half. */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ unsigned pack_f16(float low, float high)\n"
"{\n"
"\tunsigned y;\n"
"\tasm(\"cvt.rn.f16x2.f32 %0, %1, %2;\" : \"=r\"(y) : \"f\"(high), \"f\"(low));\n"
"\treturn y;\n"
"}\n"
"#endif\n";

static const char cuda_wide_f16_text[] =
"\n"
"/* The float that an f16 is. */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ float wide_f16(unsigned short x)\n"
"{\n"
"\tfloat y;\n"
"\tasm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x));\n"
"\treturn y;\n"
"}\n"
"#endif\n";

static const char cuda_exp2_near_text[] =
"\n"
"/* 2 to the x, within 2^-22 of it; what would be subnormal is 0. For what is rounded to 16 bits or\n"
" * summed by mma: devices may differ in its last bits. */\n"
"#ifndef STINT_SHIM\n"
"static __device__ __forceinline__ float exp2_near(float x)\n"
"{\n"
"\tfloat y;\n"
"\tasm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x));\n"
"\treturn y;\n"
"}\n"
"#endif\n";

/* A piece and the words, separated by '|', that call for it in a kernel or in a later piece. */
struct cuda_piece {
	const char *words, *text;
};
/* In the order of printing. */
static const struct cuda_piece cuda_pieces[] = {
	{"int32_t|int64_t|uint32_t|uint16_t|uint64_t|uint8_t", cuda_types_text},
	{"INFINITY|NAN|INT64_MAX|INT64_MIN", cuda_numbers_text},
	{"DYNAMIC_SHARED", cuda_dynamic_text},
	{"shared_address", cuda_shared_address_text},
	{"mma_bf16", cuda_mma_bf16_text},
	{"mma_f16", cuda_mma_f16_text},
	{"mma_tf32", cuda_mma_tf32_text},
	{"round_tf32", cuda_round_tf32_text},
	{"ldmatrix_x4", cuda_ldmatrix_x4_text},
	{"ldmatrix_x4_trans", cuda_ldmatrix_x4_trans_text},
	{"cp_async_4", cuda_cp_async_4_text},
	{"cp_async_8", cuda_cp_async_8_text},
	{"cp_async_16", cuda_cp_async_16_text},
	{"cp_async_commit", cuda_cp_async_commit_text},
	{"cp_async_wait", cuda_cp_async_wait_text},
	{"pack_bf16", cuda_pack_bf16_text},
	{"pack_f16", cuda_pack_f16_text},
	{"wide_f16", cuda_wide_f16_text},
	{"exp2_near", cuda_exp2_near_text},
};
/* clang-format on */

#endif

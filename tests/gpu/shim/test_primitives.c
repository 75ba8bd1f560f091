/* test_primitives LIBRARY: who holds what in mma and ldmatrix, as the PTX ISA 9.1 has it
 * (9.7.14.5.7, 9.7.14.5.8, 9.7.14.5.15), and what conversions give. The indices here are the
 * manual's, element by element, not the shim's. */
#include <math.h>
#include <string.h>

#include "tests/gpu/samples/reference.h"
#include "tests/gpu/shim/tools.h"

/* Whole numbers below 16, exact in all three types. */
static int element_a(int row, int k)
{
	return (row * 5 + k * 3) % 16 - 7;
}

static int element_b(int k, int column)
{
	return (k * 7 + column * 2) % 13 - 6;
}

enum { BF16, F16, TF32 };

static unsigned bits(int kind, int value)
{
	const float f = (float)value;
	unsigned i;
	memcpy(&i, &f, sizeof i);
	if (kind == TF32)
		return i;
	if (kind == BF16)
		return i >> 16;
	if (value == 0)
		return 0;
	return (i >> 16 & 0x8000) | ((i >> 23 & 255) - 127 + 15) << 10 | (i >> 13 & 0x3FF);
}

/* 9.7.14.5.8: a0 ... a7 and b0 ... b3, two to a register, the lower half first. */
static void fragments_16(int kind, int lane, unsigned *a, unsigned *b)
{
	const int group = lane >> 2, in_group = lane % 4;
	memset(a, 0, 4 * sizeof *a);
	memset(b, 0, 2 * sizeof *b);
	for (int i = 0; i < 8; i++) {
		const int row = (0 <= i && i < 2) || (4 <= i && i < 6) ? group : group + 8;
		const int column = i < 4 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8;
		a[i / 2] |= bits(kind, element_a(row, column)) << 16 * (i % 2);
	}
	for (int i = 0; i < 4; i++) {
		const int row = i < 2 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8;
		b[i / 2] |= bits(kind, element_b(row, group)) << 16 * (i % 2);
	}
}

/* 9.7.14.5.7, .tf32 */
static void fragments_tf32(int lane, unsigned *a, unsigned *b)
{
	const int group = lane >> 2, in_group = lane % 4;
	for (int i = 0; i < 4; i++) {
		const int row = i == 0 || i == 2 ? group : group + 8;
		const int column = i < 2 ? in_group : in_group + 4;
		a[i] = bits(TF32, element_a(row, column));
	}
	for (int i = 0; i < 2; i++)
		b[i] = bits(TF32, element_b(i == 0 ? in_group : in_group + 4, group));
}

static void check_mma(int kind)
{
	unsigned a[32][4], b[32][2];
	float d[32][4];
	void *pa = a, *pb = b, *pd = d;
	const int k = kind == TF32 ? 8 : 16;
	for (int lane = 0; lane < 32; lane++) {
		if (kind == TF32)
			fragments_tf32(lane, a[lane], b[lane]);
		else
			fragments_16(kind, lane, a[lane], b[lane]);
		for (int i = 0; i < 4; i++)
			d[lane][i] = (float)(lane * 4 + i);
	}
	const char *error = shim_launch(text, &(struct shim_launch){.kernel = "k_mma",
						      .block = {32},
						      .nargs = 4,
						      .args = (void *[]){&pd, &pa, &pb, &kind}});
	if (error)
		fail_msg("%s", error);
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < 4; i++) {
			const int row = i < 2 ? lane >> 2 : (lane >> 2) + 8;
			const int column = lane % 4 * 2 + (i & 1);
			int sum = lane * 4 + i;
			for (int l = 0; l < k; l++)
				sum += element_a(row, l) * element_b(l, column);
			assert_int_equal((int)d[lane][i], sum);
		}
}

static void mma_bf16(void **state)
{
	(void)state;
	check_mma(BF16);
}

static void mma_f16(void **state)
{
	(void)state;
	check_mma(F16);
}

static void mma_tf32(void **state)
{
	(void)state;
	check_mma(TF32);
}

/* Also: cp.async fills up with zeros. */
static void ldmatrix(void **state)
{
	(void)state;
	static _Alignas(16) uint16_t x[32][8];
	unsigned r[2][32][4];
	void *px = x, *pr = r;
	for (int i = 0; i < 256; i++)
		x[i / 8][i % 8] = (uint16_t)(i + 1);
	const char *error = shim_launch(text, &(struct shim_launch){.kernel = "k_ldmatrix",
						      .block = {32},
						      .nargs = 2,
						      .args = (void *[]){&pr, &px}});
	if (error)
		fail_msg("%s", error);
	/* the last row's copies took 4 bytes of 8 */
	x[31][2] = x[31][3] = x[31][6] = x[31][7] = 0;
	for (int lane = 0; lane < 32; lane++)
		for (int m = 0; m < 4; m++)
			for (int h = 0; h < 2; h++) {
				const int row = lane / 4, column = lane % 4 * 2 + h;
				assert_int_equal(
					r[0][lane][m] >> 16 * h & 0xFFFF, x[8 * m + row][column]);
				assert_int_equal(
					r[1][lane][m] >> 16 * h & 0xFFFF, x[8 * m + column][row]);
			}
}

static void conversions(void **state)
{
	(void)state;
	/* float, its f16, its tf32; ties, the largest and the smallest */
	static const struct {
		float x;
		unsigned f16, tf32;
	} want[] = {{1, 0x3C00, 0x3F800000}, {-2.5f, 0xC100, 0xC0200000},
		{65504, 0x7BFF, 0x477FE000}, {65519.996f, 0x7BFF, 0x477FE000},
		{65520, 0x7C00, 0x47800000}, {INFINITY, 0x7C00, 0x7F800000},
		{6.1035156e-05f, 0x0400, 0x38800000}, {5.9604645e-08f, 0x0001, 0x33800000},
		{2.9802322e-08f, 0x0000, 0x33000000}, {8.940697e-08f, 0x0002, 0x33C00000},
		{1.00048828125f, 0x3C00, 0x3F802000}, {1.00146484375f, 0x3C02, 0x3F804000},
		{2047.5f, 0x6800, 0x45000000}, {0, 0, 0}};
	enum { N = sizeof want / sizeof *want };
	float x[N], z[N], e[N];
	unsigned y[N][3];
	void *px = x, *py = y, *pz = z, *pe = e;
	int n = N;
	for (int i = 0; i < N; i++)
		x[i] = want[i].x;
	const char *error = shim_launch(text, &(struct shim_launch){.kernel = "k_convert",
						      .block = {32},
						      .nargs = 5,
						      .args = (void *[]){&py, &pz, &pe, &px, &n}});
	if (error)
		fail_msg("%s", error);
	for (int i = 0; i < N; i++) {
		assert_int_equal(y[i][0] & 0xFFFF, ref_narrow(x[i]));
		assert_int_equal(y[i][0] >> 16, ref_narrow(-x[i]));
		assert_int_equal(y[i][1] & 0xFFFF, want[i].f16);
		assert_int_equal(y[i][1] >> 16, want[i].f16 ^ 0x8000);
		assert_int_equal(y[i][2], want[i].tf32);
		assert_true(
			e[i] == exp2f(x[i]) || fabsf(e[i] - exp2f(x[i])) <= exp2f(x[i]) / 4194304);
		if (isfinite(z[i]))
			assert_true(
				fabsf(z[i] - x[i]) <= fmaxf(fabsf(x[i]) / 2048, 2.9802322e-08f));
		else
			assert_true(x[i] >= 65520);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	text_library = argv[1];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mma_bf16),
		cmocka_unit_test(mma_f16),
		cmocka_unit_test(mma_tf32),
		cmocka_unit_test(ldmatrix),
		cmocka_unit_test(conversions),
	};
	return cmocka_run_group_tests(tests, text_open, text_close);
}

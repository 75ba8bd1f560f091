/* Linked with the loops of math_loops.c, for any machine: prints a number for each function, made
 * from the bits of its results over floats of every size (every NaN counts as the same). Fails
 * where a loop of 1 to 130 elements, from any place, gives other bits than the elements one by
 * one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/codegen/math_loops.h"

#define DECLARE(capital, name, most) math_loop v_##name;
MATH_FUNCTIONS(DECLARE)
#undef DECLARE
math_loop2 v_pow;

enum { PART = 4096, LONGEST = 130, OFFSETS = 16, ROOM = LONGEST + OFFSETS };

static float exponent[PART]; /* of v_pow */

static uint32_t bits_of(float x)
{
	uint32_t b;
	memcpy(&b, &x, sizeof b);
	return isnan(x) ? 0x7FC00000 : b;
}

static void run(math_loop *loop, int64_t n, const float *x, const float *b, float *y)
{
	if (loop)
		loop(n, x, y);
	else
		v_pow(n, x, b, y);
}

/* FNV-1a, 64 bits: Fowler, Noll, Vo, Eastlake, "The FNV non-cryptographic hash algorithm". */
static uint64_t hash_of(math_loop *loop)
{
	static float x[PART], y[PART];
	uint64_t hash = UINT64_C(14695981039346656037);
	for (uint64_t bits = 0; bits < UINT64_C(1) << 32;) {
		int n = 0;
		for (; n < PART && bits < UINT64_C(1) << 32; n++, bits += 3001) {
			const uint32_t b = (uint32_t)bits;
			memcpy(&x[n], &b, sizeof b);
		}
		run(loop, n, x, exponent, y);
		for (int i = 0; i < n; i++)
			hash = (hash ^ bits_of(y[i])) * UINT64_C(1099511628211);
	}
	return hash;
}

/* Some are large, some small, some special: neighbours differ. */
static float sample(int i)
{
	static const float odd[] = {0, -0.0f, INFINITY, NAN, 1e-42f, -200, 1e30f, 1};
	if (i % 5 == 4)
		return odd[i / 5 % 8];
	return ldexpf((float)(i * 37 % 101 - 50), i % 3 == 0 ? -6 : i % 3 == 1 ? -12 : 0);
}

static bool lengths_agree(math_loop *loop)
{
	float x[ROOM], y[ROOM], alone[ROOM];
	for (int i = 0; i < ROOM; i++) {
		x[i] = sample(i);
		run(loop, 1, &x[i], &exponent[i], &alone[i]);
	}
	for (int offset = 0; offset < OFFSETS; offset++)
		for (int n = 1; n <= LONGEST; n++) {
			run(loop, n, x + offset, exponent + offset, y + offset);
			for (int i = offset; i < offset + n; i++)
				if (bits_of(y[i]) != bits_of(alone[i]))
					return false;
		}
	return true;
}

int main(void)
{
#define ROW(capital, name, most) {#name, v_##name},
	const struct {
		const char *name;
		math_loop *loop;
	} row[] = {MATH_FUNCTIONS(ROW){"pow", NULL}};
#undef ROW
	bool good = true;
	for (int i = 0; i < PART; i++)
		exponent[i] = (float)(i * 733 % PART) / 64 - 32;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		printf("%s %016llx\n", row[i].name, (unsigned long long)hash_of(row[i].loop));
		if (!lengths_agree(row[i].loop)) {
			printf("%s: a vector and a single element disagree\n", row[i].name);
			good = false;
		}
	}
	return !good;
}

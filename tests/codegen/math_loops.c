#include "tests/codegen/math_loops.h"

#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void write_narrow(FILE *f, const char *name)
{
	fprintf(f,
		"\nvoid n_wide_%s(int64_t n, const uint16_t *restrict x, float *restrict y)\n"
		"{\n\tfor (int64_t i = 0; i < n; i++)\n\t\ty[i] = wide_%s(x[i]);\n}\n",
		name, name);
	fprintf(f,
		"\nvoid n_narrow_%s(int64_t n, const float *restrict x, uint16_t *restrict y)\n"
		"{\n\tfor (int64_t i = 0; i < n; i++)\n\t\ty[i] = narrow_%s(x[i]);\n}\n",
		name, name);
}

bool math_loops_write(const char *path)
{
	FILE *f = fopen(path, "w");
	if (!f)
		return false;
	fprintf(f, "#include \"%s/kernels/math.h\"\n#include \"%s/kernels/narrow.h\"\n",
		STINT_SOURCE, STINT_SOURCE);
#define LOOP(capital, name, most)                                                                  \
	fprintf(f, "\nvoid v_" #name "(int64_t n, const float *restrict x, float *restrict y)\n"   \
		   "{\n\tfor (int64_t i = 0; i < n; i++)\n\t\ty[i] = " #capital "(x[i]);\n}\n");
	MATH_FUNCTIONS(LOOP)
#undef LOOP
	fprintf(f, "\nvoid v_normal_cdf(int64_t n, const float *restrict x, float *restrict y)\n"
		   "{\n\tfor (int64_t i = 0; i < n; i++)\n\t\ty[i] = NORMAL_CDF(x[i]);\n}\n");
	fprintf(f, "\nvoid v_pow(int64_t n, const float *restrict a, const float *restrict b, "
		   "float *restrict y)\n"
		   "{\n\tfor (int64_t i = 0; i < n; i++)\n\t\ty[i] = POW(a[i], b[i]);\n}\n");
	/* one inside another: compilers have made branches of that */
	fprintf(f, "\nvoid v_softplus(int64_t n, const float *restrict x, float *restrict y)\n"
		   "{\n\tfor (int64_t i = 0; i < n; i++)\n"
		   "\t\ty[i] = (x[i] > 0 ? x[i] : 0) + LOG1P(EXP(-fabsf(x[i])));\n}\n");
	write_narrow(f, "bf16");
	write_narrow(f, "fp16");
	return fclose(f) == 0;
}

void *math_loops_open(const char *folder, const char *more)
{
	char path[4096], command[9000];
	snprintf(path, sizeof path, "%s/math.c", folder);
	if (!math_loops_write(path))
		return NULL;
	snprintf(command, sizeof command,
		"${CC:-cc} -std=gnu11 -O3 %s -ffp-contract=off -fno-math-errno -fno-trapping-math "
		"-fPIC "
		"-Wall -Wextra -Werror -shared -o %s/math.so %s -lm",
		more, folder, path);
	if (system(command) != 0)
		return NULL;
	snprintf(path, sizeof path, "%s/math.so", folder);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

double math_distance(float got, double want)
{
	const float nearest = (float)want;
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0 : INFINITY;
	if (got == nearest && (isinf(got) || got == 0))
		return !signbit(got) == !signbit(want) ? 0 : INFINITY;
	if (got == 0 && !signbit(got) != !signbit(want))
		return INFINITY;
	const double g = isinf(got) ? copysign(0x1p128, (double)got) : (double)got;
	const double w = fabs(want) > 0x1p128 ? copysign(0x1p128, want) : want;
	int exponent = w == 0 ? -126 : ilogb(w);
	exponent = exponent < -126 ? -126 : exponent > 127 ? 127 : exponent;
	return fabs(g - w) / ldexp(1, exponent - FLT_MANT_DIG + 1);
}

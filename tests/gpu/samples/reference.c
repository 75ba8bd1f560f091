
/* What the samples' kernels compute, as plain loops. */
#include "tests/gpu/samples/reference.h"

#include "kernels/math.h"
#include "kernels/narrow.h"

void ref_gelu(real *y, const real *x, const real *bias, int64_t n, int64_t columns)
{
	for (int64_t i = 0; i < n; i++) {
		const real t = x[i] + bias[i % columns];
		y[i] = t * NORMAL_CDF(t) * 0.5f;
	}
}

void ref_functions(real *y, const real *x, int64_t n)
{
	for (int64_t i = 0; i < n; i += 4) {
		y[i] = EXP(x[i]) / (1 + EXP(x[i]));
		y[i + 1] = TANH(x[i + 1]) + LOG1P(fabsf(x[i + 1]));
		y[i + 2] = ERF(x[i + 2]) - LOG(x[i + 2] * x[i + 2] + 1e-6f);
		y[i + 3] = sqrtf(fabsf(x[i + 3])) * (real)(x[i + 3] > 0 ? 1 : -1);
	}
}

void ref_wide(real *y, const real *x0, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		const real x = x0[i];
		y[i] = POW(fabsf(x), 1.7f) + SIN(x) - COS(x) + TAN(x);
		y[n + i] = SINH(x * 0.1f) + COSH(x * 0.1f) + ASINH(x) + ATAN(x) - ACOSH(1 + x * x);
		y[2 * n + i] = ASIN(x * 0.02f) + ACOS(x * 0.02f) + ATANH(x * 0.02f);
	}
}

void ref_scale_bf16(bf16 *y, const bf16 *x, real scale, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = NARROW(WIDE(x[i]) * scale);
}

void ref_adamw(real *w, real *m, real *v, const real *g, const real *rate, int64_t n)
{
	const real lr = rate[0], c1 = rate[1], c2 = rate[2];
	for (int64_t i = 0; i < n; i++) {
		const real gi = g[i], mi = 0.9f * m[i] + 0.1f * gi;
		const real vi = 0.999f * v[i] + 0.001f * gi * gi;
		m[i] = mi;
		v[i] = vi;
		w[i] = w[i] - lr * 0.01f * w[i] - lr * (mi / c1) / (sqrtf(vi / c2) + 1e-8f);
	}
}

void ref_column_sum(real *y, const real *x, int64_t rows, int64_t columns)
{
	for (int64_t c = 0; c < columns; c++) {
		real lane[16] = {0};
		for (int64_t i = 0; i < rows; i++)
			lane[i % 16] += x[i * columns + c];
		for (int half = 8; half > 0; half /= 2)
			for (int k = 0; k < half; k++)
				lane[k] += lane[k + half];
		y[c] = lane[0];
	}
}

/* In double: what rows come out as, for a tolerance. */
void ref_softmax(double *y, const real *x, int64_t rows, int64_t n)
{
	for (int64_t r = 0; r < rows; r++) {
		double m = -INFINITY, s = 0;
		for (int64_t i = 0; i < n; i++)
			m = x[r * n + i] > m ? x[r * n + i] : m;
		for (int64_t i = 0; i < n; i++)
			s += exp(x[r * n + i] - m);
		for (int64_t i = 0; i < n; i++)
			y[r * n + i] = exp(x[r * n + i] - m) / s;
	}
}

void ref_layernorm(
	double *y, const real *x, const real *scale, const real *bias, int64_t rows, int64_t n)
{
	for (int64_t r = 0; r < rows; r++) {
		double m = 0, q = 0;
		for (int64_t i = 0; i < n; i++)
			m += (double)x[r * n + i] / (double)n;
		for (int64_t i = 0; i < n; i++)
			q += (x[r * n + i] - m) * (x[r * n + i] - m) / (double)n;
		for (int64_t i = 0; i < n; i++)
			y[r * n + i] = (x[r * n + i] - m) / sqrt(q + 1e-5) * scale[i] + bias[i];
	}
}

/* c = a b', of bf16. */
void ref_gemm_bf16(double *c, const bf16 *a, const bf16 *b, int64_t m, int64_t n, int64_t k)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			double s = 0;
			for (int64_t l = 0; l < k; l++)
				s += (double)WIDE(a[i * k + l]) * WIDE(b[j * k + l]);
			c[i * n + j] = s;
		}
}

unsigned ref_narrow(real x)
{
	return NARROW(x);
}

/* The loops of reference.c. */
#ifndef STINT_GPU_REFERENCE_H
#define STINT_GPU_REFERENCE_H

#include <stdint.h>

void ref_gelu(float *y, const float *x, const float *bias, int64_t n, int64_t columns);
void ref_functions(float *y, const float *x, int64_t n);
void ref_wide(float *y, const float *x, int64_t n);
void ref_scale_bf16(uint16_t *y, const uint16_t *x, float scale, int64_t n);
void ref_adamw(float *w, float *m, float *v, const float *g, const float *rate, int64_t n);
void ref_column_sum(float *y, const float *x, int64_t rows, int64_t columns);
void ref_softmax(double *y, const float *x, int64_t rows, int64_t n);
void ref_layernorm(
	double *y, const float *x, const float *scale, const float *bias, int64_t rows, int64_t n);
void ref_gemm_bf16(
	double *c, const uint16_t *a, const uint16_t *b, int64_t m, int64_t n, int64_t k);
unsigned ref_narrow(float x);

#endif

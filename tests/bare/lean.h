/* The products and convolutions of kernels/ as functions, compiled twice: with packing, and as a
 * microcontroller's step has them. */
#ifndef LEAN_H
#define LEAN_H

#include <stdint.h>

struct window;
struct conv_shape;
struct matmul_shape;

struct ways {
	void (*product)(const struct matmul_shape *s, float *y, const float *a, const float *b,
		const float *bias, void *ws);
	void (*forward)(const struct window *w, const struct conv_shape *s, float *y,
		const float *x, const float *weight, const float *bias, void *ws);
	void (*grad_x)(const struct window *w, const struct conv_shape *s, float *dx,
		const float *dy, const float *weight, void *ws);
	void (*grad_w)(const struct window *w, const struct conv_shape *s, float *dw,
		const float *x, const float *dy, void *ws);
	void (*depth)(const struct window *w, const struct conv_shape *s, float *dw, const float *x,
		const float *dy, void *ws);
};
extern const struct ways lean_ways, packed_ways;

#endif

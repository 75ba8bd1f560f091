/* SPDX-License-Identifier: MIT-0 */
/* What LSTM, GRU and the plain recurrent net are, whoever walks through time (recurrent.h on a CPU,
 * recurrent.cuh on a GPU). Gates stand in ONNX's order: LSTM i, o, f, c; GRU z, r, h. */
#ifndef STINT_KERNELS_RECURRENT_NET_H
#define STINT_KERNELS_RECURRENT_NET_H

#include "activation.h"
#include "steps.h"

struct recurrent_cell {
	int64_t gates;
	bool reset_after;  /* GRU: linear_before_reset */
	bool input_forget; /* LSTM: the forget gate is 1 - the input gate */
	real clip;         /* of what goes into an activation; 0: none */
};
struct recurrent {
	struct steps steps;
	struct recurrent_cell cell;
	const struct activation *act; /* three of each direction */
};

/* Tensors of the forward pass: optional ones may be NULL. Outputs: y, the states h and c, gates as
 * activated, aux: the cells (LSTM) or the hidden gate's recurrent part (GRU with reset_after). */
struct recurrent_tensors {
	real *y, *h, *c, *gates, *aux;
	const real *xw, *bias;
	const int64_t *length;
	const real *h0, *c0, *peephole;
};

/* Of the gradient: dh and dc are the states' gradients, dyh and dyc the last states'; gates are a
 * plain net's y. dxw may be gates. */
struct recurrent_slopes {
	real *dxw, *dh, *dc;
	const real *gates, *dy, *dyh, *dyc;
	const int64_t *length;
	const real *aux, *h0, *c0, *peephole, *y;
};

#endif

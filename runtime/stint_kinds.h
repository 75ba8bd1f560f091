/* SPDX-License-Identifier: MIT-0 */
/* What functions of a step return, what tensors' elements are, and what tensors are for: in every
 * step's tables. */
#ifndef STINT_KINDS_H
#define STINT_KINDS_H

enum {
	STINT_OK = 0,
	STINT_NO_MEMORY = 1,
	STINT_BAD_MACHINE =
		2, /* another instruction set, library version, ... than the step was planned for */
	STINT_BAD_DATA = 3, /* an unknown name, a wrong size, an index or label out of range */
	STINT_BAD_FILE = 4,
	STINT_NO_DEVICE = 5, /* no CUDA driver, or no device that it knows of */
	STINT_LOST = 6       /* another process of several is dead, or stuck (stint_mpi.h) */
};

/* Element types. Those of 2 bytes are met by stint_probe.output, in constants and in states, bytes
 * in constants and states; whole numbers of 4, by a microcontroller's step. */
enum {
	STINT_F32,
	STINT_F64,
	STINT_I64,
	STINT_BOOL,
	STINT_BF16,
	STINT_F16,
	STINT_I32,
	STINT_I8,
	STINT_U8
};

enum {
	STINT_INPUT,     /* set by the caller before each step (the target too) */
	STINT_PARAMETER, /* trained */
	STINT_BUFFER,    /* running statistics */
	STINT_STATE,     /* optimizer state */
	STINT_SUMS,      /* of gradients, from one micro-batch to the next: of a step alone */
	STINT_CONSTANT,
	STINT_CONTROL,  /* seed, step count, rows that count; learning rate: set by the functions
			   below */
	STINT_ELSEWHERE /* of the step for the longest inputs (stint_init_beside): kept, not read */
};

#endif

/* A test case of a record, whose author writes no other test. */
#ifndef STINT_GRAPH_OP_EXAMPLE_H
#define STINT_GRAPH_OP_EXAMPLE_H

struct op_example {
	/* Inputs, separated by spaces, by position. Each one of
	 *   2,3,8,8       reals drawn from [low, high); "()" is a scalar
	 *   2,3:data      the same, but no gradient is asked for
	 *   2,3:whole     reals that are whole numbers of [low, high): zeros and ties
	 *   4:i64<7       integers in [0, 7)
	 *   2,3:bool      booleans
	 *   =[1,-1]       a constant I64 vector; =3 a constant I64 scalar; =f0.5 a constant real
	 *                 scalar, =f[1,0.5] a vector
	 *   -             absent
	 * A letter a to h stands for a size from 2 to 6, A to H for one from 5 to 9, 2a for twice
	 * that: here and in `attr`, the same letter the same size. An example with letters is run
	 * five times, sizes drawn anew. */
	const char *in;
	const char *attr; /* "strides=2,2 alpha=0.1 mode=constant": ints, a decimal point makes a
			     float */
	double low, high; /* both 0: [-1, 1) */
	int nout;         /* outputs asked for; 0: the default */
	double tolerance; /* of the finite difference, relative; 0: the suite's */
};

#endif

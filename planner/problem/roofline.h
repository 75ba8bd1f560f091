/* What machines do in a microsecond: committed constants behind the default costs, never measured
 * when planning, so that a plan depends on model, target and budget alone. Only ratios matter to a
 * plan. */
#ifndef STINT_PLANNER_ROOFLINE_H
#define STINT_PLANNER_ROOFLINE_H

#include <stdbool.h>

struct roofline {
	double products,
		narrow_products; /* flops of a library's products: single precision, 16 bits */
	double own_narrow;       /* flops of products of 16 bits in generated kernels */
	double plain;            /* flops of generated kernels: sums, exponentials */
	double bytes;
	double launch; /* microseconds an op takes at least */
	double link; /* bytes of copies to the host's page-locked memory or back; 0: there are none
		      */
	bool fp16;   /* narrow_products are fp16's too, not bf16's alone */
};

/* `arch`: of a GPU, 90 is sm_90; 0: a CPU. NULL: not known. */
const struct roofline *roofline_of(int arch);

#endif

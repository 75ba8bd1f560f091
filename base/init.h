/* First values of parameters (torch.nn.init): they depend on a name and a place alone, and are the
 * same in every compilation. */
#ifndef STINT_BASE_INIT_H
#define STINT_BASE_INIT_H

#include <stdint.h>

/* The stream of a parameter of this name. */
uint64_t init_stream(const char *name);
/* Number i of a stream, as layers begin in PyTorch: Kaiming's uniform with a = sqrt(5), which is
 * 1 / sqrt(fan_in) to either side. */
double init_kaiming(uint64_t stream, int64_t i, int64_t fan_in);
/* Normal, of mean 0 and deviation 1, by Box and Muller. */
double init_normal(uint64_t stream, int64_t i);

#endif

#include "base/init.h"

#include <math.h>

/* FNV-1a, 64 bits. */
uint64_t init_stream(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return h;
}

double init_uniform(uint64_t stream, int64_t i)
{
	uint64_t z = stream + ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

double init_kaiming(uint64_t stream, int64_t i, int64_t fan_in)
{
	return (2 * init_uniform(stream, i) - 1) / sqrt((double)fan_in);
}

double init_normal(uint64_t stream, int64_t i)
{
	return sqrt(-2 * log(1 - init_uniform(stream, 2 * i))) *
	       cos(2 * acos(-1) * init_uniform(stream, 2 * i + 1));
}

#include "base/init.h"

#include <math.h>
#include <string.h>

#include "base/base.h"

uint64_t init_stream(const char *name)
{
	return hash_bytes(HASH_BEGIN, name, strlen(name));
}

/* Number i of a stream, uniform in [0, 1): SplitMix64 (Steele, Lea and Flood, "Fast splittable
 * pseudorandom number generators", 2014). */
static double uniform(uint64_t stream, int64_t i)
{
	uint64_t z = stream + ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

double init_kaiming(uint64_t stream, int64_t i, int64_t fan_in)
{
	return (2 * uniform(stream, i) - 1) / sqrt((double)fan_in);
}

double init_normal(uint64_t stream, int64_t i)
{
	return sqrt(-2 * log(1 - uniform(stream, 2 * i))) *
	       cos(2 * acos(-1) * uniform(stream, 2 * i + 1));
}

/* What the parts of the device test share: see device.h. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void device_wrong(struct device *t, const char *what)
{
	printf("WRONG: %s\n", what);
	t->wrong++;
}

/* A call that has to succeed; 0: it did. */
int device_tried(struct device *t, int rc, const char *what)
{
	if (!rc)
		return 0;
	printf("WRONG: %s: code %d: %s\n", what, rc, stint_gpu_message(t->g));
	t->wrong++;
	return 1;
}

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Small integers over 8: products and their sums are exact in fp32, in tf32 and in bf16. */
void device_random(float *x, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (float)((int)(next_random(&seed) >> 16) % 9 - 4) / 8;
}

/* --- Values on the host and on the device --- */

static uint16_t narrow(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float widen(uint16_t h)
{
	const uint32_t bits = (uint32_t)h << 16;
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

/* Between the host's floats and the device's type; `buffer` is pinned or plain host memory. */
int device_transfer(struct device *t, int to_device, enum stint_gpu_type type, stint_gpu_ptr at,
	float *x, size_t n)
{
	const size_t bytes = n * (type == STINT_GPU_F32 ? 4 : 2);
	uint16_t *half = malloc(bytes + 1);
	int rc = !half;
	if (!rc && type == STINT_GPU_F32)
		rc = to_device ? stint_gpu_put(t->g, 0, at, x, bytes)
			       : stint_gpu_get(t->g, 0, x, at, bytes);
	for (size_t i = 0; !rc && to_device && type != STINT_GPU_F32 && i < n; i++)
		half[i] = narrow(x[i]);
	if (!rc && type != STINT_GPU_F32)
		rc = to_device ? stint_gpu_put(t->g, 0, at, half, bytes)
			       : stint_gpu_get(t->g, 0, half, at, bytes);
	rc = device_tried(t, rc ? rc : stint_gpu_sync(t->g, 0), "transfer");
	for (size_t i = 0; !rc && !to_device && type != STINT_GPU_F32 && i < n; i++)
		x[i] = widen(half[i]);
	free(half);
	return rc;
}

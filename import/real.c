/* Real numbers in the types that files have. */
#include <math.h>
#include <string.h>

#include "import/import_parts.h"

static uint16_t to_f16(double v)
{
	const uint16_t sign = signbit(v) ? 0x8000 : 0;
	const double a = fabs(v);
	int exponent;
	if (isnan(v))
		return 0x7e00;
	if (a >= 65520) /* what is halfway to the next power of two, or beyond it */
		return sign | 0x7c00;
	if (a < ldexp(1, -14))
		return sign | (uint16_t)rint(ldexp(a, 24));
	frexp(a, &exponent);
	/* a carry out of the fraction is one more in the exponent */
	return (uint16_t)(sign + ((exponent + 14) << 10) +
			  (int)rint(ldexp(a, 11 - exponent) - 1024));
}

static uint16_t to_bf16(double v)
{
	const float f = (float)v;
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	if (isnan(v))
		return 0x7fc0;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void real_put(int32_t type, unsigned char *to, double v)
{
	const float f = (float)v;
	uint16_t half;
	switch (type) {
	case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
		memcpy(to, &v, sizeof v);
		break;
	case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
		half = to_f16(v);
		memcpy(to, &half, sizeof half);
		break;
	case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
		half = to_bf16(v);
		memcpy(to, &half, sizeof half);
		break;
	default:
		memcpy(to, &f, sizeof f);
	}
}

bool real_fits(int32_t type, double v)
{
	/* halfway between the largest number and the next power of two, which is an infinity */
	const double end = type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16    ? 65520
			   : type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16 ? 0x1.ffp127
			   : type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT    ? 0x1.ffffffp127
									     : INFINITY;
	return !isfinite(v) || fabs(v) < end;
}

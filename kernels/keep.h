/* SPDX-License-Identifier: MIT-0 */
/* How an optimizer's states are stored: as they are computed, or, where a step defines
 * STINT_STATE_BF16, in bf16, rounded up or down by chance, the likelier to where the nearer value
 * is: so what is too little to change a state adds up all the same (Gupta et al., "Deep Learning
 * with Limited Numerical Precision", 2015). The numbers drawn are those of the seed, the step, the
 * state and the element: an update that is made again makes the same. */
#ifndef STINT_KERNELS_KEEP_H
#define STINT_KERNELS_KEEP_H

#include "narrow.h"
#include "philox.h"

enum { DRAWN = 128 }; /* elements whose numbers are drawn side by side */

/* Of the two values in bf16 around x the upper one for as many of 65536 draws as x is parts of
 * 65536 away from the lower; a NaN stays one. */
static inline bf16 bf16_by_chance(float x, uint32_t draw)
{
	union {
		float f;
		uint32_t i;
	} t = {.f = x};
	const uint32_t some = (t.i + (draw & 0xFFFF)) >> 16, nan = t.i >> 16 | 0x40;
	return (bf16)(x != x ? nan : some);
}

#ifdef STINT_STATE_BF16
typedef bf16 kept;

static inline real kept_value(kept x)
{
	return (real)wide_bf16(x);
}

#ifdef __cplusplus
static inline kept kept_of(real v, const int64_t *control, int64_t key, int64_t i)
{
	uint32_t out[4];
	stint_philox_at(control[0], control[1], key, i & ~(int64_t)3, out);
	return bf16_by_chance(v, out[i & 3]);
}
#define DRAW(count, control, key, begin)                                                           \
	const int64_t *const drawn_control = (control);                                            \
	const int64_t drawn_key = (key)
#define KEEP(s, i, v, k) ((s)[i] = kept_of((v), drawn_control, drawn_key + (k), (i)))
#define DRAWN_TO(begin, end) (end)
#else
/* Numbers for the elements from `begin` on, up to a multiple of DRAWN, of so many states. */
#define DRAW(count, control, key, begin)                                                           \
	const int64_t drawn_from = (begin) / DRAWN * DRAWN;                                        \
	uint32_t drawn[count][DRAWN];                                                              \
	for (int which = 0; which < (count); which++)                                              \
	stint_philox_lanes((control)[0], (control)[1], (key) + which, drawn_from, drawn[which])
#define KEEP(s, i, v, k) ((s)[i] = bf16_by_chance((float)(v), drawn[k][(i)-drawn_from]))
#define DRAWN_TO(begin, end) MIN((end), ((begin) / DRAWN + 1) * DRAWN)
#endif
#else
typedef real kept;

static inline real kept_value(kept x)
{
	return x;
}
#define DRAW(count, control, key, begin)
#define KEEP(s, i, v, k) ((s)[i] = (v))
#define DRAWN_TO(begin, end) (end)
#endif

#endif

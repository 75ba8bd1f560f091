/* SPDX-License-Identifier: MIT-0 */
/* Which states of a chain of steps are kept for its reversal, where not all can be: Griewank and
 * Walther, "Algorithm 799: revolve", ACM TOMS 26(1), 2000. C11; graph/, too, reads it.
 *
 * The state before the first step is there; others may be stored in so many slots. Going forward a
 * step costs one; reversing a step, whose state must be there, costs none of these. Of l steps with
 * s slots, that before the first counted as one, the cheapest way goes forward r l - b(s + 1, r -
 * 1) times, where b(s, r) = (s + r)! / (s! r!), and r is such that b(s, r - 1) < l <= b(s, r). */
#ifndef STINT_KERNELS_REVOLVE_H
#define STINT_KERNELS_REVOLVE_H

#include <stdint.h>

/* b(s, r), or a number that is too large for any chain; 0 for r < 0. */
static inline int64_t revolve_steps(int64_t s, int64_t r)
{
	const int64_t most = INT64_C(1) << 40;
	const int64_t few = s < r ? s : r, many = s < r ? r : s;
	int64_t b = 1;
	if (r < 0)
		return 0;
	for (int64_t k = 1; k <= few; k++) {
		if (b > most / 2 || many + k > most)
			return most;
		b = (int64_t)((double)b / (double)k * (double)(many + k) + 0.5);
	}
	return b < most ? b : most;
}

/* How often the first step is done at most, but for its reversal: r above. */
static inline int64_t revolve_repeats(int64_t l, int64_t s)
{
	int64_t r = 0;
	while (revolve_steps(s, r) < l)
		r++;
	return r;
}

/* Steps forward, all in all, for l steps and so many slots beside the first state. */
static inline int64_t revolve_forward(int64_t l, int64_t slots)
{
	const int64_t s = slots + 1;
	if (l < 2)
		return 0;
	if (slots < 1)
		return l * (l - 1) / 2;
	const int64_t r = revolve_repeats(l, s);
	return r * l - revolve_steps(s + 1, r - 1);
}

/* Of l > 1 steps and slots > 0, the step before which the next state is stored. */
static inline int64_t revolve_next(int64_t l, int64_t slots)
{
	const int64_t s = slots + 1, r = revolve_repeats(l, s);
	const int64_t least = revolve_steps(s, r - 2), rest = l - revolve_steps(s - 1, r);
	const int64_t m = least > rest ? least : rest;
	return m < 1 ? 1 : m;
}

#endif

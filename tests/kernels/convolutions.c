/* The bits of convolutions (kernels/conv_forward.h, conv_grad_x.h, conv_grad_w.h) are those of
 * their rule, for every processor that they are compiled for and however they are cut into blocks:
 * an element is a chain of fused multiply-adds over GEMM_KC terms, in order, and such chains are
 * added in order. Terms are pairs of a channel and a tap; for the weight's gradient the places of
 * an image, one image after the other. Here by the C library's fma, one element at a time. rule.sh
 * compiles this for several processors, and runs it on them or under qemu; 1 where any bit differs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STINT_THREADS = 1 };
#include "kernels/conv_forward.h"
#include "kernels/conv_grad_w.h"
#include "kernels/conv_grad_x.h"

enum { ROOM = 1 << 16, SCRATCH = 1 << 20, CHANNELS = 200 };
static real x[ROOM], y[ROOM], weight[ROOM], bias[CHANNELS], is[ROOM], rule[ROOM];
static _Alignas(64) real scratch[SCRATCH];

static uint32_t state = 1;
static int64_t from_to(int64_t from, int64_t to)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return from + (int64_t)(state % (uint32_t)(to - from + 1));
}

static void fill(real *v)
{
	for (int i = 0; i < ROOM; i++)
		v[i] = (real)ldexp((double)from_to(-(1 << 29), 1 << 29), -27) *
		       (1 + (real)ldexp((double)from_to(0, 1 << 20), -40));
}

static real fused(real a, real b, real c)
{
#ifdef STINT_DOUBLE
	return fma(a, b, c);
#else
	return fmaf(a, b, c);
#endif
}

/* An element's sum so far, and the chain that is being added up. */
struct sum {
	real all, chain;
	int64_t terms;
	int any;
};

static void term(struct sum *s, real a, real b)
{
	s->chain = fused(a, b, s->chain);
	s->terms++;
}

static void end_chain(struct sum *s)
{
	if (s->terms > 0)
		s->all = s->any ? s->all + s->chain : s->chain;
	s->any |= s->terms > 0;
	s->chain = 0;
	s->terms = 0;
}

static void next(struct sum *s, real a, real b)
{
	term(s, a, b);
	if (s->terms == GEMM_KC)
		end_chain(s);
}

struct place {
	int64_t at[3];
};
static struct place place_of(const int64_t *size, int64_t i)
{
	return (struct place){{i / size[2] / size[1], i / size[2] % size[1], i % size[2]}};
}

/* The element of x that window o sees under tap t; -1: none. */
static int64_t seen(const struct window *w, int64_t o, int64_t t)
{
	const struct place p = place_of(w->out, o), tap = place_of(w->kernel, t);
	int64_t place = 0;
	for (int a = 0; a < 3; a++) {
		const int64_t i = p.at[a] * w->stride[a] + tap.at[a] * w->dilation[a] -
				  w->before[a];
		if (i < 0 || i >= w->size[a])
			return -1;
		place = place * w->size[a] + i;
	}
	return place;
}

/* The window that sees element i of x under tap t: -1: it would lie outside; -2: none could. */
static int64_t seer(const struct window *w, int64_t i, int64_t t)
{
	const struct place p = place_of(w->size, i), tap = place_of(w->kernel, t);
	int64_t place = 0;
	for (int a = 0; a < 3; a++)
		if ((p.at[a] + w->before[a] - tap.at[a] * w->dilation[a]) % w->stride[a])
			return -2;
	for (int a = 0; a < 3; a++) {
		const int64_t o = (p.at[a] + w->before[a] - tap.at[a] * w->dilation[a]) /
				  w->stride[a];
		if (o < 0 || o >= w->out[a])
			return -1;
		place = place * w->out[a] + o;
	}
	return place;
}

static void forward_by_the_rule(const struct window *w, const struct conv_shape *s, int with_bias)
{
	const int64_t taps = window_taps(w), plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t i = 0; i < s->images * s->filters * out; i++) {
		const int64_t k = i / out % s->filters, image = i / out / s->filters;
		const real *const from = x + (image * s->channels + k / filters * channels) * plane;
		struct sum sum = {.all = with_bias ? bias[k] : 0, .any = with_bias};
		for (int64_t c = 0; c < channels; c++)
			for (int64_t t = 0; t < taps; t++) {
				const int64_t at = seen(w, i % out, t);
				next(&sum, weight[(k * channels + c) * taps + t],
					at < 0 ? 0 : from[c * plane + at]);
			}
		end_chain(&sum);
		rule[i] = sum.all;
	}
}

static void grad_x_by_the_rule(const struct window *w, const struct conv_shape *s)
{
	const int64_t taps = window_taps(w), plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t i = 0; i < s->images * s->channels * plane; i++) {
		const int64_t c = i / plane % s->channels, image = i / plane / s->channels;
		const int64_t first = c / channels * filters;
		struct sum sum = {0};
		for (int64_t k = first; k < first + filters; k++)
			for (int64_t t = 0; t < taps; t++) {
				const int64_t at = seer(w, i % plane, t);
				if (at > -2)
					next(&sum, weight[(k * channels + c % channels) * taps + t],
						at < 0 ? 0
						       : y[(image * s->filters + k) * out + at]);
			}
		end_chain(&sum);
		rule[i] = sum.all;
	}
}

static void grad_w_by_the_rule(const struct window *w, const struct conv_shape *s)
{
	const int64_t taps = window_taps(w), plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t i = 0; i < s->filters * channels * taps; i++) {
		const int64_t c = i / taps % channels, k = i / taps / channels;
		struct sum sum = {.any = 1};
		for (int64_t b = 0; b < s->images; b++) {
			const real *const from = x +
						 (b * s->channels + k / filters * channels + c) *
							 plane;
			for (int64_t o = 0; o < out; o++) {
				const int64_t at = seen(w, o, i % taps);
				next(&sum, y[(b * s->filters + k) * out + o],
					at < 0 ? 0 : from[at]);
			}
			end_chain(&sum);
		}
		rule[i] = sum.all;
	}
}

static int check(const char *what, const struct window *w, const struct conv_shape *s, int64_t n)
{
	for (int64_t i = 0; i < ROOM; i++) {
		if (i < n ? memcmp(is + i, rule + i, sizeof *is) == 0 : is[i] != is[i])
			continue;
		printf("%s: %d images, %d channels, %d filters, %d groups; blocks %d %d %d %d "
		       "%d:\n",
			what, (int)s->images, (int)s->channels, (int)s->filters, (int)s->groups,
			(int)s->rows, (int)s->columns, (int)s->lines, (int)s->turn, (int)s->boxes);
		for (int a = 0; a < 3; a++)
			printf("size %d, kernel %d, stride %d, dilation %d, padding %d and %d\n",
				(int)w->size[a], (int)w->kernel[a], (int)w->stride[a],
				(int)w->dilation[a], (int)w->before[a], (int)w->after[a]);
		printf("element %d of %d is %a, by the rule %a\n", (int)i, (int)n, (double)is[i],
			(double)(i < n ? rule[i] : 0));
		return 1;
	}
	return 0;
}

/* What is not written stays NaN, and so does what no turn may read. */
static void forget(void)
{
	memset(is, 0xff, sizeof is);
	memset(scratch, 0xff, sizeof scratch);
}

/* All three passes, each cut at random, turns from the last to the first. */
static int passes(const struct window *w, struct conv_shape s)
{
	const int64_t channels = s.channels / s.groups, filters = s.filters / s.groups;
	const int with_bias = (int)from_to(0, 1);
	int64_t most[3], phases = 1;
	for (int a = 0; a < 3; a++) {
		most[a] = (w->size[a] + w->stride[a] - 1) / w->stride[a];
		phases *= w->stride[a];
	}
	s.rows = 12 * from_to(1, 4);
	s.lines = from_to(1, 9);
	s.columns = from_to(1, 60);
	s.turn = from_to(1, 7);
	s.boxes = from_to(0, 4);
	forget();
	forward_by_the_rule(w, &s, with_bias);
	for (int64_t t = s.groups * conv_turns(&s, filters, w->out) - 1; t >= 0; t--)
		conv_forward(w, &s, is, x, weight, with_bias ? bias : NULL, scratch, t, t + 1);
	if (check("forward", w, &s, s.images * s.filters * window_out(w)))
		return 1;
	forget();
	grad_x_by_the_rule(w, &s);
	for (int64_t t = s.groups * phases * conv_turns(&s, channels, most) - 1; t >= 0; t--)
		conv_grad_x(w, &s, is, y, weight, scratch, t, t + 1);
	if (check("gradient of x", w, &s, s.images * s.channels * window_plane(w)))
		return 1;
	forget();
	s.columns = from_to(1, channels);
	s.boxes = from_to(0, 1);
	grad_w_by_the_rule(w, &s);
	for (int64_t t = s.groups * ((filters + s.rows - 1) / s.rows) *
				 ((channels + s.columns - 1) / s.columns) -
			 1;
		t >= 0; t--)
		conv_grad_w(w, &s, is, x, y, scratch, t, t + 1);
	return check("gradient of the weight", w, &s, s.filters * channels * window_taps(w));
}

/* Windows over 1 to 3 axes, some of which see padding alone. */
static int64_t random_window(struct window *w, int64_t axes)
{
	*w = (struct window){.kernel = {1, 1, 1},
		.stride = {1, 1, 1},
		.dilation = {1, 1, 1},
		.size = {1, 1, 1},
		.out = {1, 1, 1}};
	for (int64_t a = 3 - axes; a < 3; a++) {
		w->kernel[a] = from_to(1, 4);
		w->stride[a] = from_to(1, 3);
		w->dilation[a] = from_to(0, 3) ? from_to(1, 2) : from_to(3, 9);
		w->before[a] = from_to(0, 3);
		w->after[a] = from_to(0, 3);
		w->size[a] = from_to(1, axes == 3 ? 6 : axes == 2 ? 18 : 150);
		const int64_t rest = w->before[a] + w->size[a] + w->after[a] - 1 -
				     (w->kernel[a] - 1) * w->dilation[a];
		if (rest < 0)
			return 0;
		w->out[a] = rest / w->stride[a] + 1;
	}
	return 1;
}

/* What a step for any x86-64 may choose from, each asked by its name. */
static int each_processor(void)
{
#ifdef GEMM_ASKS
	typedef void part_function(int64_t m, int64_t n, int64_t k, const real *pa, int64_t as,
		const real *b, const int32_t *off, real *c, int64_t ldc, int add);
	const struct {
		const char *name;
		part_function *part;
		int here;
	} part[] = {{"plain", gemm_part_off_plain, 1},
		{"AVX2", gemm_part_off_avx2,
			__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
		{"AVX-512", gemm_part_off_avx512, __builtin_cpu_supports("avx512f")}};
	enum { ROWS = 31, COLUMNS = 57, TERMS = 100 };
	int32_t off[TERMS];
	for (int i = 0; i < TERMS; i++)
		off[i] = (int32_t)from_to(0, ROOM - 64);
	gemm_pack_a(ROWS, TERMS, weight, TERMS, 1, scratch);
	for (int i = 0; i < ROWS * COLUMNS; i++) {
		struct sum sum = {0};
		for (int k = 0; k < TERMS; k++)
			next(&sum, weight[i / COLUMNS * TERMS + k], x[off[k] + i % COLUMNS]);
		end_chain(&sum);
		rule[i] = sum.all;
	}
	for (int i = 0; i < 3; i++) {
		if (!part[i].here)
			continue;
		memset(is, 0xff, sizeof is);
		part[i].part(ROWS, COLUMNS, TERMS, scratch, TERMS, x, off, is, COLUMNS, 0);
		if (check(part[i].name, &(struct window){0}, &(struct conv_shape){0},
			    ROWS * COLUMNS))
			return 1;
	}
#endif
	return 0;
}

int main(int argc, char **argv)
{
	const int step = argc > 1 ? atoi(argv[1]) : 1; /* how many are left out, under qemu */
	int done = 0;
	fill(x);
	fill(y);
	fill(weight);
	for (int i = 0; i < CHANNELS; i++)
		bias[i] = x[i * 7];
	if (each_processor())
		return 1;
	for (int i = 0; i < 2000; i++) {
		struct window w;
		const int there = random_window(&w, 1 + i % 3) != 0;
		const int64_t groups = i % 5 ? 1 : 2;
		const struct conv_shape s = {.images = from_to(1, 3),
			.channels = groups * from_to(1, i % 7 ? 8 : 40),
			.filters = groups * from_to(1, i % 11 ? 14 : 70),
			.groups = groups};
		const int64_t weights = s.filters * (s.channels / groups) * window_taps(&w);
		if (!there || s.images * s.filters * window_out(&w) > ROOM ||
			s.images * s.channels * window_plane(&w) > ROOM || weights > ROOM)
			continue;
		if (i % step == 0 && passes(&w, s))
			return 1;
		done += i % step == 0;
	}
	return done == 0;
}

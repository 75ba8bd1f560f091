/* Families of buffers: training steps, queues, blocks run again, boxes without a gap. */
#include "layout_gen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dice {
	uint64_t s;
};

static uint64_t draw(struct dice *d)
{
	d->s += 0x9e3779b97f4a7c15u; /* splitmix64, Steele et al. (OOPSLA 2014) */
	uint64_t z = d->s;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static int64_t roll(struct dice *d, int64_t n)
{
	return (int64_t)(draw(d) % (uint64_t)n);
}

static double unit(struct dice *d)
{
	return ((double)(draw(d) >> 11) + 1) / 9007199254740993.0;
}

/* From a few sizes, as one model has them. */
static int64_t few(struct dice *d)
{
	static const int64_t size[] = {3072, 4096, 12288, 16384, 65536, 98304, 262144, 393216};
	return size[roll(d, 8)];
}

/* Between 2^6 and 2^18, all magnitudes alike. */
static int64_t any_size(struct dice *d)
{
	return (int64_t)exp2(6 + 12 * unit(d));
}

static int64_t size_of_kind(struct dice *d, bool random)
{
	return random ? any_size(d) : few(d);
}

static struct layout_buffer buffer(int64_t lower, int64_t upper, int64_t size)
{
	return (struct layout_buffer){.lower = lower, .upper = upper, .size = size};
}

/* One step: what forward keeps ends in reverse order in backward; scratch and values of two or
 * three ops' length beside it; `bent`: used again by a later layer (skips), not quite reversed. */
static void make_train(int n, struct dice *d, struct layout_buffer *b, bool random, bool bent)
{
	int layers = n / 5 + 1;
	for (int i = 0; i < n; i++) {
		int64_t l = i / 5, back = 2 * (int64_t)layers - 1 - l;
		int64_t slip = bent ? roll(d, 6) : 0;
		int64_t upper = back + 1 - slip > l ? back + 1 - slip : l + 1;
		switch (i % 5) {
		case 0:
			b[i] = buffer(l, back + 1, size_of_kind(d, random));
			break;
		case 1:
			b[i] = bent ? buffer(l, upper, size_of_kind(d, random))
				    : buffer(l, l + 2, size_of_kind(d, random));
			break;
		case 2:
			b[i] = buffer(back, back + 2 + slip, size_of_kind(d, random));
			break;
		case 3:
			b[i] = buffer(roll(d, 2) ? l : back, 0, size_of_kind(d, random));
			b[i].upper = b[i].lower + 1;
			break;
		default:
			b[i] = buffer(back, back + 1 + roll(d, 3), size_of_kind(d, random));
		}
	}
}

enum length { GEOMETRIC, PARETO, TWO_KINDS };

/* Arrivals at random; `live` of them at one time on average. */
static void make_queue(
	int n, struct dice *d, struct layout_buffer *b, bool random, enum length length)
{
	double live = 20 + sqrt((double)n), mean = 200;
	double t = 0, gap = mean / live;
	for (int i = 0; i < n; i++) {
		double len = -mean * log(unit(d));
		int64_t size = size_of_kind(d, random);
		if (length == PARETO) {
			len = mean * 0.2 * pow(unit(d), -1 / 1.25);
			len = len < mean * (double)n / live ? len : mean;
		}
		if (length == TWO_KINDS) {
			bool lasting = roll(d, 20) == 0;
			len = lasting ? mean * 12 * (0.5 + unit(d)) : mean * 0.1 * (0.5 + unit(d));
			size = lasting ? 64 + roll(d, 4096) : 4096 + roll(d, 65536);
		}
		t -= gap * log(unit(d));
		b[i] = buffer((int64_t)t, (int64_t)(t + len) + 1, size);
	}
}

/* Blocks of a few ops, whose border is kept and whose inside is run again in backward. */
static void make_blocks(int n, struct dice *d, struct layout_buffer *b, bool random)
{
	enum { OPS = 12 };
	int per = 1 + 3 * OPS, blocks = n / per + 1;
	int64_t shape[OPS], border = size_of_kind(d, random) * 2;
	for (int k = 0; k < OPS; k++)
		shape[k] = size_of_kind(d, random);
	for (int i = 0; i < n; i++) {
		int64_t l = i / per, k = i % per - 1, forward = l * OPS;
		int64_t again = (int64_t)blocks * OPS + ((int64_t)blocks - 1 - l) * 3 * OPS;
		int64_t middle = again + OPS, o = k / 3;
		if (k < 0)
			b[i] = buffer(forward, again + 3 * OPS, border);
		else if (k % 3 == 0) /* first run: lasts for an op or two */
			b[i] = buffer(forward + o, forward + o + 2 + (o % 4 == 0), shape[o]);
		else if (k % 3 == 1) /* again: lasts until its gradient */
			b[i] = buffer(again + o, middle + 2 * (OPS - o), shape[o]);
		else
			b[i] = buffer(
				middle + 2 * (OPS - 1 - o), middle + 2 * (OPS - o) + 1, shape[o]);
	}
}

/* Cut a box at random, always from one side to the other: no byte free at any time. */
static void make_box(int n, struct dice *d, struct layout_buffer *b)
{
	int made = 1;
	b[0] = buffer(0, 4 * (int64_t)n, 1 << 24);
	while (made < n) {
		struct layout_buffer *x = &b[roll(d, made)], *y = &b[roll(d, made)];
		/* the larger of two, so that none becomes tiny */
		double ax = (double)(x->upper - x->lower) * (double)x->size;
		if ((double)(y->upper - y->lower) * (double)y->size > ax)
			x = y;
		int64_t length = x->upper - x->lower;
		double share = 0.1 + 0.8 * unit(d);
		b[made] = *x;
		if (roll(d, 2) && length > 1) {
			x->upper = x->lower + 1 + (int64_t)((double)(length - 1) * share);
			b[made].lower = x->upper;
			made += b[made].upper > b[made].lower;
			if (x->upper > x->lower + length)
				x->upper = x->lower + length;
		} else if (x->size > 1) {
			int64_t first = 1 + (int64_t)((double)(x->size - 1) * share);
			if (first == x->size)
				continue;
			b[made++].size = x->size - first;
			x->size = first;
		}
	}
}

static const char *const name[LAYOUT_FAMILIES] = {"train", "train-any", "skips", "skips-any",
	"queue", "queue-any", "heavy", "heavy-any", "two-kinds", "blocks", "box"};

const char *layout_gen_name(int family)
{
	return name[family];
}

void layout_gen_make(int family, int n, uint64_t seed, struct layout_buffer *b)
{
	struct dice d = {seed * 1000003 + (uint64_t)family};
	if (family < 4)
		make_train(n, &d, b, family % 2, family >= 2);
	else if (family < 6)
		make_queue(n, &d, b, family == 5, GEOMETRIC);
	else if (family < 8)
		make_queue(n, &d, b, family == 7, PARETO);
	else if (family == 8)
		make_queue(n, &d, b, true, TWO_KINDS);
	else if (family == 9)
		make_blocks(n, &d, b, true);
	else
		make_box(n, &d, b);
}

struct event {
	int64_t t, change;
};

static int event_cmp(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return (x->change > y->change) - (x->change < y->change); /* ends first */
}

int64_t layout_gen_load(const struct layout_buffer *b, int n, int64_t alignment)
{
	struct event *e = malloc(((size_t)n * 2 + 1) * sizeof *e);
	if (!e)
		return -1;
	for (int i = 0; i < n; i++) {
		int64_t size = (b[i].size + alignment - 1) / alignment * alignment;
		e[2 * i] = (struct event){b[i].lower, size};
		e[2 * i + 1] = (struct event){b[i].upper, -size};
	}
	qsort(e, (size_t)n * 2, sizeof *e, event_cmp);
	int64_t live = 0, most = 0;
	for (int i = 0; i < 2 * n; i++) {
		live += e[i].change;
		most = live > most ? live : most;
	}
	free(e);
	return most;
}

struct moment {
	int64_t t;
	bool start;
	int i;
};

static int moment_cmp(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;
	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	if (x->start != y->start)
		return x->start ? 1 : -1; /* ends first */
	return (x->i > y->i) - (x->i < y->i);
}

/* Where offset stands, or would, among the live ones, which are sorted by offset. */
static int find_live(const struct layout_buffer *b, const int *live, int n, int64_t offset)
{
	int lo = 0;
	for (int hi = n; lo < hi;) {
		int mid = lo + (hi - lo) / 2;
		if (b[live[mid]].offset < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool layout_gen_apart(const struct layout_buffer *b, int n)
{
	struct moment *m = malloc(((size_t)n * 2 + 1) * sizeof *m);
	int *live = malloc(((size_t)n + 1) * sizeof *live), nlive = 0, nm = 0;
	bool apart = m && live;
	for (int i = 0; i < n && apart; i++)
		if (b[i].size > 0) {
			m[nm++] = (struct moment){b[i].lower, true, i};
			m[nm++] = (struct moment){b[i].upper, false, i};
		}
	if (apart)
		qsort(m, (size_t)nm, sizeof *m, moment_cmp);
	for (int k = 0; k < nm && apart; k++) {
		const struct layout_buffer *x = &b[m[k].i];
		int at = find_live(b, live, nlive, x->offset);
		if (m[k].start) {
			apart = (at == nlive || b[live[at]].offset >= x->offset + x->size) &&
				(at == 0 ||
					b[live[at - 1]].offset + b[live[at - 1]].size <= x->offset);
			memmove(live + at + 1, live + at, (size_t)(nlive - at) * sizeof *live);
			live[at] = m[k].i;
			nlive++;
		} else {
			nlive--;
			memmove(live + at, live + at + 1, (size_t)(nlive - at) * sizeof *live);
		}
	}
	free(m);
	free(live);
	return apart;
}

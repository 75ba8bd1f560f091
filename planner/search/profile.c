#include "planner/search/profile.h"

#include <stdlib.h>
#include <string.h>

void profile_free(struct profile *p)
{
	free(p->value);
	free(p->block);
	free(p->stale);
	*p = (struct profile){0};
}

bool profile_clear(struct profile *p, int n)
{
	int blocks = (n + PROFILE_BLOCK - 1) / PROFILE_BLOCK;
	n = blocks * PROFILE_BLOCK;
	if (n > p->cap) {
		profile_free(p);
		p->value = malloc((size_t)n * sizeof *p->value);
		p->block = malloc((size_t)blocks * sizeof *p->block);
		p->stale = malloc((size_t)blocks * sizeof *p->stale);
		if (!p->value || !p->block || !p->stale) {
			profile_free(p);
			return false;
		}
		p->cap = n;
	}
	p->n = n;
	p->over = 0;
	p->nstale = 0;
	memset(p->value, 0, (size_t)n * sizeof *p->value);
	memset(p->block, 0, (size_t)blocks * sizeof *p->block);
	return true;
}

/* Extremes and excess of one block from its values. */
static void measure(struct profile *p, int b)
{
	const int64_t *v = p->value + (size_t)b * PROFILE_BLOCK;
	struct profile_block *k = &p->block[b];
	const int64_t off = -PROFILE_OFF / 2, add = k->add;
	int64_t max = off, min = PROFILE_OFF, over = 0;
	int on = 0;
	for (int i = 0; i < PROFILE_BLOCK; i++) {
		int64_t x = v[i] + add;
		max = x > max ? x : max;
		min = x > off && x < min ? x : min;
		on += x > off;
		over += x > 0 ? x : 0;
	}
	k->max = max;
	k->min = min;
	k->on = on;
	p->over += over - k->over;
	k->over = over;
}

static void touch(struct profile *p, int b)
{
	if (p->block[b].stale)
		return;
	p->block[b].stale = true;
	p->stale[p->nstale++] = b;
}

void profile_refresh(struct profile *p)
{
	for (int i = 0; i < p->nstale; i++) {
		p->block[p->stale[i]].stale = false;
		measure(p, p->stale[i]);
	}
	p->nstale = 0;
}

int64_t profile_over(struct profile *p)
{
	profile_refresh(p);
	return p->over;
}

void profile_sum(struct profile *p, int64_t start, const int *at, int n)
{
	for (int i = 0; i < p->n; i++) {
		start += p->value[i];
		p->value[i] = start - (i < n && at[i] >= 0 ? 0 : PROFILE_OFF);
	}
	for (int b = 0; b < p->n / PROFILE_BLOCK; b++)
		measure(p, b);
}

void profile_switch(struct profile *p, int slot, bool on)
{
	p->value[slot] += on ? PROFILE_OFF : -PROFILE_OFF;
	touch(p, slot / PROFILE_BLOCK);
}

static void add_part(struct profile *p, int b, int from, int to, int64_t x)
{
	for (int i = from; i <= to; i++)
		p->value[i] += x;
	touch(p, b);
}

static void add_whole(struct profile *p, int b, int64_t x)
{
	struct profile_block *k = &p->block[b];
	bool above = k->min >= 0 && k->min + x >= 0;
	k->add += x;
	if (k->stale || k->on == 0)
		return;
	k->max += x;
	k->min += x;
	if (above) {
		k->over += x * k->on;
		p->over += x * k->on;
	} else if (k->over > 0 || k->max > 0) {
		touch(p, b);
	}
}

void profile_add(struct profile *p, int from, int to, int64_t x)
{
	if (from > to || x == 0)
		return;
	int first = from / PROFILE_BLOCK, last = to / PROFILE_BLOCK;
	if (first == last) {
		add_part(p, first, from, to, x);
		return;
	}
	add_part(p, first, from, first * PROFILE_BLOCK + PROFILE_BLOCK - 1, x);
	for (int b = first + 1; b < last; b++)
		add_whole(p, b, x);
	add_part(p, last, last * PROFILE_BLOCK, to, x);
}

int64_t profile_at(const struct profile *p, int slot)
{
	return p->value[slot] + p->block[slot / PROFILE_BLOCK].add;
}

int profile_worst(struct profile *p)
{
	profile_refresh(p);
	int best = 0;
	for (int b = 1; b < p->n / PROFILE_BLOCK; b++)
		if (p->block[b].max > p->block[best].max)
			best = b;
	if (p->block[best].on == 0)
		return -1;
	int slot = best * PROFILE_BLOCK;
	while (profile_at(p, slot) != p->block[best].max)
		slot++;
	return slot;
}

bool profile_exceeds(struct profile *p, int from, int to, int64_t limit)
{
	profile_refresh(p);
	while (from <= to) {
		int b = from / PROFILE_BLOCK, end = b * PROFILE_BLOCK + PROFILE_BLOCK - 1;
		bool whole = from % PROFILE_BLOCK == 0 && end <= to;
		if (whole && p->block[b].max > limit)
			return true;
		for (int i = from; !whole && p->block[b].max > limit && i <= end && i <= to; i++)
			if (profile_at(p, i) > limit)
				return true;
		from = end + 1;
	}
	return false;
}

static int64_t relief_part(const struct profile *p, int from, int to, int64_t x)
{
	int64_t sum = 0, add = p->block[from / PROFILE_BLOCK].add;
	for (int i = from; i <= to; i++) {
		int64_t v = p->value[i] + add;
		sum += v <= 0 ? 0 : v < x ? v : x;
	}
	return sum;
}

int64_t profile_relief(struct profile *p, int from, int to, int64_t x)
{
	profile_refresh(p);
	int64_t sum = 0;
	while (from <= to) {
		int b = from / PROFILE_BLOCK, end = b * PROFILE_BLOCK + PROFILE_BLOCK - 1;
		const struct profile_block *k = &p->block[b];
		if (k->max <= 0)
			; /* nothing there */
		else if (end > to || from % PROFILE_BLOCK)
			sum += relief_part(p, from, end < to ? end : to, x);
		else if (k->max <= x)
			sum += k->over;
		else if (k->min >= x)
			sum += x * k->on;
		else
			sum += relief_part(p, from, end, x);
		from = end + 1;
	}
	return sum;
}

/* SPDX-License-Identifier: MIT-0 */
/* What `stint bench` asks of a device: how long each launch takes, what its memory holds, and what
 * it does at its best. See stint_rt_gpu.h. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "stint_rt_gpu.h"

/* --- The clock --- */

/* Marks of the clock; a schedule's own ones (stint_gpu.h) are below. */
enum { FIRST = 1 << 14, GAPS = 16 };

/* What a launch and a mark take of the host, in milliseconds, at most. */
static const double launch_ms = 0.01;

/* Kernels that are shorter than a launch takes are seen only while the device is behind the host.
 * The evaluation changes nothing that a training step reads. */
static int keep_busy(stint_gpu *g, const struct stint_gpu_graph *graph, int n)
{
	enum { MOST = 200 };
	double ms = 0;
	int rc = stint_gpu_mark(g, STINT_GPU_MAIN, FIRST);
	rc = rc ? rc : stint_gpu_replay(g, graph);
	rc = rc ? rc : stint_gpu_mark(g, STINT_GPU_MAIN, FIRST + 1);
	rc = rc ? rc : stint_gpu_sync(g, STINT_GPU_MAIN);
	rc = rc ? rc : stint_gpu_elapsed(g, FIRST, FIRST + 1, &ms);
	double left = n * launch_ms;
	for (int i = 0; !rc && i < MOST && left > 0; i++) {
		rc = stint_gpu_replay(g, graph);
		left -= ms;
	}
	return rc;
}

int stint_gpu_clock_start(
	stint_gpu *g, struct stint_gpu_clock *c, const struct stint_gpu_graph *graph, int n)
{
	const int rc = graph ? keep_busy(g, graph, n) : STINT_OK;
	c->n = 0;
	return rc ? rc : stint_gpu_mark(g, STINT_GPU_MAIN, FIRST);
}

int stint_gpu_clock_mark(stint_gpu *g, struct stint_gpu_clock *c, int index)
{
	if (c->n == c->room) {
		const int room = c->room ? 2 * c->room : 1024;
		int *grown = realloc(c->index, (size_t)room * sizeof *grown);
		if (!grown)
			return STINT_NO_MEMORY;
		c->index = grown;
		c->room = room;
	}
	c->index[c->n++] = index;
	return stint_gpu_mark(g, STINT_GPU_MAIN, FIRST + c->n);
}

/* The least time between two marks with nothing in between. */
static int gap_of(stint_gpu *g, int first, double *out)
{
	double ms, least = 1e9;
	int rc = STINT_OK;
	for (int i = 0; i < GAPS && !rc; i++)
		rc = stint_gpu_mark(g, STINT_GPU_MAIN, first + i);
	rc = rc ? rc : stint_gpu_sync(g, STINT_GPU_MAIN);
	for (int i = 0; i + 1 < GAPS && !rc; i++) {
		rc = stint_gpu_elapsed(g, first + i, first + i + 1, &ms);
		if (!rc && ms < least)
			least = ms;
	}
	*out = least;
	return rc;
}

int stint_gpu_clock_tell(stint_gpu *g, struct stint_gpu_clock *c, const struct stint_probe *probe)
{
	double gap = 0, ms = 0;
	int rc = gap_of(g, FIRST + c->n + 1, &gap);
	for (int i = 0; i < c->n && !rc; i++) {
		rc = stint_gpu_elapsed(g, FIRST + i, FIRST + i + 1, &ms);
		if (!rc)
			probe->took(probe->user, c->index[i], ms > gap ? 1e3 * (ms - gap) : 0);
	}
	return rc;
}

void stint_gpu_clock_free(struct stint_gpu_clock *c)
{
	free(c->index);
	*c = (struct stint_gpu_clock){0};
}

/* --- Memory --- */

int stint_rt_gpu_memory(stint_gpu *g, const char *what, struct stint_device_memory *out)
{
	const struct stint_gpu_item *item;
	size_t left, total;
	int rc = stint_gpu_memory_note(g, what);
	rc = rc ? rc : stint_gpu_memory_free(g, &left, &total);
	if (rc)
		return rc;
	*out = (struct stint_device_memory){
		.used = (int64_t)(total - left), .total = (int64_t)total};
	const int n = stint_gpu_memory(g, &item), room = sizeof out->item / sizeof *out->item;
	for (int i = 0; i < n && out->nitem < room; i++)
		out->item[out->nitem++] = (struct stint_device_item){
			item[i].what, item[i].bytes, item[i].ms};
	return STINT_OK;
}

/* --- Peaks --- */

enum { START_MARK, END_MARK, ROUNDS = 5, LEAST = 16 << 20, MOST = 1 << 30 };

/* Work that is repeated: of each run the milliseconds, the best of some rounds of `times` runs. */
struct work {
	stint_gpu *g;
	stint_gpu_ptr at;
	size_t bytes;
	struct stint_gpu_matmul *product; /* NULL: a copy of the first half to the second */
	size_t operand;                   /* bytes of a matrix */
	int times;
};

static int work_once(const struct work *w)
{
	if (!w->product)
		return stint_gpu_copy(
			w->g, STINT_GPU_MAIN, w->at + w->bytes / 2, w->at, w->bytes / 2);
	return stint_gpu_matmul_run(w->g, STINT_GPU_MAIN, w->product, w->at, w->at + w->operand,
		w->at + 2 * w->operand, 0, w->at + 3 * w->operand);
}

static int work_time(const struct work *w, double *best)
{
	double ms = 0;
	int rc = work_once(w); /* what is loaded at first use */
	*best = 1e9;
	for (int i = 0; i < ROUNDS && !rc; i++) {
		rc = stint_gpu_mark(w->g, STINT_GPU_MAIN, START_MARK);
		for (int k = 0; k < w->times && !rc; k++)
			rc = work_once(w);
		rc = rc ? rc : stint_gpu_mark(w->g, STINT_GPU_MAIN, END_MARK);
		rc = rc ? rc : stint_gpu_sync(w->g, STINT_GPU_MAIN);
		rc = rc ? rc : stint_gpu_elapsed(w->g, START_MARK, END_MARK, &ms);
		if (!rc && ms / w->times < *best)
			*best = ms / w->times;
	}
	return rc;
}

/* Longer and longer runs, until one takes a millisecond: then the start of a run is a small part of
 * it. */
static int copies(struct work w, size_t most, struct stint_device_level *out)
{
	double ms = 0;
	int rc = STINT_OK;
	for (w.bytes = LEAST / 4; !rc; w.bytes *= 2) {
		if (w.bytes > most)
			w.bytes = most / 512 * 512;
		rc = work_time(&w, &ms);
		if (rc || ms <= 0)
			return rc;
		*out = (struct stint_device_level){(double)w.bytes, (double)w.bytes / ms / 1e3};
		if (ms * w.times > 1 || w.bytes >= most / 512 * 512)
			break;
	}
	return rc;
}

/* Numbers of both signs in [1/2, 1): zeros and constants need less current, and so a device does
 * faster with them than with a step's values. A megabyte of them, again and again. */
static int fill(stint_gpu *g, stint_gpu_ptr at, size_t room, enum stint_gpu_type type)
{
	enum { PART = 1 << 20 };
	uint32_t *part = malloc(PART), x = 1;
	if (!part)
		return STINT_NO_MEMORY;
	for (int i = 0; i < PART / 4; i++) {
		x = x * 1664525u + 1013904223u;
		part[i] = type == STINT_GPU_F32    ? (x & 0x807fffffu) | 0x3f000000u
			  : type == STINT_GPU_BF16 ? (x & 0x807f807fu) | 0x3f003f00u
						   : (x & 0x83ff83ffu) | 0x38003800u;
	}
	int rc = stint_gpu_put(g, STINT_GPU_MAIN, at, part, PART);
	rc = rc ? rc : stint_gpu_sync(g, STINT_GPU_MAIN);
	free(part);
	for (size_t have = PART; have < room && !rc; have *= 2)
		rc = stint_gpu_copy(
			g, STINT_GPU_MAIN, at + have, at, have < room - have ? have : room - have);
	return rc;
}

/* Larger and larger products, until one takes a millisecond or there is no room. */
static int products(struct work w, size_t room, enum stint_gpu_type type, int tf32,
	struct stint_device_peaks *out)
{
	const size_t element = type == STINT_GPU_F32 ? 4 : 2;
	const int arch = stint_gpu_facts_of(w.g)->arch;
	int rc = STINT_OK;
	for (int64_t n = 256; n <= 8192 && !rc; n *= 2) {
		struct stint_gpu_product product = {.shape = {.batch = 1, .m = n, .n = n, .k = n},
			.in = type,
			.out = type,
			.tf32 = tf32};
		double ms = 0;
		w.operand = (size_t)(n * n) * element;
		product.cap = stint_gpu_matmul_cap(arch, &product.shape);
		if (3 * w.operand + product.cap > room)
			break;
		rc = fill(w.g, w.at, 2 * w.operand, type);
		rc = rc ? rc : stint_gpu_matmul_new(w.g, &product, &w.product);
		if (rc)
			break;
		rc = work_time(&w, &ms);
		stint_gpu_matmul_free(w.product);
		const double rate = ms > 0 ? 2.0 * (double)n * (double)n * (double)n / ms / 1e3 : 0;
		if (!rc && rate > out->flops_us) {
			out->flops_us = rate;
			out->product = n;
		}
		if (ms > 1)
			break;
	}
	return rc;
}

/* Half of what is free at most. */
static int room_make(stint_gpu *g, stint_gpu_ptr *at, size_t *bytes)
{
	size_t left, total;
	int rc = stint_gpu_memory_free(g, &left, &total);
	*bytes = left / 2 < MOST ? left / 2 : MOST;
	*bytes = *bytes < LEAST ? LEAST : *bytes / 512 * 512;
	return rc ? rc : stint_gpu_arena(g, 0, *bytes, at);
}

static int measure(stint_gpu *g, enum stint_gpu_type type, int tf32, struct stint_device_peaks *out)
{
	size_t room = 0;
	struct work w = {.g = g, .times = 4};
	int rc = stint_gpu_open(g, 0);
	rc = rc ? rc : room_make(g, &w.at, &room);
	if (rc)
		return rc;
	stint_gpu_identity(g, out->name);
	const size_t cache = (size_t)stint_gpu_facts_of(g)->l2_bytes / 2;
	rc = copies(w, room, &out->level[1]);
	out->level[0] = out->level[1];
	if (!rc && cache > LEAST / 8) {
		w.times = 40;
		rc = copies(w, cache, &out->level[0]);
	}
	w.times = 4;
	return rc ? rc : products(w, room, type, tf32, out);
}

int stint_rt_gpu_peaks(enum stint_gpu_type type, int tf32, struct stint_device_peaks *out,
	char *message, size_t room)
{
	stint_gpu *g = NULL;
	int rc = stint_gpu_new(&g, NULL);
	*out = (struct stint_device_peaks){.product = 0};
	rc = rc ? rc : measure(g, type, tf32, out);
	if (rc)
		snprintf(message, room, "%s", g ? stint_gpu_message(g) : "out of memory");
	stint_gpu_free(g);
	return rc;
}

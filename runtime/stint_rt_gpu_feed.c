/* SPDX-License-Identifier: MIT-0 */
/* See stint_rt_gpu_feed.h. */
#include "stint_rt_gpu_feed.h"

#include <stdlib.h>
#include <string.h>

struct input {
	size_t offset, bytes, next;
	unsigned char *host; /* page-locked */
	int sent;            /* a mark: what host held has been read */
	int fresh;           /* set since the last step */
};

struct stint_feed {
	stint_gpu *g;
	stint_gpu_ptr arena;
	int taken; /* a mark: the main stream has read the second places */
	int n;
	struct input input[];
};

int stint_feed_new(
	struct stint_feed **out, stint_gpu *g, const struct stint_model *m, stint_gpu_ptr arena)
{
	int n = 0;
	while (m->gpu->next[n].resident >= 0)
		n++;
	struct stint_feed *f = *out = calloc(1, sizeof *f + (size_t)n * sizeof f->input[0]);
	if (!f)
		return STINT_NO_MEMORY;
	f->g = g;
	f->arena = arena;
	f->taken = stint_gpu_marks(g, 1 + n);
	for (; f->n < n; f->n++) {
		const struct stint_tensor *t = &m->resident[m->gpu->next[f->n].resident];
		void *host = NULL;
		const int rc = stint_gpu_pinned(g, t->bytes, &host);
		if (rc)
			return rc;
		f->input[f->n] = (struct input){t->offset, t->bytes, m->gpu->next[f->n].offset,
			host, f->taken + 1 + f->n, 0};
	}
	/* behind what the arena has been filled with */
	return stint_gpu_mark(g, STINT_GPU_MAIN, f->taken);
}

void stint_feed_free(struct stint_feed *f)
{
	free(f); /* page-locked memory is the stint_gpu's */
}

/* NULL: not of one input. */
static struct input *input_of(const struct stint_feed *f, size_t offset, size_t bytes)
{
	for (int i = 0; f && i < f->n; i++) {
		const struct input *x = &f->input[i];
		if (offset >= x->offset && bytes <= x->bytes &&
			offset - x->offset <= x->bytes - bytes)
			return (struct input *)x;
	}
	return NULL;
}

int stint_feed_has(const struct stint_feed *f, size_t offset, size_t bytes)
{
	return bytes > 0 && input_of(f, offset, bytes) != NULL;
}

int stint_feed_put(struct stint_feed *f, size_t offset, const void *data, size_t bytes)
{
	struct input *x = input_of(f, offset, bytes);
	const size_t at = offset - x->offset;
	int rc = stint_gpu_reach(f->g, x->sent);
	if (rc)
		return rc;
	memcpy(x->host + at, data, bytes);
	if (!x->fresh) /* what was there may not have been read yet */
		rc = stint_gpu_wait(f->g, STINT_GPU_FEED, f->taken);
	if (!rc)
		rc = stint_gpu_put(
			f->g, STINT_GPU_FEED, f->arena + x->next + at, x->host + at, bytes);
	if (!rc)
		rc = stint_gpu_mark(f->g, STINT_GPU_FEED, x->sent);
	x->fresh = !rc;
	return rc;
}

int stint_feed_get(struct stint_feed *f, size_t offset, void *data, size_t bytes)
{
	const struct input *x = input_of(f, offset, bytes);
	int rc = stint_gpu_get(
		f->g, STINT_GPU_FEED, data, f->arena + x->next + (offset - x->offset), bytes);
	return rc ? rc : stint_gpu_sync(f->g, STINT_GPU_FEED);
}

int stint_feed_take(struct stint_feed *f)
{
	int rc = stint_gpu_behind(f->g, STINT_GPU_MAIN, STINT_GPU_FEED);
	for (int i = 0; i < f->n && !rc; i++) {
		struct input *x = &f->input[i];
		if (!x->fresh)
			continue;
		rc = stint_gpu_copy(
			f->g, STINT_GPU_MAIN, f->arena + x->offset, f->arena + x->next, x->bytes);
		x->fresh = 0;
	}
	return rc ? rc : stint_gpu_mark(f->g, STINT_GPU_MAIN, f->taken);
}

/* SPDX-License-Identifier: MIT-0 */
/* A checkpoint's file, by several processes at once: the bytes that one would write. Of what each
 * has alone it writes what it has, of all else its share. The first one makes the file beside the
 * old one; who does not see that, on another machine, lends what it has, and the first one writes
 * it. When all have said that theirs is on the disk, the file takes its place: whoever dies before
 * that, the old one stays.
 *
 * All do the same steps; between them they tell each other what came of one (merge). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* open_memstream, pwrite, fstatfs */
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <zlib.h>

#include "checkpoint_inside.h"
#include "stint_tree.h"

/* What the first process tells the others: who it is, what its file begins with until it has a
 * header, where tensors begin in it; or why there is none. */
struct hello {
	int64_t owner, begin, failed;
	unsigned char nonce[16];
};

struct together {
	const struct stint_step *s;
	const struct stint_ranks *r;
	const struct checkpoint_entries *e;
	const char *path;
	struct safetensors_draft draft;
	int fd; /* of it; -1: not seen */
	struct hello *hello;
	uint32_t *sum; /* behind hello: of each rank's share of each resident */
	size_t told;   /* bytes of both */
	int64_t *of;   /* [ranks] what each says */
	char *header;
	size_t header_bytes;
};

/* --- Who writes what --- */

/* Bytes [from, from + n) of an entry, which are at `offset` of rank's arena. */
struct share {
	size_t from, n, offset;
	int alone; /* nobody else has them */
};

static struct share share_of(const struct together *t, int resident, int rank)
{
	const struct stint_filed f = stint_filed_by(t->s, resident, rank);
	const size_t offset = t->s->model->resident[resident].offset;
	if (f.piece)
		return (struct share){f.from, f.here, offset, 1};
	const size_t from = (size_t)stint_tree_first((int64_t)f.bytes, t->r->n, rank);
	const size_t end = (size_t)stint_tree_first((int64_t)f.bytes, t->r->n, rank + 1);
	return (struct share){from, end - from, offset + from, 0};
}

/* Of this process's arena, in the host's memory; NULL: no memory for a device's. */
static void *hold(const struct together *t, const struct share *x)
{
	return t->s->device->hold(t->s, x->offset, x->n, 1);
}

static uint32_t *sum_of(const struct together *t, int rank, int resident)
{
	return &t->sum[(size_t)rank * (size_t)t->s->model->nresident + (size_t)resident];
}

static int is_first(const struct together *t)
{
	return t->r->rank == 0;
}

/* --- Files --- */

/* NFS's client would write back whole pages, others' bytes in them as it has seen them last, but
 * not of a file that is written through. */
static int open_draft(const char *path, int flags)
{
	struct statfs fs;
	int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0666);
	if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == NFS_SUPER_MAGIC) {
		close(fd);
		fd = open(path, O_RDWR | O_CLOEXEC | O_DSYNC);
	}
	return fd;
}

static int on_disk(int fd)
{
	return fsync(fd) == 0 ? 0 : errno ? errno : EIO;
}

/* --- The first step: sums, and a file to write to --- */

/* 0, or no memory. */
static int add_sums(const struct together *t)
{
	for (int i = 0; i < t->e->n; i++) {
		const int resident = t->e->resident[i];
		if (resident < 0)
			continue;
		const struct share x = share_of(t, resident, t->r->rank);
		void *data = hold(t, &x);
		if (!data)
			return 1;
		*sum_of(t, t->r->rank, resident) = (uint32_t)checkpoint_add_bytes(
			crc32(0, NULL, 0), data, x.n);
		t->s->device->let(t->s, data);
	}
	return 0;
}

/* As one process would make it of all bytes. */
static unsigned long whole_sum(const struct together *t, const struct checkpoint_place *place)
{
	unsigned long sum = checkpoint_sum_of_place(place);
	for (int i = 0; i < t->e->n; i++) {
		const int resident = t->e->resident[i];
		if (resident < 0)
			sum = checkpoint_add_bytes(sum, t->e->entry[i].data, t->e->entry[i].bytes);
		for (int k = 0; k < t->r->n && resident >= 0; k++)
			sum = crc32_combine(
				sum, *sum_of(t, k, resident), (z_off_t)share_of(t, resident, k).n);
	}
	return sum;
}

/* Its length does not depend on the sum. */
static int make_header(struct together *t, const struct checkpoint_place *place, unsigned long sum)
{
	struct checkpoint_notes notes;
	free(t->header);
	t->header = NULL;
	FILE *f = open_memstream(&t->header, &t->header_bytes);
	if (!f)
		return 1;
	checkpoint_make_notes(&notes, place, t->s->model->name, sum);
	const int rc = safetensors_put_header(f, t->e->entry, t->e->n, notes.note, notes.n) ||
		       ferror(f);
	return fclose(f) != 0 || rc;
}

/* By the first process. 1: with a message that the others do not know. */
static int begin(struct together *t, const struct checkpoint_place *place, char *message)
{
	struct hello *h = t->hello;
	h->owner = (int64_t)getpid();
	if (safetensors_check(t->e->entry, t->e->n, message) ||
		safetensors_draft(&t->draft, t->path, (long)h->owner, message))
		return 1;
	if (make_header(t, place, 0))
		return checkpoint_fail(message, "cannot write", t->path, ENOMEM);
	h->begin = (int64_t)t->header_bytes;
	if (getrandom(h->nonce, sizeof h->nonce, 0) != sizeof h->nonce)
		return checkpoint_fail(message, "cannot write", t->path, errno);
	t->fd = open_draft(t->draft.path, O_CREAT | O_TRUNC);
	h->failed = t->fd < 0 ? errno : safetensors_write_at(t->fd, h->nonce, sizeof h->nonce, 0);
	if (!h->failed)
		h->failed = on_disk(t->fd);
	return 0;
}

/* --- The second: who sees it --- */

static void join(struct together *t)
{
	unsigned char nonce[sizeof t->hello->nonce];
	char message[CHECKPOINT_MESSAGE];
	if (is_first(t) || safetensors_draft(&t->draft, t->path, (long)t->hello->owner, message))
		return;
	t->fd = open_draft(t->draft.path, 0);
	if (t->fd >= 0 && (safetensors_read_at(t->fd, nonce, sizeof nonce, 0) ||
				  memcmp(nonce, t->hello->nonce, sizeof nonce) != 0)) {
		close(t->fd); /* another machine's, of the same name */
		t->fd = -1;
	}
}

/* --- The third: all write --- */

static int put_own(const struct together *t, const struct share *x, uint64_t begin)
{
	void *data = hold(t, x);
	if (!data)
		return ENOMEM;
	const int failed = safetensors_write_at(t->fd, data, x->n, begin + x->from);
	t->s->device->let(t->s, data);
	return failed;
}

/* Of rank's share, what this process has, or gets from it. 0, or an errno; *lost: it is gone. */
static int put_share(const struct together *t, int rank, int resident, uint64_t begin, int *lost)
{
	enum { PART = 1 << 20 };
	const struct share x = share_of(t, resident, rank);
	unsigned char *part;
	int failed = 0;
	if (!x.alone || rank == t->r->rank)
		return put_own(t, &x, begin);
	if (!(part = malloc(PART)))
		return ENOMEM;
	for (size_t done = 0; done < x.n && !failed && !*lost; done += PART) {
		const size_t n = x.n - done < PART ? x.n - done : PART;
		*lost = t->r->borrow(t->s, rank, x.offset + done, part, n);
		if (!*lost)
			failed = safetensors_write_at(t->fd, part, n, begin + x.from + done);
	}
	free(part);
	return failed;
}

static int put_shares(const struct together *t, int rank, int *lost)
{
	uint64_t begin = (uint64_t)t->hello->begin;
	int failed = 0;
	for (int i = 0; i < t->e->n && !failed && !*lost; i++) {
		const struct safetensors_entry *entry = &t->e->entry[i];
		const int resident = t->e->resident[i];
		if (resident >= 0)
			failed = put_share(t, rank, resident, begin, lost);
		else if (rank == 0)
			failed = safetensors_write_at(t->fd, entry->data, entry->bytes, begin);
		begin += entry->bytes;
	}
	return failed;
}

/* `sees` of each rank. */
static int put_first(struct together *t, const struct checkpoint_place *place, int *lost)
{
	int failed = make_header(t, place, whole_sum(t, place)) ? ENOMEM : 0;
	if (!failed)
		failed = put_shares(t, 0, lost);
	for (int k = 1; k < t->r->n && !*lost; k++) {
		if (t->of[k])
			continue;
		if (!failed)
			failed = put_shares(t, k, lost);
		if (!*lost)
			*lost = t->r->borrow(t->s, k, 0, NULL, 0); /* that was all */
	}
	return failed ? failed : safetensors_write_at(t->fd, t->header, t->header_bytes, 0);
}

/* --- All of it --- */

/* Each rank says a number: all know all of them. */
static int tell(struct together *t, int64_t mine)
{
	memset(t->of, 0, (size_t)t->r->n * sizeof *t->of);
	t->of[t->r->rank] = mine;
	return t->r->merge(t->s, t->of, (size_t)t->r->n * sizeof *t->of);
}

/* What all have come to know: the first that failed. */
static int first_failed(const struct together *t, char *message)
{
	for (int k = 0; k < t->r->n; k++)
		if (t->of[k]) {
			snprintf(message, CHECKPOINT_MESSAGE, "cannot write %.150s: rank %d: %s",
				t->path, k, strerror((int)t->of[k]));
			return CHECKPOINT_REFUSED;
		}
	return 0;
}

static int allocate(struct together *t)
{
	const size_t n = (size_t)t->r->n, residents = (size_t)t->s->model->nresident;
	t->told = sizeof *t->hello + n * residents * sizeof *t->sum;
	t->hello = calloc(1, t->told);
	t->of = calloc(n, sizeof *t->of);
	if (!t->hello || !t->of)
		return 1;
	t->sum = (uint32_t *)(void *)(t->hello + 1);
	return 0;
}

static int save(struct together *t, const struct checkpoint_place *place, char *message)
{
	int lost = 0, failed;
	if (allocate(t))
		return checkpoint_fail(message, "cannot write", t->path, ENOMEM);
	if (is_first(t) && begin(t, place, message))
		return 1;
	if (add_sums(t))
		return checkpoint_fail(message, "cannot write", t->path, ENOMEM);
	if (t->r->merge(t->s, t->hello, t->told))
		return STINT_LOST;
	t->of[0] = t->hello->failed;
	if (t->of[0])
		return first_failed(t, message);
	join(t);
	if (tell(t, t->fd >= 0))
		return STINT_LOST;
	if (is_first(t))
		failed = put_first(t, place, &lost);
	else if (t->fd >= 0)
		failed = put_shares(t, t->r->rank, &lost);
	else
		failed = 0, lost = t->r->lend(t->s);
	if (!failed && t->fd >= 0)
		failed = on_disk(t->fd);
	if (lost || tell(t, failed))
		return STINT_LOST;
	failed = first_failed(t, message);
	if (failed)
		return failed;
	if (tell(t, is_first(t) ? safetensors_draft_done(&t->draft) : 0))
		return STINT_LOST;
	return first_failed(t, message);
}

int checkpoint_write_together(const char *path, const struct stint_step *s,
	const struct checkpoint_place *place, const struct checkpoint_entries *e, char message[256])
{
	struct together t = {.s = s, .r = s->ranks, .e = e, .path = path, .fd = -1};
	const int rc = save(&t, place, message);
	if (rc == STINT_LOST)
		snprintf(message, CHECKPOINT_MESSAGE, "%.255s", s->message);
	if (t.fd >= 0)
		close(t.fd);
	if (rc && is_first(&t) && t.fd >= 0)
		(void)unlink(t.draft.path);
	safetensors_draft_free(&t.draft);
	free(t.hello);
	free(t.of);
	free(t.header);
	return rc;
}

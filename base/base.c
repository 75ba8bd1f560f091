#include "base/base.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- Diagnostics --- */

static void put(struct diag *d, enum diag_level level, const struct where *w, const char *hint,
	const char *fmt, va_list ap)
{
	static const struct where nowhere = {0};
	char message[1024];
	vsnprintf(message, sizeof message, fmt, ap);
	if (d->put)
		d->put(d->user, level, w ? w : &nowhere, message, hint);
}

enum status diag_vfail(struct diag *d, enum status status, const struct where *w, const char *hint,
	const char *fmt, va_list ap)
{
	if (d->errors++ == 0)
		d->worst = status;
	put(d, DIAG_ERROR, w, hint, fmt, ap);
	return status;
}

enum status diag_fail(struct diag *d, enum status status, const struct where *w, const char *hint,
	const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	diag_vfail(d, status, w, hint, fmt, ap);
	va_end(ap);
	return status;
}

void diag_warn(struct diag *d, const struct where *w, const char *hint, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	d->warnings++;
	put(d, DIAG_WARNING, w, hint, fmt, ap);
	va_end(ap);
}

void diag_note(struct diag *d, const struct where *w, const char *hint, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	put(d, DIAG_NOTE, w, hint, fmt, ap);
	va_end(ap);
}

enum status diag_nomem(struct diag *d)
{
	d->out_of_memory = true;
	return diag_fail(d, ST_INTERNAL, NULL, NULL, "out of memory");
}

/* --- Arena: bump allocation out of growing blocks --- */

enum { BLOCK_MIN = 1 << 16, LARGE = BLOCK_MIN / 4 };

struct block {
	struct block *next;
	size_t used, size;
	max_align_t data[];
};

struct mapping {
	struct mapping *next;
	unsigned char *at;
	size_t bytes;
	const char *path;
};

struct arena {
	struct block *head;
	struct mapping *map;
};

struct arena *arena_new(void)
{
	return calloc(1, sizeof(struct arena));
}

void arena_free(struct arena *a)
{
	if (!a)
		return;
	for (const struct mapping *m = a->map; m; m = m->next)
		munmap(m->at, m->bytes);
	for (struct block *b = a->head, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}

static struct block *block_new(size_t bytes)
{
	if (bytes > SIZE_MAX - sizeof(struct block))
		return NULL;
	struct block *b = calloc(1, sizeof *b + bytes);
	if (b)
		b->size = bytes;
	return b;
}

static size_t rounded(size_t n)
{
	return (n + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
}

void *arena_alloc(struct arena *a, size_t count, size_t size)
{
	size_t n;
	if (__builtin_mul_overflow(count, size, &n) || n > SIZE_MAX / 2)
		return NULL;
	n = rounded(n);
	struct block *b = a->head;
	if (!b || b->size - b->used < n) {
		struct block *fresh = block_new(n > LARGE ? n : BLOCK_MIN);
		if (!fresh)
			return NULL;
		if (b && n > LARGE) { /* a large object has its own block, behind the head */
			fresh->next = b->next;
			b->next = fresh;
		} else {
			fresh->next = b;
			a->head = fresh;
		}
		b = fresh;
	}
	void *p = (char *)b->data + b->used;
	b->used += n;
	return p;
}

void arena_release(struct arena *a, void *p, size_t size)
{
	if (!p || size <= LARGE)
		return;
	for (struct block **at = &a->head; *at; at = &(*at)->next)
		/* of its own: it may have found room beside others */
		if ((char *)(*at)->data == p && (*at)->size == rounded(size)) {
			struct block *b = *at;
			*at = b->next;
			free(b);
			return;
		}
}

const void *arena_map(struct arena *a, int fd, size_t bytes, const char *path)
{
	if (!bytes)
		return "";
	struct mapping *m = ARENA_NEW(a, struct mapping);
	const char *name = path ? arena_strdup(a, path) : NULL;
	if (!m || (path && !name)) {
		errno = ENOMEM;
		return NULL;
	}
	void *at = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	*m = (struct mapping){a->map, at, bytes, name};
	a->map = m;
	return at;
}

bool arena_mapped(
	const struct arena *a, const void *p, size_t bytes, const char **path, size_t *offset)
{
	for (const struct mapping *m = a->map; m; m = m->next) {
		const uintptr_t from = (uintptr_t)p - (uintptr_t)m->at;
		if (!m->path || from >= m->bytes || bytes > m->bytes - from)
			continue;
		*path = m->path;
		*offset = from;
		return true;
	}
	return false;
}

void *arena_memdup(struct arena *a, const void *p, size_t count, size_t size)
{
	void *q = arena_alloc(a, count, size);
	if (q && count && size)
		memcpy(q, p, count * size);
	return q;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *q = arena_alloc(a, n + 1, 1);
	if (q)
		memcpy(q, s, n);
	return q;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	char *q = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1, 1);
	if (q)
		vsnprintf(q, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return q;
}

/* --- Text --- */

static bool text_reserve(struct text *t, size_t more)
{
	if (t->failed)
		return false;
	if (more >= SIZE_MAX / 2 - t->len) {
		t->failed = true;
		return false;
	}
	size_t need = t->len + more + 1;
	if (need > t->cap) {
		char *s = realloc(t->s, need * 2);
		if (!s) {
			t->failed = true;
			return false;
		}
		t->s = s;
		t->cap = need * 2;
	}
	return true;
}

void text_write(struct text *t, const char *s, size_t n)
{
	if (!text_reserve(t, n))
		return;
	memcpy(t->s + t->len, s, n);
	t->len += n;
	t->s[t->len] = '\0';
}

void text_puts(struct text *t, const char *s)
{
	text_write(t, s, strlen(s));
}

void text_vadd(struct text *t, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		t->failed = true;
	else if (text_reserve(t, (size_t)n)) {
		vsnprintf(t->s + t->len, (size_t)n + 1, fmt, ap);
		t->len += (size_t)n;
	}
}

void text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	text_vadd(t, fmt, ap);
	va_end(ap);
}

void text_free(struct text *t)
{
	free(t->s);
	*t = (struct text){0};
}

int text_distance(const char *x, const char *y)
{
	int row[TEXT_NEAR + 1], n = (int)strnlen(y, TEXT_NEAR);
	for (int j = 0; j <= n; j++)
		row[j] = j;
	for (int i = 0; i < TEXT_NEAR && x[i]; i++) {
		int before = row[0];
		row[0] = i + 1;
		for (int j = 1; j <= n; j++) {
			int replaced = before + (x[i] != y[j - 1]);
			before = row[j];
			int least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
			row[j] = replaced < least ? replaced : least;
		}
	}
	return row[n];
}

bool text_mentions(const char *text, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = text; (p = strstr(p, word)) != NULL; p += n) {
		bool starts = p == text || !(isalnum((unsigned char)p[-1]) || p[-1] == '_');
		bool ends = !(isalnum((unsigned char)p[n]) || p[n] == '_');
		if (starts && ends)
			return true;
	}
	return false;
}

/* --- Files --- */

static enum status io_fail(struct diag *d, const char *path, const char *what)
{
	struct where w = {.file = path};
	return diag_fail(d, ST_IO, &w, NULL, "cannot %s: %s", what, strerror(errno));
}

enum status file_begin(const char *path, struct file_saving *s, struct diag *d)
{
	struct stat at, entry;
	struct text beside = {0};
	const bool there = lstat(path, &entry) == 0 && stat(path, &at) == 0;
	const bool special = there && !S_ISREG(at.st_mode);
	const bool link = there && !special && S_ISLNK(entry.st_mode);
	*s = (struct file_saving){.path = link ? realpath(path, NULL) : strdup(path)};
	if (s->path && !special)
		text_add(&beside, "%s.tmp%ld", s->path, (long)getpid());
	s->beside = beside.s;
	s->f = s->path && !beside.failed ? fopen(special ? path : beside.s, "wb") : NULL;
	if (s->f)
		return ST_OK;
	const enum status st = beside.failed ? diag_nomem(d) : io_fail(d, path, "write");
	file_drop(s);
	return st;
}

enum status file_end(struct file_saving *s, struct diag *d)
{
	bool whole = !ferror(s->f);
	whole &= fclose(s->f) == 0;
	s->f = NULL;
	enum status st = ST_OK;
	if (!whole || (s->beside && rename(s->beside, s->path) != 0)) {
		st = io_fail(d, s->path, "write");
		if (s->beside)
			(void)remove(s->beside);
	}
	file_drop(s);
	return st;
}

void file_drop(struct file_saving *s)
{
	if (s->f) {
		(void)fclose(s->f);
		if (s->beside)
			(void)remove(s->beside);
	}
	free(s->path);
	free(s->beside);
	*s = (struct file_saving){0};
}

enum status file_save(const char *path, file_put *content, void *user, struct diag *d)
{
	struct file_saving s;
	TRY(file_begin(path, &s, d));
	if (content(user, s.f))
		return file_end(&s, d);
	const enum status st = io_fail(d, path, "write");
	file_drop(&s);
	return st;
}

static bool put_text(void *user, FILE *f)
{
	const struct text *t = user;
	return t->len == 0 || fwrite(t->s, 1, t->len, f) == t->len;
}

enum status text_save(const struct text *t, const char *path, struct diag *d)
{
	struct text copy = *t;
	return t->failed ? diag_nomem(d) : file_save(path, put_text, &copy, d);
}

static enum status read_open(
	struct arena *a, FILE *f, const char *path, char **out, size_t *len, struct diag *d)
{
	if (fseek(f, 0, SEEK_END) != 0)
		return io_fail(d, path, "read");
	long size = ftell(f);
	if (size < 0 || fseek(f, 0, SEEK_SET) != 0)
		return io_fail(d, path, "read");
	char *s = arena_alloc(a, (size_t)size + 1, 1);
	if (!s)
		return diag_nomem(d);
	size_t got = fread(s, 1, (size_t)size, f);
	if (got != (size_t)size) {
		errno = ferror(f) ? errno : EIO;
		return io_fail(d, path, "read");
	}
	*out = s;
	*len = got;
	return ST_OK;
}

enum status file_read(struct arena *a, const char *path, char **out, size_t *len, struct diag *d)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return io_fail(d, path, "open");
	enum status st = read_open(a, f, path, out, len, d);
	fclose(f);
	return st;
}

const char *bytes_human(int64_t bytes, char buf[static 24])
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	double v = (double)bytes;
	int u = 0;
	while (v >= 1024 && u < 5) {
		v /= 1024;
		u++;
	}
	if (u == 0)
		snprintf(buf, 24, "%" PRId64 " B", bytes);
	else
		snprintf(buf, 24, v < 10 ? "%.2f %s" : v < 100 ? "%.1f %s" : "%.0f %s", v, unit[u]);
	return buf;
}

uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
	const unsigned char *p = data;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

int list_length(const char *const *list)
{
	int n = 0;
	while (list && list[n])
		n++;
	return n;
}

bool name_fits(const char *pattern, const char *name)
{
	return !strcmp(pattern, name) || fnmatch(pattern, name, 0) == 0;
}

bool name_matches(const char *const *patterns, const char *name)
{
	for (; patterns && *patterns; patterns++)
		if (name_fits(*patterns, name))
			return true;
	return false;
}

bool name_listed(const char *const *names, const char *name)
{
	for (; names && *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

const char *dims_text(int rank, const int64_t *dim, char buf[static 200])
{
	size_t n = 0;
	buf[n++] = '[';
	for (int i = 0; i < rank; i++)
		n += (size_t)snprintf(buf + n, 200 - n, "%s%lld", i ? ", " : "", (long long)dim[i]);
	snprintf(buf + n, 200 - n, "]");
	return buf;
}

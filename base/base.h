/* The ground floor: status codes, diagnostics, arena memory, checked sizes, growable text.
 * Includes nothing of ours. Nothing here (nor in any library folder) prints or exits. */
#ifndef STINT_BASE_H
#define STINT_BASE_H

#include <float.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Constants are folded here as a step computes (16: half precision's matter). */
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "numbers are computed with more bits than they have: compile with -msse2 -mfpmath=sse"
#endif

/* What every fallible function returns. The values are the process exit codes of the command line.
 */
enum status {
	ST_OK = 0,
	ST_INTERNAL = 1, /* a bug of ours, or out of memory */
	ST_USAGE = 2,    /* wrong options; also "not yet" */
	ST_INVALID = 3,  /* invalid or unsupported model or data */
	ST_BUDGET = 4,   /* no plan within the budget */
	ST_IO = 5,       /* files, devices, the system's C compiler */
	ST_LOST = 6,     /* another process of several is dead, stuck or not the same */
	ST_DIVERGED = 7, /* training: values that are not finite */
	ST_INTERRUPTED = 130,
};

/* Pass a failure on, unchanged. */
#define TRY(call)                                                                                  \
	do {                                                                                       \
		enum status try_status_ = (call);                                                  \
		if (try_status_ != ST_OK)                                                          \
			return try_status_;                                                        \
	} while (0)

/* --- Diagnostics: a caller-owned sink. Libraries report here and return a status. --- */

enum diag_level { DIAG_NOTE, DIAG_WARNING, DIAG_ERROR };

/* Where a message belongs; any field may be NULL. */
struct where {
	const char *file; /* the model or data file */
	const char *node; /* the node, tensor or record in it */
	const char *op;   /* operator name */
};

struct diag {
	/* Called once per message; strings are valid during the call only. May be NULL. */
	void (*put)(void *user, enum diag_level level, const struct where *w, const char *message,
		const char *hint);
	void *user;
	unsigned errors, warnings; /* counts so far */
	enum status worst;         /* status of the first error, ST_OK if none */
	bool out_of_memory;        /* diag_nomem was called: no bug of ours */
};

/* Report an error and return `status`, so that `return diag_fail(...)` reads well.
 * `w` and `hint` may be NULL. */
enum status diag_fail(struct diag *d, enum status status, const struct where *w, const char *hint,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));
enum status diag_vfail(struct diag *d, enum status status, const struct where *w, const char *hint,
	const char *fmt, va_list ap) __attribute__((format(printf, 5, 0)));
void diag_warn(struct diag *d, const struct where *w, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void diag_note(struct diag *d, const struct where *w, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* "out of memory" as an ST_INTERNAL error. */
enum status diag_nomem(struct diag *d);

/* --- Arena: owns the objects of one compilation; freed once, by its creator. --- */

struct arena;
struct arena *arena_new(void); /* NULL when out of memory */
void arena_free(struct arena *a);
/* count * size zeroed bytes, aligned for any type; NULL on overflow or out of memory.
 * A count or size of 0 gives a valid pointer. */
void *arena_alloc(struct arena *a, size_t count, size_t size);
/* Free an object of more than 16 KiB before the rest, if it can be; small ones, and NULL, are left
 * alone. In time in proportion to the blocks made since. */
void arena_release(struct arena *a, void *p, size_t size);
/* The file's first `bytes` bytes, mapped for reading until the arena is freed; fd may be closed.
 * For 0 bytes a valid pointer. NULL and errno. `path`, of which a copy is kept, is the file's name
 * for arena_mapped; NULL: it has none. */
const void *arena_map(struct arena *a, int fd, size_t bytes, const char *path);
/* Whether these bytes are part of such a file with a name; at *offset. */
bool arena_mapped(
	const struct arena *a, const void *p, size_t bytes, const char **path, size_t *offset);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void *arena_memdup(struct arena *a, const void *p, size_t count, size_t size);

/* `p = ARENA_NEW(a, struct x)` and `p = ARENA_ARRAY(a, struct x, n)`. */
#define ARENA_NEW(a, type) ((type *)arena_alloc((a), 1, sizeof(type)))
#define ARENA_ARRAY(a, type, n) ((type *)arena_alloc((a), (size_t)(n), sizeof(type)))

/* --- Checked size arithmetic: true on success; *out untouched on overflow or a negative operand.
 * --- */

static inline bool size_mul(int64_t a, int64_t b, int64_t *out)
{
	int64_t r;
	if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r))
		return false;
	*out = r;
	return true;
}

static inline bool size_add(int64_t a, int64_t b, int64_t *out)
{
	int64_t r;
	if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &r))
		return false;
	*out = r;
	return true;
}

/* The next multiple of `align` (a power of two) at or above `a`; false on overflow. */
static inline bool size_align(int64_t a, int64_t align, int64_t *out)
{
	int64_t r;
	if (!size_add(a, align - 1, &r))
		return false;
	*out = r & ~(align - 1);
	return true;
}

/* --- Growable text, used for all generated source and JSON. --- */

struct text {
	char *s; /* NUL-terminated once anything was added; NULL before */
	size_t len, cap;
	bool failed; /* sticky: an allocation failed, the content is incomplete */
};
void text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_vadd(struct text *t, const char *fmt, va_list ap);
void text_puts(struct text *t, const char *s);
void text_write(struct text *t, const char *s, size_t n);
void text_free(struct text *t);
/* `word` occurs in `text` as a whole identifier. */
bool text_mentions(const char *text, const char *word);
/* Insertions, deletions and replacements from x to y, of the first TEXT_NEAR bytes of both. */
enum { TEXT_NEAR = 80 };
int text_distance(const char *x, const char *y);

/* A file that is being written beside its place, or, where that is a device or a pipe, into it:
 * nothing half-written stays. A link's target is what is replaced. */
struct file_saving {
	FILE *f;
	char *path, *beside; /* NULL: into it */
};
enum status file_begin(const char *path, struct file_saving *s, struct diag *d);
/* It takes its place. */
enum status file_end(struct file_saving *s, struct diag *d);
/* It goes; also what was ended, or never begun and is all zeros. */
void file_drop(struct file_saving *s);

/* Writes a file's content; false and errno where it cannot. */
typedef bool file_put(void *user, FILE *f);
/* Write `path` so, whole. */
enum status file_save(const char *path, file_put *put, void *user, struct diag *d);
/* The whole text so. */
enum status text_save(const struct text *t, const char *path, struct diag *d);
/* The whole file into arena memory, NUL-terminated; *len without the NUL. */
enum status file_read(struct arena *a, const char *path, char **out, size_t *len, struct diag *d);

/* FNV-1a, 64 bits: of n bytes behind those that gave h, which begins as HASH_BEGIN. */
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)
uint64_t hash_bytes(uint64_t h, const void *data, size_t n);

/* Of a list ended by NULL; NULL: 0. */
int list_length(const char *const *list);
/* Whether a shell pattern (fnmatch) matches, or is the name itself, letter for letter. */
bool name_fits(const char *pattern, const char *name);
/* Whether one of these (ended by NULL; NULL: none) does. */
bool name_matches(const char *const *patterns, const char *name);
/* The same of names as they are. */
bool name_listed(const char *const *names, const char *name);
/* "[4, 3]": writes into buf, returns buf. */
const char *dims_text(int rank, const int64_t *dim, char buf[static 200]);
/* A byte count for people: "512 B", "1.50 KiB", "12.3 MiB". Writes into buf, returns buf. */
const char *bytes_human(int64_t bytes, char buf[static 24]);

#endif

/* Files of tokens, as nanoGPT writes them (16-bit numbers and nothing else) and llm.c (a header of
 * 256 32-bit numbers before them: a magic, a version, how many there are; 20240520: of 16 bits,
 * 20240801: of 32); or bytes, of a text say (",uint8"). "T:FILE" is windows of T tokens one behind
 * the other, "T+1:FILE" the same windows one token later: what a model that has read each token is
 * to say next. What tokens are called may stand in vocab.txt beside the file, one a line. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/kind.h"
#include "data/name_list.h"

enum { HEADER_NUMBERS = 256, MAGIC_16 = 20240520, MAGIC_32 = 20240801 };

/* "T" or "T+1", ",uint32" or ",uint8" perhaps, a colon; *file is behind it. */
static int read_window(
	const char *text, int64_t *length, int *later, enum dataset_type *type, const char **file)
{
	char *end;
	errno = 0;
	*length = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : 0;
	if (*length < 1 || errno)
		return 1;
	*later = strncmp(end, "+1", 2) == 0;
	end += *later ? 2 : 0;
	const int wide = strncmp(end, ",uint32", 7) == 0, bytes = strncmp(end, ",uint8", 6) == 0;
	end += wide ? 7 : bytes ? 6 : 0;
	*type = wide ? DATASET_U32 : bytes ? DATASET_U8 : DATASET_U16;
	*file = end + 1;
	return *end != ':' || !end[1];
}

/* Numbers of a header, little-endian. */
static int64_t number(const unsigned char *raw, int i)
{
	const unsigned char *p = raw + 4 * i;
	return (int64_t)((uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0]);
}

/* Type, begin and count of the tokens in a file of so many bytes. */
static int find_tokens(
	struct dataset *d, struct elements *e, int64_t bytes, int64_t *count, char message[256])
{
	unsigned char raw[4 * HEADER_NUMBERS];
	if (d->type != DATASET_U8 && bytes >= (int64_t)sizeof raw &&
		pread(e->fd, raw, sizeof raw, 0) == (ssize_t)sizeof raw &&
		(number(raw, 0) == MAGIC_16 || number(raw, 0) == MAGIC_32)) {
		d->type = number(raw, 0) == MAGIC_32 ? DATASET_U32 : DATASET_U16;
		e->at = sizeof raw;
	}
	*count = (bytes - e->at) / dataset_width(d->type);
	if ((bytes - e->at) % dataset_width(d->type))
		return dataset_bad(message, d->path,
			"ends within a token of %d bits; a text's bytes are tokens:T,uint8:FILE",
			(int)(8 * dataset_width(d->type)));
	if (e->at && number(raw, 2) != *count)
		return dataset_bad(message, d->path, "its header says %lld tokens, it has %lld",
			(long long)number(raw, 2), (long long)*count);
	return 0;
}

static int open_file(struct elements *e, const char *file, int64_t *bytes)
{
	struct stat st;
	e->fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (e->fd < 0 || fstat(e->fd, &st) != 0)
		return 1;
	*bytes = st.st_size;
	errno = S_ISREG(st.st_mode) ? 0 : EISDIR;
	return errno;
}

/* --- What tokens are called --- */

struct tokens {
	struct elements e;       /* first: what elements_all takes */
	struct name_list names;  /* none: they are numbers alone */
	struct name_list column; /* the same behind "token", as the one item of dataset_columns */
};

static int read_names(struct tokens *t, FILE *f, const char *path, char message[256])
{
	struct name_list column = {0};
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int rc = name_list_add(&column, "token");
	while (!rc && (n = getline(&line, &room, f)) > 0) {
		if (strlen(line) < (size_t)n) {
			rc = dataset_bad(message, path, "line %lld is no text: one token a line",
				(long long)t->names.n + 1);
			break;
		}
		line[strcspn(line, "\r\n")] = '\0';
		if (name_list_add(&t->names, line) || name_list_add(&column, line))
			rc = dataset_bad(message, path, "out of memory");
	}
	if (!rc && ferror(f))
		rc = dataset_bad(message, path, "cannot read: %s", strerror(errno));
	if (!rc && t->names.n && name_list_add(&t->column, column.text))
		rc = dataset_bad(message, path, "out of memory");
	free(line);
	name_list_free(&column);
	return rc;
}

/* vocab.txt in the folder of `file`, where there is one. */
static int find_names(struct tokens *t, const char *file, char message[256])
{
	static const char name[] = "vocab.txt";
	const char *slash = strrchr(file, '/');
	const size_t folder = slash ? (size_t)(slash + 1 - file) : 0;
	char *path = malloc(folder + sizeof name);
	if (!path)
		return dataset_bad(message, file, "out of memory");
	memcpy(path, file, folder);
	memcpy(path + folder, name, sizeof name);
	FILE *f = fopen(path, "re");
	const int rc = f ? read_names(t, f, path, message) : 0;
	if (f)
		(void)fclose(f);
	free(path);
	return rc;
}

static const char *tokens_classes(const struct dataset *d)
{
	const struct tokens *t = d->state;
	return t->names.text;
}

static const char *tokens_columns(const struct dataset *d)
{
	const struct tokens *t = d->state;
	return t->column.text;
}

/* Another vocabulary would be another language. */
static int tokens_take(struct dataset *d, const char *classes, char message[256])
{
	const struct tokens *t = d->state;
	const char *own = t->names.text, *theirs = classes;
	if (!own || !classes || !strcmp(own, classes))
		return 0;
	int64_t place = 0;
	char *a = name_list_at(own, 0), *b = name_list_at(theirs, 0);
	while (a && b && !strcmp(a, b)) {
		own = dataset_class_next(own, NULL, NULL);
		theirs = dataset_class_next(theirs, NULL, NULL);
		place++;
		free(a);
		free(b);
		a = name_list_at(own, 0);
		b = name_list_at(theirs, 0);
	}
	dataset_bad(message, d->path,
		"its vocab.txt calls token %lld %s%.30s%s, and what is trained %s%.30s%s",
		(long long)place, a ? "'" : "", a ? a : "nothing", a ? "'" : "", b ? "'" : "",
		b ? b : "nothing", b ? "'" : "");
	free(a);
	free(b);
	return 1;
}

static int tokens_take_columns(struct dataset *d, const char *columns, char message[256])
{
	char *column = name_list_at(columns, 0);
	const char *words = column ? dataset_class_next(column, NULL, NULL) : NULL;
	const int rc = column ? tokens_take(d, words, message)
			      : dataset_bad(message, d->path, "out of memory");
	free(column);
	return rc;
}

static void tokens_close(struct dataset *d)
{
	struct tokens *t = d->state;
	if (t) {
		name_list_free(&t->names);
		name_list_free(&t->column);
	}
	elements_free(d);
}

static int tokens_open(struct dataset *d, const char *text, char message[256])
{
	const uint16_t one = 1;
	struct tokens *t = calloc(1, sizeof *t);
	struct elements *e = t ? &t->e : NULL;
	const char *file = NULL;
	int64_t bytes, count, length = 0;
	int later = 0;
	d->state = t;
	d->cheap = 1;
	if (!e)
		return dataset_bad(message, d->path, "out of memory");
	e->fd = -1;
	if (read_window(text, &length, &later, &d->type, &file))
		return dataset_bad(message, d->path,
			"is written tokens:T[,uint32|,uint8]:FILE, or tokens:T+1:FILE for what "
			"follows "
			"each "
			"token");
	if (open_file(e, file, &bytes))
		return dataset_bad(message, d->path, "cannot open: %s", strerror(errno));
	if (find_tokens(d, e, bytes, &count, message) || find_names(t, file, message))
		return 1;
	if (count - 1 < length)
		return dataset_bad(message, d->path,
			"has %lld tokens, too few for one window of %lld and the token behind it",
			(long long)count, (long long)length);
	e->at += later * dataset_width(d->type);
	e->swap = !*(const unsigned char *)&one;
	d->rank = 2;
	d->dim[0] = (count - 1) / length;
	d->dim[1] = length;
	return dataset_count(d, &bytes) ? dataset_bad(message, d->path, "is too large") : 0;
}

const struct dataset_kind tokens_kind = {.open = tokens_open,
	.read = elements_all,
	.close = tokens_close,
	.classes = tokens_classes,
	.take_classes = tokens_take,
	.columns = tokens_columns,
	.take_columns = tokens_take_columns};

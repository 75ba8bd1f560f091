/* Inside data/: a kind of source, and what kinds share. */
#ifndef STINT_DATA_KIND_H
#define STINT_DATA_KIND_H

#include "data/dataset.h"

struct dataset_kind {
	/* Sets type, rank, dim and state. Where it fails it may leave state for `close`. */
	int (*open)(struct dataset *d, const char *path, char message[256]);
	/* Samples first to first + n - 1, whole rows in this machine's byte order. n is more than 1
	 * only while the rows stay within DATASET_BLOCK bytes. */
	int (*read)(
		const struct dataset *d, int64_t first, int64_t n, void *out, char message[256]);
	void (*close)(struct dataset *d);
	/* What a sample is called, NULL: samples have no names. */
	const char *(*name)(const struct dataset *d, int64_t sample);
	/* The folder that its name begins in; "": none, the name is the whole path. */
	const char *(*folder)(const struct dataset *d);
	/* Of pictures: what their shorter side becomes, and the side of the square that is cut out.
	 */
	void (*sizes)(const struct dataset *d, int *resize, int *crop);
	/* What its labels are called, with a "/" between two; and others' places instead of its
	 * own. NULL: its labels have no names. */
	const char *(*classes)(const struct dataset *d);
	int (*take_classes)(struct dataset *d, const char *classes, char message[256]);
	/* The same of columns: dataset_columns. NULL: it has none. */
	const char *(*columns)(const struct dataset *d);
	int (*take_columns)(struct dataset *d, const char *columns, char message[256]);
};

enum { DATASET_BLOCK = 1 << 18 };

/* Which of the kinds reads `path`; *rest: what of the text is its own. */
const struct dataset_kind *dataset_kind_of(const char *path, const char **rest);

extern const struct dataset_kind array_kind;   /* .npy and IDX, plain or gzip */
extern const struct dataset_kind npz_kind;     /* FILE.npz:NAME */
extern const struct dataset_kind tensors_kind; /* FILE.safetensors:NAME */
extern const struct dataset_kind command_kind; /* cmd:PROGRAM */
extern const struct dataset_kind csv_kind;     /* csv:FILE, csv:COLUMNS:FILE */
extern const struct dataset_kind images_kind;  /* images:SETTINGS:FOLDER */
extern const struct dataset_kind masks_kind;   /* masks:SETTINGS:FOLDER */
extern const struct dataset_kind labels_kind;  /* labels:FOLDER */
extern const struct dataset_kind tokens_kind;  /* tokens:T:FILE, tokens:T+1:FILE */

/* Of "FILE.npz:NAME" or "FILE.safetensors:NAME" the name; NULL: neither. */
const char *archive_member(const char *path);

int dataset_width(enum dataset_type type); /* bytes */
/* Sets the message "PATH: ...", returns 1. */
int dataset_bad(char message[256], const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* d->row from dim; 1 where a row or all bytes are too many to count. */
int dataset_count(struct dataset *d, int64_t *bytes);

/* Rows that lie one behind the other in an open file. */
struct elements {
	int fd;
	int64_t at; /* of the first */
	int swap;   /* stored in the other byte order */
};
int elements_read(const struct dataset *d, const struct elements *e, int64_t first, int64_t n,
	void *out, char message[256]);
/* Hooks of a kind whose state is such rows, allocated. */
int elements_all(const struct dataset *d, int64_t first, int64_t n, void *out, char message[256]);
void elements_free(struct dataset *d);
/* d->state as that of `like`, of the same file. */
int elements_again(struct dataset *d, const struct dataset *like, char message[256]);
/* The same samples in C order: those of `e` stand in Fortran's. A new file takes their place. */
int elements_turn(struct dataset *d, struct elements *e, char message[256]);

#endif

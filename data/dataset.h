/* Sources of data: samples are read when they are wanted, and never lie in memory all at once. Axis
 * 0 counts samples; elements keep the type that they are stored in (a byte stays a byte). Nothing
 * here prints; messages go into the caller's buffer of 256 bytes and name the source. Functions
 * return 0, or 1 with a message. */
#ifndef STINT_DATASET_H
#define STINT_DATASET_H

#include <stddef.h>
#include <stdint.h>

enum { DATASET_RANK = 8, DATASET_CHANNELS = 64 };

enum dataset_type {
	DATASET_F16,
	DATASET_F32,
	DATASET_F64,
	DATASET_I8,
	DATASET_I16,
	DATASET_I32,
	DATASET_I64,
	DATASET_U8,
	DATASET_U16,
	DATASET_U32,
	DATASET_U64,
	DATASET_BOOL
};

struct dataset {
	const char *path; /* a copy of what was opened */
	enum dataset_type type;
	int rank;
	int64_t dim[DATASET_RANK]; /* dim[0]: samples; a scalar file has rank 0 */
	int64_t row;               /* elements of one sample: dim[1] * dim[2] * ... */
	int64_t seed, epoch;       /* what is drawn by chance depends on these and the sample */
	int cheap;                 /* all samples may be read just to look at them */
	const struct dataset_kind *kind;
	void *state;   /* the kind's */
	void *scratch; /* rows on their way */
};

/* Opens `path`: see data/kinds.c for what there is. Headers and lengths are checked; samples are
 * read later. */
int dataset_open(struct dataset *out, const char *path, char message[256]);
/* The same as `d`, by itself: a source whose samples lie in an open file is not read again, and a
 * program does not run again. */
int dataset_again(struct dataset *out, const struct dataset *d, char message[256]);
/* Such a text: "images:..." and the like, and no file's name. */
int dataset_is_prefixed(const char *path);
/* The words that such a text begins with, before a colon, from 0; NULL: there are no more. */
const char *dataset_prefix(int i);
/* The file or folder that `path` names, without what stands around it ("tokens:8:FILE",
 * "FILE.npz:NAME"): where it begins, and of how many bytes. */
const char *dataset_file(const char *path, size_t *bytes);
void dataset_close(struct dataset *d);
int64_t dataset_samples(const struct dataset *d); /* 1 of a scalar */
/* The file that a sample of a folder is, from the folder on; NULL: of no folder. */
const char *dataset_name(const struct dataset *d, int64_t sample);
/* The folder that such names begin in; "": none, they are whole paths. NULL: of no folder. */
const char *dataset_folder(const struct dataset *d);
/* The path of the file that a sample of a folder is, as snprintf writes it; 0: of no folder. */
int dataset_sample_file(const struct dataset *d, int64_t sample, char *out, size_t room);
/* Of pictures (images:): what their shorter side becomes, and the side of what is cut out; 0: none.
 */
int dataset_sizes(const struct dataset *d, int *resize, int *crop);
/* Whether these are words, between commas, that draw by chance what is made of a picture. */
int dataset_is_augmentation(const char *words);
/* Whether the name is a picture's, by its ending. */
int dataset_is_picture(const char *path);
/* The names of classes that labels count, with a "/" between two (of a name's own, and of a "\", a
 * "\" stands before it); NULL: they have none. */
const char *dataset_classes(const struct dataset *d);
/* The first name of such a text into `name`, of *bytes and a NUL (either may be NULL). What is
 * behind it, NULL: it was the last. */
const char *dataset_class_next(const char *rest, char *name, size_t *bytes);
/* Labels count these names from now on, whatever classes are there: of those that have names. A
 * class that is none of them is an error. */
int dataset_take_classes(struct dataset *d, const char *classes, char message[256]);
/* What a sample's numbers are called: a list, as dataset_classes, of lists: a column's name, and
 * where it holds words these in the order of their numbers. NULL: they have no names. */
const char *dataset_columns(const struct dataset *d);
/* Words of columns of these names count as there from now on; one that is not among them, or
 * numbers in the place of words, is an error. */
int dataset_take_columns(struct dataset *d, const char *columns, char message[256]);
/* "csv:FILE" as "csv:COLUMN,COLUMN:FILE" of these, malloc's; NULL: it is another source, or names
 * columns itself. */
char *dataset_with_columns(const char *path, const char *columns);
/* The first sample whose file in `a` is called other than that in `b`, folders and endings aside;
 * -1: there is none, or no names. Requires as many samples of both. */
int64_t dataset_misnamed(const struct dataset *a, const struct dataset *b);

/* The value of an IEEE 754 binary16. */
double dataset_half(uint16_t h);

/* What real numbers become: value * scale + shift, by channel; channel c has `inner` elements, then
 * comes the next, and after the last the first again. */
struct dataset_map {
	int channels;
	int64_t inner;
	double scale[DATASET_CHANNELS], shift[DATASET_CHANNELS];
};

enum dataset_as { DATASET_AS_F32, DATASET_AS_F64, DATASET_AS_I64, DATASET_AS_BOOL };

/* Samples index[0..n) as `as` into `out` (n * row elements; `bool` as one byte each). `map` is for
 * real ones; NULL: as they are. Indices are the caller's to check. *done: how many samples are
 * there, fewer than n with a message about the next one: it cannot be read, or holds what is no
 * whole number of 64 bits where such are wanted. */
int dataset_read(const struct dataset *d, const int64_t *index, int64_t n, enum dataset_as as,
	const struct dataset_map *map, void *out, int64_t *done, char message[256]);

/* Looks through a dataset of whole numbers: *where is the first sample that holds a *value outside
 * [low, high] that is not `except`, or -1. */
int dataset_outside(const struct dataset *d, int64_t low, int64_t high, int64_t except,
	int64_t *where, int64_t *value, char message[256]);

/* Writes numbers, row by row, as a palette PNG, which shows each in a colour of its own: PASCAL
 * VOC's. The file must not be there. */
int dataset_write_mask(const char *path, int64_t width, int64_t height, const unsigned char *number,
	char message[256]);

/* Writes a float or double array as .npy (used by tests and tools). */
int dataset_write_npy(const char *path, int is_double, int rank, const int64_t *dim,
	const void *data, char message[256]);

#endif

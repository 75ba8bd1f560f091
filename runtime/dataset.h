/* Data files in memory: .npy (versions 1 to 3), IDX and IDX.gz, told apart by their content. Axis 0
 * counts samples. The file's own element type is kept in memory (a byte stays a byte). Nothing here
 * prints; messages go into the caller's buffer of 256 bytes and name the file. Functions return 0,
 * or 1 with a message. */
#ifndef STINT_DATASET_H
#define STINT_DATASET_H

#include <stddef.h>
#include <stdint.h>

enum { DATASET_RANK = 8 };

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
	const char *path; /* a copy */
	enum dataset_type type;
	int rank;
	int64_t dim[DATASET_RANK]; /* dim[0]: samples; a scalar file has rank 0 */
	int64_t row;               /* elements of one sample: dim[1] * dim[2] * ... */
	void *data;                /* native byte order, C order */
};

/* Opens and reads `path`. Headers are checked: sizes, types, lengths, trailing bytes. Fortran order
 * is turned into C order. */
int dataset_open(struct dataset *out, const char *path, char message[256]);
void dataset_close(struct dataset *d);

/* The value of an IEEE 754 binary16. */
double dataset_half(uint16_t h);

/* Samples index[0..n) as float, double or int64 into `out` (n * row elements): value * scale +
 * shift for the real ones. `bool` as one byte each. Indices are the caller's to check. */
void dataset_f32(const struct dataset *d, const int64_t *index, int64_t n, double scale,
	double shift, float *out);
void dataset_f64(const struct dataset *d, const int64_t *index, int64_t n, double scale,
	double shift, double *out);
/* 1 with a message when a value is no whole number that fits. */
int dataset_i64(
	const struct dataset *d, const int64_t *index, int64_t n, int64_t *out, char message[256]);
void dataset_bool(const struct dataset *d, const int64_t *index, int64_t n, unsigned char *out);

/* Smallest and largest value of a dataset of whole numbers; where: the sample that holds the
 * offender outside [low, high] that is not `except`, or -1. For labels: a message can then name the
 * sample. */
int64_t dataset_outside(
	const struct dataset *d, int64_t low, int64_t high, int64_t except, int64_t *value);

/* order[0..n) becomes a permutation of 0..n-1 that depends on seed and epoch only (Philox, Fisher
 * and Yates). */
void dataset_shuffle(int64_t *order, int64_t n, int64_t seed, int64_t epoch);

/* Writes a float or double array as .npy (used by tests and tools). */
int dataset_write_npy(const char *path, int is_double, int rank, const int64_t *dim,
	const void *data, char message[256]);

#endif

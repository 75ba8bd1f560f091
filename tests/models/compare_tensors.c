/* Compare two files of tensors.
 *
 *	compare_tensors [--no-outputs] [--rounding FILE SCALE] TOLERANCE OURS.safetensors
 *		REFERENCE.safetensors
 *	compare_tensors --identical A.safetensors B.safetensors
 *
 * With a tolerance: every tensor of the reference must be in ours under the same name and shape,
 * finite, and within TOLERANCE times the larger of the tensor's own greatest magnitude and a
 * thousandth of the greatest of the model's gradients: rounding in a sum that cancels (a bias in
 * front of a batch-norm, whose gradient is zero) is judged against what was summed. Running
 * statistics are allowed MOMENTUM_ERROR even in double precision.
 * Without outputs: the reference's are not looked for.
 * With rounding, besides: the norm of a tensor's error, over the larger of its own norm and a
 * thousandth of that of all gradients, is at most SCALE times twice what PyTorch's own is in bf16.
 * FILE says that, "ERROR NAME" by lines; LEAST for tensors that it leaves out, and MOST for those
 * that rounding makes of no use.
 * Identical: the same names, types, shapes and bytes.
 * Exit 0 when they agree, 1 when not, 2 when a file is unusable.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/safetensors.h"
#include "runtime/stint_rt.h"
#include "tests/models/open.h"

/* BatchNormalization's momentum is a float32 attribute, the reference's 0.1 is not: 1 - 0.9f is off
 * by up to 2^-25, of 0.1. */
#define MOMENTUM_ERROR 3e-7
/* Errors of norms: PyTorch's that is not listed, and what is allowed at most: a gradient of half
 * its size is off by 0.5. */
#define LEAST 0.01
#define MOST 0.4

static bool same_shape(const struct safetensors_entry *a, const struct safetensors_entry *b)
{
	return a->rank == b->rank &&
	       (!a->rank || !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim));
}

static size_t width(const struct safetensors_entry *e)
{
	return e->dtype == STINT_F64 ? sizeof(double) : e->dtype == STINT_F32 ? sizeof(float) : 0;
}

/* Read by memcpy: the file's data need not be aligned. */
static double value(const struct safetensors_entry *e, size_t i)
{
	double wide;
	float narrow;
	if (e->dtype == STINT_F64) {
		memcpy(&wide, (const char *)e->data + i * sizeof wide, sizeof wide);
		return wide;
	}
	memcpy(&narrow, (const char *)e->data + i * sizeof narrow, sizeof narrow);
	return (double)narrow;
}

static double greatest(const struct safetensors_entry *e)
{
	double top = 0;
	for (size_t i = 0; i < e->bytes / width(e); i++)
		top = fmax(top, fabs(value(e, i)));
	return top;
}

static double greatest_gradient(const struct safetensors *f)
{
	double top = 0;
	for (int i = 0; i < safetensors_count(f); i++) {
		const struct safetensors_entry *e = safetensors_at(f, i);
		if (!strncmp(e->name, "grad/", 5) && width(e))
			top = fmax(top, greatest(e));
	}
	return top;
}

/* The greatest difference over what is allowed at a tolerance of 1; not a number and infinity are
 * the worst. */
static double difference(
	const struct safetensors_entry *ours, const struct safetensors_entry *ref, double floor)
{
	double worst = 0, scale = fmax(greatest(ref), floor);
	for (size_t i = 0; i < ref->bytes / width(ref); i++) {
		double d = fabs(value(ours, i) - value(ref, i));
		if (!isfinite(value(ours, i)))
			return INFINITY;
		worst = fmax(worst, d);
	}
	return worst == 0 ? 0 : worst / scale;
}

/* --- Rounding --- */

struct rounding {
	const char *path; /* NULL: not asked for */
	double scale;
	double floor; /* of norms */
};

/* PyTorch's error of a tensor. */
static double listed_error(const char *path, const char *name)
{
	char line[1024];
	double error = LEAST;
	FILE *f = fopen(path, "r");
	if (!f) {
		perror(path);
		exit(2);
	}
	while (fgets(line, sizeof line, f)) {
		char *end;
		const double e = strtod(line, &end);
		line[strcspn(line, "\n")] = 0;
		if (*end == ' ' && !strcmp(end + 1, name))
			error = e;
	}
	fclose(f);
	return error;
}

static double squares(const struct safetensors_entry *e, const struct safetensors_entry *less)
{
	double sum = 0;
	for (size_t i = 0; i < e->bytes / width(e); i++) {
		const double d = value(e, i) - (less ? value(less, i) : 0);
		sum += d * d;
	}
	return sum;
}

static double norm_of_gradients(const struct safetensors *f)
{
	double sum = 0;
	for (int i = 0; i < safetensors_count(f); i++) {
		const struct safetensors_entry *e = safetensors_at(f, i);
		if (!strncmp(e->name, "grad/", 5) && width(e))
			sum += squares(e, NULL);
	}
	return sqrt(sum);
}

/* Whether o is as near to r as rounding brings it. */
static bool is_rounded(const struct rounding *x, const struct safetensors_entry *o,
	const struct safetensors_entry *r)
{
	const double allowed = x->scale *
			       fmin(MOST, 2 * fmax(LEAST, listed_error(x->path, r->name)));
	const double error = sqrt(squares(o, r)), norm = fmax(sqrt(squares(r, NULL)), x->floor);
	if (error <= allowed * norm)
		return true;
	fprintf(stderr, "%s: the norm of its error is %.3g of its own, allowed is %.3g\n", r->name,
		error / norm, allowed);
	return false;
}

/* --- Files --- */

static int compare(double tolerance, bool outputs, struct rounding *rounding, const char *our_path,
	const char *ref_path)
{
	struct safetensors *ours = open_or_exit(our_path), *ref = open_or_exit(ref_path);
	double floor = 1e-3 * greatest_gradient(ref), worst = 0;
	rounding->floor = 1e-3 * norm_of_gradients(ref);
	const char *offender = "none";
	int bad = safetensors_count(ref) == 0;
	for (int i = 0; i < safetensors_count(ref); i++) {
		const struct safetensors_entry *r = safetensors_at(ref, i);
		const struct safetensors_entry *o = safetensors_find(ours, r->name);
		if (!outputs && !strncmp(r->name, "output/", 7))
			continue;
		if (!o || !width(o) || !width(r) || !same_shape(o, r)) {
			fprintf(stderr, "%s: %s in %s\n", r->name,
				o ? "another type or shape" : "missing", our_path);
			bad = 1;
			continue;
		}
		double d = difference(o, r, floor);
		double allowed = strncmp(r->name, "buffer/", 7) ? tolerance
								: fmax(tolerance, MOMENTUM_ERROR);
		if (d > allowed) {
			fprintf(stderr, "%s: off by %.3g, allowed is %.3g\n", r->name, d, allowed);
			bad = 1;
		}
		bad |= rounding->path && !is_rounded(rounding, o, r);
		if (d >= worst) {
			worst = d;
			offender = r->name;
		}
	}
	printf("%d tensors; the worst, %s, is off by %.3g\n", safetensors_count(ref), offender,
		worst);
	safetensors_close(ours);
	safetensors_close(ref);
	return bad;
}

static int identical(const char *path_a, const char *path_b)
{
	struct safetensors *a = open_or_exit(path_a), *b = open_or_exit(path_b);
	int bad = safetensors_count(a) == 0 || safetensors_count(a) != safetensors_count(b);
	if (bad)
		fprintf(stderr, "%d tensors in %s, %d in %s\n", safetensors_count(a), path_a,
			safetensors_count(b), path_b);
	for (int i = 0; i < safetensors_count(a); i++) {
		const struct safetensors_entry *x = safetensors_at(a, i);
		const struct safetensors_entry *y = safetensors_find(b, x->name);
		if (y && x->dtype == y->dtype && same_shape(x, y) && x->bytes == y->bytes &&
			!memcmp(x->data, y->data, x->bytes))
			continue;
		fprintf(stderr, "%s differs between %s and %s", x->name, path_a, path_b);
		if (y && width(x) && x->dtype == y->dtype && same_shape(x, y))
			fprintf(stderr, ", by %.3g of its greatest", difference(x, y, 0));
		fputc('\n', stderr);
		bad = 1;
	}
	safetensors_close(a);
	safetensors_close(b);
	return bad;
}

int main(int argc, char **argv)
{
	char *end;
	struct rounding rounding = {0};
	if (argc == 4 && !strcmp(argv[1], "--identical"))
		return identical(argv[2], argv[3]);
	const bool outputs = argc < 2 || strcmp(argv[1], "--no-outputs") != 0;
	argv += !outputs;
	argc -= !outputs;
	if (argc == 7 && !strcmp(argv[1], "--rounding")) {
		rounding = (struct rounding){.path = argv[2], .scale = strtod(argv[3], NULL)};
		argv += 3;
		argc -= 3;
	}
	double tolerance = argc == 4 ? strtod(argv[1], &end) : 0;
	if (argc == 4 && end != argv[1] && !*end && tolerance > 0)
		return compare(tolerance, outputs, &rounding, argv[2], argv[3]);
	fprintf(stderr, "usage: compare_tensors [--no-outputs] [--rounding FILE SCALE] "
			"TOLERANCE|--identical OURS REFERENCE\n");
	return 2;
}

/* math_table FOLDER [STEP [NAME...]]: the largest errors of the single-precision functions over
 * every STEP-th float (1: all; about a minute each) against the C library's in double precision,
 * and the time an element takes in a loop compiled for this machine, beside the C library's. STEP
 * 0: only the times. FOLDER is for the compiler's output. */
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/codegen/math_loops.h"

typedef void reference_loop(int64_t n, const float *restrict x, double *restrict y);

enum { PART = 4096, ROUNDS = 300 };

struct function {
	const char *name, *symbol;
	double (*wide)(double);
	float (*narrow)(float);
	bool mirrored;   /* f(-x) is f(x) or -f(x), to the bit: half of all floats will do */
	float low, high; /* arguments that are timed */
};

/* The C library's functions in double, in loops: glibc has them for vectors, where a machine does.
 */
static void *reference_open(const char *folder)
{
	char path[4096], command[9000];
	snprintf(path, sizeof path, "%s/reference.c", folder);
	FILE *f = fopen(path, "w");
	if (!f)
		return NULL;
	fprintf(f, "#include <math.h>\n#include <stdint.h>\n");
#define LOOP(capital, name, most)                                                                  \
	fprintf(f, "void v_" #name "(int64_t n, const float *restrict x, double *restrict y)\n"    \
		   "{\n#pragma omp simd\n\tfor (int64_t i = 0; i < n; i++)\n"                      \
		   "\t\ty[i] = " #name "((double)x[i]);\n}\n");
	MATH_FUNCTIONS(LOOP)
#undef LOOP
	if (fclose(f) != 0)
		return NULL;
	snprintf(command, sizeof command,
		"${CC:-cc} -std=gnu11 -O3 -march=native -fopenmp -fno-math-errno -D__FAST_MATH__ "
		"-fPIC "
		"-shared "
		"-o %s/reference.so %s -lm",
		folder, path);
	if (system(command) != 0)
		return NULL;
	snprintf(path, sizeof path, "%s/reference.so", folder);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Whether y may be more than `most` units from `want`: the same as math_distance would find, but
 * for errors of rounding, in a form that vectorises. */
static bool suspect(float y, double want, double most)
{
	const float w = (float)want, least = FLT_MIN;
	uint32_t a, b, unit;
	memcpy(&a, &y, sizeof a);
	memcpy(&b, &w, sizeof b);
	memcpy(&unit, &least, sizeof unit);
	unit = (b & 0x7F800000) > unit ? b & 0x7F800000 : unit;
	float size;
	memcpy(&size, &unit, sizeof size);
	const double error = fabs((double)y - want), bound = most * 0x1p-23 * (double)size;
	return (a != b) & !(error < bound);
}

static void error_of(
	const struct function *f, math_loop *loop, reference_loop *reference, uint64_t step)
{
	static float x[PART], y[PART];
	static double want[PART];
	double worst = 0.5;
	float at = 0;
	const uint64_t end = UINT64_C(1) << (f->mirrored ? 31 : 32);
	for (uint64_t bits = 0; bits < end;) {
		int n = 0, suspects = 0;
		for (; n < PART && bits < end; n++, bits += step) {
			const uint32_t b = (uint32_t)bits;
			memcpy(&x[n], &b, sizeof b);
		}
		loop(n, x, y);
		reference(n, x, want);
		for (int i = 0; i < n; i++)
			suspects += suspect(y[i], want[i], worst);
		for (int i = 0; i < n && suspects > 0; i++) {
			if (!suspect(y[i], want[i], worst))
				continue;
			suspects--;
			double d = math_distance(y[i], f->wide((double)x[i]));
			if (!(d <= worst)) {
				worst = d;
				at = x[i];
			}
		}
	}
	printf(" %.3f | %a |", worst, (double)at);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The least of many rounds, in turns. */
static void time_of(const struct function *f, math_loop *loop)
{
	static float x[PART], y[PART];
	double ours = INFINITY, library = INFINITY;
	for (int i = 0; i < PART; i++)
		x[i] = f->low + (f->high - f->low) * (float)(i * 1237 % PART) / PART;
	for (int r = 0; r < ROUNDS; r++) {
		double t0 = now();
		loop(PART, x, y);
		double t1 = now();
		for (int i = 0; i < PART; i++)
			y[i] = f->narrow(x[i]);
		double t2 = now();
		ours = fmin(ours, t1 - t0);
		library = fmin(library, t2 - t1);
	}
	printf(" %.2f | %.2f | %.1f |\n", ours / PART, library / PART, library / ours);
}

static void time_of_pow(math_loop2 *loop)
{
	static float a[PART], b[PART], y[PART];
	double ours = INFINITY, library = INFINITY;
	for (int i = 0; i < PART; i++) {
		a[i] = 0.1f + (float)(i * 1237 % PART) / 256;
		b[i] = (float)(i * 733 % PART) / 512 - 4;
	}
	for (int r = 0; r < ROUNDS; r++) {
		double t0 = now();
		loop(PART, a, b, y);
		double t1 = now();
		for (int i = 0; i < PART; i++)
			y[i] = powf(a[i], b[i]);
		double t2 = now();
		ours = fmin(ours, t1 - t0);
		library = fmin(library, t2 - t1);
	}
	printf("pow: %.2f ns an element, the library %.2f, %.1f times\n", ours / PART,
		library / PART, library / ours);
}

static bool asked(int argc, char **argv, const char *name)
{
	for (int i = 3; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc <= 3;
}

int main(int argc, char **argv)
{
#define ROW(capital, name, most) {#name, "v_" #name, name, name##f, false, 0, 0},
	struct function functions[] = {MATH_FUNCTIONS(ROW)};
#undef ROW
	if (argc < 2)
		return 2;
	const uint64_t step = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	void *object = math_loops_open(argv[1], "-march=native");
	void *library = reference_open(argv[1]);
	if (!object || !library)
		return 1;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		struct function *f = &functions[i];
		if (!asked(argc, argv, f->name))
			continue;
		f->mirrored = !strstr("exp log log1p acos", f->name) &&
			      strcmp(f->name, "acosh") != 0;
		/* within (-1, 1) asin has values, above 1 acosh */
		f->low = !strncmp(f->name, "log", 3) ? 0.01f
			 : !strcmp(f->name, "acosh") ? 1
			 : strchr("a", f->name[0])   ? -0.99f
						     : -6;
		f->high = !strcmp(f->name, "acosh") ? 6 : f->name[0] == 'a' ? 0.99f : 6;
		math_loop *loop;
		void *p = dlsym(object, f->symbol);
		memcpy(&loop, &p, sizeof loop);
		reference_loop *reference;
		p = dlsym(library, f->symbol);
		memcpy(&reference, &p, sizeof reference);
		printf("| %s |", f->name);
		if (step)
			error_of(f, loop, reference, step);
		time_of(f, loop);
		fflush(stdout);
	}
	if (asked(argc, argv, "pow")) {
		math_loop2 *loop;
		void *p = dlsym(object, "v_pow");
		memcpy(&loop, &p, sizeof loop);
		time_of_pow(loop);
	}
	return dlclose(object) | dlclose(library);
}

/* math_table FOLDER [STEP [NAME...]]: the largest errors of the single-precision functions over
 * every STEP-th float (1: all; some minutes each) against the C library's in double precision, and
 * the time an element takes in a loop compiled for this machine, beside the C library's. STEP 0:
 * only the times. FOLDER is for the compiler's output. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/codegen/math_loops.h"

enum { PART = 4096, ROUNDS = 300 };

struct function {
	const char *name, *symbol;
	double (*wide)(double);
	float (*narrow)(float);
	bool mirrored;   /* f(-x) is f(x) or -f(x), to the bit: half of all floats will do */
	float low, high; /* arguments that are timed */
};

static void error_of(const struct function *f, math_loop *loop, uint64_t step)
{
	static float x[PART], y[PART];
	double worst = 0.5;
	float at = 0;
	const uint64_t end = UINT64_C(1) << (f->mirrored ? 31 : 32);
	for (uint64_t bits = 0; bits < end;) {
		int n = 0;
		for (; n < PART && bits < end; n++, bits += step) {
			const uint32_t b = (uint32_t)bits;
			memcpy(&x[n], &b, sizeof b);
		}
		loop(n, x, y);
		for (int i = 0; i < n; i++) {
			const double want = f->wide((double)x[i]);
			if (y[i] == (float)want && y[i] != 0)
				continue; /* the nearest, and the sum of work is large */
			double d = math_distance(y[i], want);
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
	if (!object)
		return 1;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		struct function *f = &functions[i];
		if (!asked(argc, argv, f->name))
			continue;
		f->mirrored = !strstr("exp log log1p acos acosh", f->name);
		/* within (-1, 1) asin has values, above 1 acosh */
		f->low = !strncmp(f->name, "log", 3) ? 0.01f
			 : !strcmp(f->name, "acosh") ? 1
			 : strchr("a", f->name[0])   ? -0.99f
						     : -6;
		f->high = !strcmp(f->name, "acosh") ? 6 : f->name[0] == 'a' ? 0.99f : 6;
		math_loop *loop;
		void *p = dlsym(object, f->symbol);
		memcpy(&loop, &p, sizeof loop);
		printf("| %s |", f->name);
		if (step)
			error_of(f, loop, step);
		time_of(f, loop);
		fflush(stdout);
	}
	if (asked(argc, argv, "pow")) {
		math_loop2 *loop;
		void *p = dlsym(object, "v_pow");
		memcpy(&loop, &p, sizeof loop);
		time_of_pow(loop);
	}
	return dlclose(object) != 0;
}

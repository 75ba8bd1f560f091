/* How far a narrow step scatters about the one in single precision.
 *
 *	scatter shake SEED WEIGHTS.safetensors OUT.safetensors
 *	scatter error OURS.safetensors REFERENCE.safetensors
 *	scatter judge LIMIT <PAIRS
 *
 * shake: every number times 1 + e, |e| < 2^-9: what rounding to bf16 once may do to it.
 * error: of all gradients together, the length of the difference by the length of the reference's.
 * judge: of lines "OURS THEIRS", the geometric mean of the first by that of the second, against
 * LIMIT. Exit 0 when ours is within, 1 when not, 2 when a file is unusable.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/safetensors.h"
#include "runtime/stint_rt.h"
#include "tests/models/open.h"

static _Noreturn void unusable(const char *what)
{
	fprintf(stderr, "scatter: %s\n", what);
	exit(2);
}

/* Evenly from -2^-9 to 2^-9. */
static double shaken(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return ldexp((double)(*state >> 40) - 0x1p23, -32);
}

/* The file with its bytes changed in place: names, shapes and order stay. */
static int shake(uint64_t seed, const char *path, const char *out_path)
{
	struct safetensors *f = open_or_exit(path);
	FILE *in = fopen(path, "rb"), *out = fopen(out_path, "wb");
	uint64_t header, state = seed;
	const char *first = NULL;
	if (!in || !out || fread(&header, sizeof header, 1, in) != 1 || fseek(in, 0, SEEK_END))
		unusable(path);
	const size_t bytes = (size_t)ftell(in);
	char *all = malloc(bytes);
	rewind(in);
	if (!all || fread(all, 1, bytes, in) != bytes)
		unusable(path);
	for (int i = 0; i < safetensors_count(f); i++) {
		const char *data = safetensors_at(f, i)->data;
		first = !first || data < first ? data : first;
	}
	for (int i = 0; i < safetensors_count(f); i++) {
		const struct safetensors_entry *e = safetensors_at(f, i);
		char *at = all + sizeof header + header + ((const char *)e->data - first);
		for (size_t k = 0; e->dtype == STINT_F32 && k < e->bytes / sizeof(float); k++) {
			float v;
			memcpy(&v, at + k * sizeof v, sizeof v);
			const double to = (double)v * (1 + shaken(&state));
			v = fabs(to) < 1e30 ? (float)to : v; /* a mask's lowest number */
			memcpy(at + k * sizeof v, &v, sizeof v);
		}
	}
	if (fwrite(all, 1, bytes, out) != bytes || fclose(out))
		unusable(out_path);
	fclose(in);
	free(all);
	safetensors_close(f);
	return 0;
}

static int error(const char *our_path, const char *ref_path)
{
	struct safetensors *ours = open_or_exit(our_path), *ref = open_or_exit(ref_path);
	double apart = 0, length = 0;
	for (int i = 0; i < safetensors_count(ref); i++) {
		const struct safetensors_entry *r = safetensors_at(ref, i);
		if (strncmp(r->name, "grad/", 5) != 0)
			continue;
		const struct safetensors_entry *o = safetensors_find(ours, r->name);
		if (!o || o->dtype != STINT_F32 || r->dtype != STINT_F32 || o->bytes != r->bytes)
			unusable(r->name);
		for (size_t k = 0; k < r->bytes / sizeof(float); k++) {
			float a, b;
			memcpy(&a, (const char *)o->data + k * sizeof a, sizeof a);
			memcpy(&b, (const char *)r->data + k * sizeof b, sizeof b);
			apart += ((double)a - (double)b) * ((double)a - (double)b);
			length += (double)b * (double)b;
		}
	}
	printf("%.6g\n", length > 0 ? sqrt(apart / length) : (double)INFINITY);
	safetensors_close(ours);
	safetensors_close(ref);
	return 0;
}

static int judge(double limit)
{
	double ours, theirs, sum[2] = {0};
	int n = 0;
	for (; scanf("%lf %lf", &ours, &theirs) == 2; n++) {
		sum[0] += log(ours);
		sum[1] += log(theirs);
	}
	if (n == 0)
		unusable("nothing to judge");
	const double ratio = exp((sum[0] - sum[1]) / n);
	printf("%d steps: off by %.3g, beside %.3g: %.3f times\n", n, exp(sum[0] / n),
		exp(sum[1] / n), ratio);
	return !(ratio <= limit);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "shake"))
		return shake(strtoull(argv[2], NULL, 10), argv[3], argv[4]);
	if (argc == 4 && !strcmp(argv[1], "error"))
		return error(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "judge"))
		return judge(strtod(argv[2], NULL));
	fprintf(stderr,
		"usage: scatter shake SEED WEIGHTS OUT | error OURS REFERENCE | judge LIMIT\n");
	return 2;
}

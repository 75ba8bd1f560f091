/* What a step of plain SGD has made of the parameters that are trained.
 *
 *	check_step RATE WEIGHTS.safetensors GRADIENTS.safetensors CHECKPOINT.safetensors <NAMES
 *
 * NAMES, a file of a line each, as `stint show` calls trained: each is among the weights, has a
 *gradient, and is in the checkpoint after one step the weight less RATE times the gradient, so that
 *one whose gradient is not zero has changed. Exit 0, 1 when one has not, 2 when a file is unusable.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tests/models/open.h"

/* Training shuffles the batch, so that sums run in another order: of the parameter's greatest step.
 */
#define ORDER 1e-3
/* A slope of zero, as of a bias before batch norm, is what rounding leaves of numbers like others'
 * slopes, in another order something else: of the greatest step of all. */
#define CANCELLED 1e-6
/* A step that must be seen, and rounding, of the value. */
#define ROUNDING 1e-6

static const float *values_of(
	const struct safetensors *f, const char *name, const char *where, size_t *n)
{
	const struct safetensors_entry *e = safetensors_find(f, name);
	if (!e || e->bytes % sizeof(float)) {
		fprintf(stderr, "%s: not in the %s\n", name, where);
		return NULL;
	}
	*n = e->bytes / sizeof(float);
	float *v = malloc(e->bytes + 1);
	if (!v)
		exit(2);
	memcpy(v, e->data, e->bytes);
	return v;
}

/* The greatest step of parameter `name`, or 0 with a message. */
static double greatest(const char *name, double rate, const struct safetensors *gradients)
{
	char gradient[1024];
	size_t n = 0;
	double top = 0;
	snprintf(gradient, sizeof gradient, "grad/%s", name);
	const float *v = values_of(gradients, gradient, "gradients", &n);
	for (size_t i = 0; v && i < n; i++)
		top = fmax(top, fabs(rate * (double)v[i]));
	free((void *)(size_t)v);
	return top;
}

/* Whether `name` took its step, within `cancelled` and more; *moved: some element should have. */
static bool check(const char *name, double rate, double cancelled,
	struct safetensors *const file[3], bool *moved)
{
	static const char *const where[] = {"weights", "gradients", "checkpoint"};
	char gradient[1024];
	const float *v[3];
	size_t n[3];
	snprintf(gradient, sizeof gradient, "grad/%s", name);
	for (int i = 0; i < 3; i++) {
		v[i] = values_of(file[i], i == 1 ? gradient : name, where[i], &n[i]);
		if (!v[i])
			return false;
	}
	bool good = n[0] == n[1] && n[0] == n[2];
	const double top = ORDER * greatest(name, rate, file[1]) + cancelled;
	for (size_t i = 0; good && i < n[0]; i++) {
		const double step = rate * (double)v[1][i], want = (double)v[0][i] - step;
		good = fabs((double)v[2][i] - want) <= ROUNDING * fabs((double)v[0][i]) + top;
		const bool seen = fabs(step) > ROUNDING * fabs((double)v[0][i]) + top;
		good &= !seen || v[2][i] != v[0][i];
		*moved |= seen;
	}
	if (!good)
		fprintf(stderr, "%s: is not its value less the gradient's step\n", name);
	for (int i = 0; i < 3; i++)
		free((void *)(size_t)v[i]);
	return good;
}

static bool read_name(char *name, int room)
{
	if (!fgets(name, room, stdin))
		return false;
	name[strcspn(name, "\n")] = 0;
	return true;
}

int main(int argc, char **argv)
{
	char name[1000];
	int count = 0, bad = 0, moving = 0;
	if (argc != 5) {
		fprintf(stderr, "usage: check_step RATE WEIGHTS GRADIENTS CHECKPOINT <NAMES\n");
		return 2;
	}
	struct safetensors *file[3];
	for (int i = 0; i < 3; i++)
		file[i] = open_or_exit(argv[2 + i]);
	const double rate = strtod(argv[1], NULL);
	double most = 0;
	while (read_name(name, sizeof name))
		most = fmax(most, greatest(name, rate, file[1]));
	rewind(stdin);
	while (read_name(name, sizeof name)) {
		bool moved = false;
		bad += !check(name, rate, CANCELLED * most, file, &moved);
		count++;
		moving += moved;
	}
	printf("%d trained, %d of them move\n", count, moving);
	for (int i = 0; i < 3; i++)
		safetensors_close(file[i]);
	return bad > 0 || moving == 0;
}

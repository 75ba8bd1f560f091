/* random_models FOLDER RUNTIME COUNT [SEED [LEVEL]]: COUNT random models of the seeds from SEED on
 * (without one: of a seed that changes from run to run), built below FOLDER, by the C compiler's
 * optimisation LEVEL (0: most of the time goes there). Every failure comes with its
 * seed, the model's nodes and the command that tells the same again; its model stays in FOLDER. */
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/ops/ops_test.h"
#include "tests/random/random.h"

/* Models of one call of the compiler. */
enum { BATCH = 10 };

struct campaign {
	const char *program, *folder, *runtime;
	int level, done, failed, ill, poisoned, nodes;
};

static bool compile(const struct campaign *c, const struct random_model *m, int n, bool say)
{
	struct text command = {0};
	text_add(&command, VALUES_CC " %s -O%d -I%s -shared -o all.so", STEP_CFLAGS, c->level,
		c->runtime);
	size_t before = command.len;
	for (int i = 0; i < n; i++)
		random_sources(&m[i], ".", &command);
	bool any = command.len > before;
	text_add(&command, " -lm %s", say ? "" : "2>/dev/null");
	bool ok = any && !command.failed && system(command.s) == 0;
	text_free(&command);
	return ok;
}

/* Which model's text is at fault. */
static void blame(const struct campaign *c, struct random_model *m, int n)
{
	for (int i = 0; i < n; i++)
		if (!*m[i].error && !compile(c, &m[i], 1, true))
			snprintf(m[i].error, sizeof m[i].error, "its C text does not compile");
}

static void print_nodes(const struct random_model *m)
{
	const Onnx__GraphProto *g = &m->t->graph;
	for (size_t i = 0; i < g->n_node; i++) {
		const Onnx__NodeProto *n = g->node[i];
		printf("\t");
		for (size_t k = 0; k < n->n_output; k++)
			printf("%s%s", k ? ", " : "", n->output[k]);
		printf(" = %s(", n->op_type);
		for (size_t k = 0; k < n->n_input; k++)
			printf("%s%s", k ? ", " : "", n->input[k]);
		printf(")\n");
	}
}

static void tell(const struct campaign *c, const struct random_model *m)
{
	printf("seed %" PRIu64 ": %s\n", m->seed, m->error);
	if (!m->t)
		return;
	printf("\topset %d, loss %s, model %s/%s\n", m->g.opset, m->g.loss, c->folder, m->path);
	if (m->g.poison.input)
		printf("\tone element of '%s' is %g\n", m->g.poison.input, m->g.poison.value);
	print_nodes(m);
	printf("\tagain: %s %s %s 1 %" PRIu64 " %d\n", c->program, c->folder, c->runtime, m->seed,
		c->level);
	printf("\tby hand: stint compile %s/%s --train 'p*' --loss %s --optimizer sgd:lr=0.5 "
	       "--precision fp64 --portable --budget min -o DIR\n",
		c->folder, m->path, m->g.loss);
}

static void clean(const struct random_model *m)
{
	struct text command = {0};
	text_add(&command, "rm -rf");
	for (int k = 0; k < VARIANTS; k++)
		text_add(&command, " %s_%d", m->name, k);
	if (!*m->error)
		text_add(&command, " %s %s", m->path, m->modules_path);
	if (command.failed || !*m->name || system(command.s) != 0)
		printf("%s: something is left\n", m->name);
	text_free(&command);
}

static void run_batch(struct campaign *c, uint64_t seed, int n)
{
	struct random_model *m = calloc((size_t)n, sizeof *m);
	if (!m) {
		c->failed++;
		return;
	}
	printf("seeds %" PRIu64 " to %" PRIu64 "\n", seed, seed + (uint64_t)n - 1);
	fflush(stdout);
	for (int i = 0; i < n; i++) {
		m[i].seed = seed + (uint64_t)i;
		random_build(&m[i], ".");
	}
	if (!compile(c, m, n, false)) {
		blame(c, m, n);
		compile(c, m, n, false);
	}
	/* no folder in the name would have it looked for elsewhere */
	void *object = dlopen("./all.so", RTLD_NOW | RTLD_LOCAL);
	for (int i = 0; i < n; i++) {
		if (!*m[i].error && !object)
			snprintf(m[i].error, sizeof m[i].error, "%s", dlerror());
		if (!*m[i].error)
			random_check(&m[i], object);
		c->done++;
		c->ill += m[i].ill;
		c->poisoned += m[i].g.poison.input != NULL;
		c->nodes += m[i].g.nnode;
		c->failed += *m[i].error != 0;
		if (*m[i].error)
			tell(c, &m[i]);
		clean(&m[i]);
		random_free(&m[i]);
	}
	fflush(stdout);
	if (object)
		dlclose(object);
	free(m);
}

static uint64_t fresh_seed(void)
{
	uint32_t seed = 0;
	FILE *f = fopen("/dev/urandom", "rb");
	if (!f || fread(&seed, sizeof seed, 1, f) != 1)
		seed = (uint32_t)getpid();
	if (f)
		fclose(f);
	return seed;
}

int main(int argc, char **argv)
{
	static char program[PATH_MAX], folder[PATH_MAX], runtime[PATH_MAX];
	if (argc < 4 || argc > 6 || atoi(argv[3]) < 1) {
		fprintf(stderr, "usage: random_models FOLDER RUNTIME COUNT [SEED [LEVEL]]\n");
		return 2;
	}
	mkdir(argv[1], 0777);
	if (!realpath(argv[0], program) || !realpath(argv[1], folder) ||
		!realpath(argv[2], runtime) || chdir(folder) != 0) {
		perror(argv[1]);
		return 2;
	}
	struct campaign c = {.program = program,
		.folder = folder,
		.runtime = runtime,
		.level = argc > 5 ? atoi(argv[5]) : 0};
	uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 10) : fresh_seed();
	int count = atoi(argv[3]);
	for (int i = 0; i < count; i += BATCH)
		run_batch(&c, seed + (uint64_t)i, count - i < BATCH ? count - i : BATCH);
	printf("%d models from seed %" PRIu64 " on, %d nodes: %d failed; %d too sensitive to "
	       "compare single precision, %d with NaN or infinities\n",
		c.done, seed, c.nodes, c.failed, c.ill, c.poisoned);
	/* a generator that mostly makes what cannot be compared proves nothing */
	return c.failed != 0 || c.ill > 2 + c.done / 5;
}

/* libFuzzer's entry for the importer and the passes behind it: any bytes as a model. Whatever they
 * are, everything up to the backward pass returns, with a message where it refuses, and leaves a
 * graph that verifies; the sanitizers see the rest. Half of the changes are made to the model, not
 * to its bytes (mutate.c).
 *
 *	tests/fuzz/campaign.sh [SECONDS]
 *
 * A crash is looked at with `build-fuzz/import_fuzz FILE`, and becomes a test in tests/import. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "graph/pass.h"
#include "import/import.h"
#include "ops/ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a refusal must not be. */
static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)hint;
	if (getenv("FUZZ_SAY"))
		fprintf(stderr, "%d %s (%s): %s\n", level, w && w->node ? w->node : "",
			w && w->op ? w->op : "", message);
}

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* The importer reads files: one in memory. */
static int memory_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("model", 0);
	for (size_t n = 0; fd >= 0 && n < size;) {
		ssize_t k = write(fd, data + n, size - n);
		require(k > 0);
		n += (size_t)k;
	}
	return fd;
}

static bool is_small(const struct graph *g)
{
	for (int i = 0; i < g->ntensor; i++)
		if (g->tensor[i]->numel > 1 << 16)
			return false;
	return g->nnode <= 500;
}

/* A failure has said so and is no bug of ours; a success has not. */
static bool passed(const struct diag *d, enum status st)
{
	require((st == ST_OK) == (d->errors == 0));
	require(st != ST_INTERNAL);
	return st == ST_OK;
}

/* Without an output there is none. */
static struct loss_spec some_loss(const struct graph *g)
{
	static const char *name[2]; /* ended by NULL */
	struct loss_spec spec = {.name = "loss", .weight = 1};
	for (int i = 0; i < g->noutput; i++)
		if (dtype_is_real(g->output[i]->dtype)) {
			bool own = g->output[i]->numel == 1;
			name[0] = g->output[i]->name;
			spec.output = name;
			spec.op = own ? NULL : op_by_loss(g->table, "mse");
		}
	return spec;
}

static void differentiate(const struct graph *imported, struct diag *d)
{
	struct graph *eval, *g;
	int nparam;
	struct tensor **param, **grad;
	const struct lower_options training = {.mode = LOWER_TRAIN};
	const struct lower_options evaluation = {.mode = LOWER_EVAL};
	if (!passed(d, graph_lower(imported, &evaluation, &eval)) ||
		!passed(d, graph_lower(imported, &training, &g)))
		return;
	const struct loss_spec spec = some_loss(g);
	const struct loss_list losses = {spec.output != NULL, &spec};
	if (!passed(d, graph_attach_losses(g, &losses)) || !losses.n)
		return;
	if (!passed(d, graph_autodiff(g, NULL, NULL, &nparam, &param, &grad)))
		return;
	for (int i = 0; i < nparam; i++)
		require(!grad[i] || tensor_same_shape(grad[i], param[i]));
	require(graph_verify(g) == ST_OK);
	require(graph_prune(g) == ST_OK && graph_verify(g) == ST_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct target target = {.portable = true, .threads = 1};
	const struct import_options options = {
		.batch = size % 2 ? 0 : 2, .unbound = 3, .expansion = 300};
	struct diag d = {.put = put};
	struct graph *g = NULL;
	struct arena *a = arena_new();
	int fd = memory_file(data, size);
	require(a && fd >= 0);
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (passed(&d, import_onnx(a, path, &options, ops_table(), &target, DT_F32, &d, &g)) &&
		is_small(g))
		differentiate(g, &d);
	arena_free(a);
	close(fd);
	return 0;
}

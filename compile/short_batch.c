#include "compile/short_batch.h"

#include <string.h>

enum { TIMES = 2 }; /* so many times the samples has the second import */

struct look {
	struct pipeline reading; /* into an arena of its own: a model's weights are large */
	struct diag quiet;
	struct graph *whole; /* of the second import */
	struct lower_options lower;
	struct graph_apart apart;
	int *reads;  /* how many outputs each loss reads */
	int noutput; /* all of these, in `whole`; those of each one behind those before it */
	struct tensor **output;
};

static enum status read_both(struct look *l, const struct pipeline *p)
{
	const int64_t rows = graph_rows(p->imported);
	/* in slices its nodes are others; so they may be where the file fixes a batch */
	struct graph *part = p->parts.region.slices   ? p->whole
			     : p->o->import.batch > 0 ? p->imported
						      : NULL;
	if (!part)
		TRY(pipeline_read(&l->reading, rows, &l->quiet, &part));
	TRY(pipeline_read(&l->reading, TIMES * rows, &l->quiet, &l->whole));
	l->output = ARENA_ARRAY(l->reading.arena, struct tensor *, p->losses.n * LOSS_OUTPUTS);
	l->reads = ARENA_ARRAY(l->reading.arena, int, p->losses.n);
	if (!l->output || !l->reads)
		return diag_nomem(&l->quiet);
	for (int i = 0; i < p->losses.n; i++) {
		TRY(graph_loss_outputs(
			l->whole, &p->losses.item[i], &l->reads[i], l->output + l->noutput));
		l->noutput += l->reads[i];
	}
	return graph_apart(l->whole, part, TIMES, &l->lower, &l->apart);
}

static bool rows_count(const struct look *l, const struct tensor *y)
{
	return l->apart.axis[y->id] == 0 && y->dim[0] == graph_rows(l->whole);
}

/* Rows of the target, or without one of the output, are samples; of a loss that the model makes,
 * who makes it has been looked at; of the caller's, gradients come by rows of each output. */
static bool loss_counts(
	const struct look *l, const struct loss_spec *spec, int n, struct tensor *const *y)
{
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	bool all = true;
	for (int i = 0; spec->outside && i < n; i++)
		all = all && rows_count(l, y[i]);
	if (spec->outside)
		return all;
	if (!spec->op || spec->parameter)
		return true;
	if (!spec->op->loss->target || spec->against)
		return rows_count(l, y[0]);
	return spec->op->loss->target(l->whole, y[0], spec->nattr, spec->attr, &type, &rank, dim) ==
		       ST_OK &&
	       rank > 0 && dim[0] == graph_rows(l->whole);
}

static bool losses_count(const struct look *l, const struct loss_list *losses)
{
	struct tensor *const *y = l->output;
	bool all = true;
	for (int i = 0; i < losses->n; i++) {
		all &= loss_counts(l, &losses->item[i], l->reads[i], y);
		y += l->reads[i];
	}
	return all;
}

/* What keeps these outputs from standing beside samples that do not count; NULL: nothing. */
static enum status reason(
	struct arena *a, struct look *l, int n, struct tensor *const *output, const char **why)
{
	struct graph_mixed mixed = {0};
	*why = NULL;
	if (l->apart.alike)
		TRY(graph_mixed(&l->apart, n, output, &mixed));
	if (l->apart.alike && !mixed.tensor && !mixed.node)
		return ST_OK;
	if (!l->apart.alike)
		*why = "the model's nodes depend on the size of its batch";
	else if (mixed.tensor)
		*why = arena_printf(
			a, "the first axis of '%s' does not count samples", mixed.tensor->name);
	else
		*why = arena_printf(a, "'%s' (%s) takes the samples of a batch together",
			mixed.node->name, mixed.node->op->name);
	return *why ? ST_OK : diag_nomem(&l->quiet);
}

static enum status of_training(
	struct arena *a, struct look *l, const struct loss_list *losses, const char **why)
{
	TRY(reason(a, l, l->noutput, l->output, why));
	if (!*why && !losses_count(l, losses))
		*why = "the first axis of what the loss reads does not count samples";
	return ST_OK;
}

/* Outputs of the evaluation have their names in the file. */
static enum status of_outputs(
	struct arena *a, struct look *l, const struct graph *eval, const char **why)
{
	for (int i = 0; i < l->whole->noutput; i++) {
		struct tensor *y = l->whole->output[i];
		for (int k = 0; y && k < eval->noutput; k++)
			if (!strcmp(eval->output[k]->name, y->name) && y->rank > 0 &&
				y->dim[0] == graph_rows(l->whole))
				TRY(reason(a, l, 1, &y, &why[k]));
	}
	return ST_OK;
}

static const char fixed[] =
	"its batch axis is fixed: compiled with --batch from a model that has a "
	"dynamic one, a step takes fewer";

static enum status look(const struct pipeline *p, struct look *l, struct short_batch *out)
{
	const struct graph *eval = p->eval_problem.graph;
	enum status st = read_both(l, p);
	if (st == ST_OK && p->train)
		st = of_training(p->arena, l, &p->losses, &out->training);
	else if (p->train)
		out->training = fixed;
	if (st == ST_OK)
		return of_outputs(p->arena, l, eval, out->output);
	for (int k = 0; k < eval->noutput; k++)
		out->output[k] = fixed;
	return ST_OK;
}

enum status short_batch_find(const struct pipeline *p, struct short_batch *out)
{
	struct look l = {.reading = *p};
	*out = (struct short_batch){0};
	if (graph_rows(p->imported) * p->parts.shards < 2)
		return ST_OK;
	out->output = ARENA_ARRAY(p->arena, const char *, p->eval_problem.graph->noutput + 1);
	l.reading.arena = arena_new();
	if (!l.reading.arena || !out->output)
		l.quiet.out_of_memory = true;
	else
		(void)look(p, &l, out);
	arena_free(l.reading.arena);
	return l.quiet.out_of_memory ? diag_nomem(p->diag) : ST_OK;
}

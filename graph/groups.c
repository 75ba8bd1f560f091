/* Parameter groups: options of the optimizer for parameters of a name, and their learning rate as a
 * multiple of the step's. All groups that match hold, the later one where two say the same. */
#include <math.h>
#include <string.h>

#include "base/nearest.h"
#include "graph/graph_parts.h"
#include "graph/pass.h"

static bool in_group(const struct param_group *group, const struct tensor *param)
{
	return group->pattern ? name_fits(group->pattern, param->name) : param->rank <= 1;
}

/* What was said of an option before is replaced. */
static int put_option(int n, struct attr *list, const struct attr *option)
{
	int i = 0;
	while (i < n && strcmp(list[i].name, option->name) != 0)
		i++;
	list[i] = *option;
	return i < n ? n : n + 1;
}

enum status param_options_of(struct graph *g, const struct optimizer_spec *spec,
	const struct tensor *param, struct param_options *out)
{
	int most = spec->nattr + 1;
	*out = (struct param_options){.rate = 1, .averaged = spec->ema > 0, .nattr = spec->nattr};
	for (int i = 0; i < spec->ngroup; i++)
		most += in_group(&spec->group[i], param) ? spec->group[i].nattr : 0;
	struct attr *list = ARENA_ARRAY(g->arena, struct attr, most);
	if (!list)
		return diag_nomem(g->diag);
	if (spec->nattr)
		memcpy(list, spec->attr, (size_t)spec->nattr * sizeof *list);
	for (int i = 0; i < spec->ngroup; i++) {
		const struct param_group *group = &spec->group[i];
		if (!in_group(group, param))
			continue;
		if (!isnan(group->rate))
			out->rate = group->rate;
		for (int k = 0; k < group->nattr; k++)
			out->nattr = put_option(out->nattr, list, &group->attr[k]);
	}
	if (out->averaged)
		list[out->nattr++] = ATTR_F(OP_AVERAGE, spec->ema);
	out->attr = list;
	return ST_OK;
}

enum status no_parameter_fits(
	struct graph *g, const char *option, const char *pattern, int n, const char *const *name)
{
	const char *near = nearest_names(g->arena, pattern, name, n);
	return diag_fail(g->diag, ST_USAGE, &(struct where){.file = g->file},
		!near ? NULL
		      : arena_printf(g->arena, "the nearest are %s%s", near,
				*near ? "; `stint show MODEL.onnx` lists all"
				      : "none: nothing is trained"),
		"%s '%s' matches no parameter that is trained", option, pattern);
}

static enum status no_match(struct graph *g, const char *pattern, int nparam,
	struct tensor *const *param, struct tensor *const *given)
{
	const char **name = ARENA_ARRAY(g->arena, const char *, nparam);
	int n = 0;
	if (!name)
		return diag_nomem(g->diag);
	for (int i = 0; i < nparam; i++)
		if (given[i])
			name[n++] = param[i]->name;
	return no_parameter_fits(g, "--group", pattern, n, name);
}

enum status groups_check(struct graph *g, const struct optimizer_spec *spec, int nparam,
	struct tensor *const *param, struct tensor *const *given)
{
	for (int i = 0; i < spec->ngroup; i++) {
		const struct param_group *group = &spec->group[i];
		bool any = !group->pattern;
		for (int k = 0; k < nparam && !any; k++)
			any = given[k] && in_group(group, param[k]);
		if (!any)
			return no_match(g, group->pattern, nparam, param, given);
	}
	return ST_OK;
}

/* What is at the end of the list from `first` on, to its front. */
static enum status to_front(struct graph *g, int first)
{
	const int n = g->nnode - first;
	struct node **moved = arena_memdup(g->arena, g->node + first, (size_t)n, sizeof *moved);
	if (!moved)
		return diag_nomem(g->diag);
	memmove(g->node + n, g->node, (size_t)first * sizeof *moved);
	memcpy(g->node, moved, (size_t)n * sizeof *moved);
	graph_relist(g, g->nnode, g->node);
	return ST_OK;
}

enum status param_rates(
	struct graph *g, int nparam, const struct param_options *option, struct tensor **lr)
{
	const char *mul = op_by_role(g->table, ROLE_MUL)->name;
	const int first = g->nnode;
	g->scope = "learning-rate";
	for (int i = 0; i < nparam; i++) {
		int same = 0;
		while (option[same].rate != option[i].rate)
			same++;
		lr[i] = option[i].rate == 1 ? graph_lr(g)
			: same < i          ? lr[same]
				   : OP2(g, mul, graph_lr(g), graph_scalar(g, option[i].rate));
	}
	g->scope = NULL;
	TRY(g->failed);
	return g->nnode > first ? to_front(g, first) : ST_OK;
}

#include "api/report.h"

#include "api/safe_put.h"
#include "api/terminal.h"
#include "graph/pass.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The columns that a name of `width` may take at most. */
static int room_for(FILE *f, int width)
{
	enum { USUAL = 80 };
	const int fd = fileno(f), columns = fd < 0 ? 0 : terminal_columns(fd);
	return !columns ? INT_MAX : columns > USUAL ? width + columns - USUAL : width;
}

void name_put(FILE *f, const char *name, int width, bool column)
{
	char shown[SAFE_MAX];
	int columns = 0, wide;
	const int room = room_for(f, width);
	for (const char *s = name; *s; columns += wide)
		s += safe_char(s, shown, &wide);
	if (columns > room) { /* a long one loses its beginning */
		for (; columns > room - 2; columns -= wide)
			name += safe_char(name, shown, &wide);
		columns += fprintf(f, "..");
	}
	safe_put(f, name);
	if (column && columns < width)
		fprintf(f, "%*s", width - columns, "");
}

static void row(FILE *f, const char *what, int64_t bytes, int64_t of)
{
	char b[24];
	if (bytes)
		fprintf(f, "  %-18s %12s %6.1f %%\n", what, bytes_human(bytes, b),
			of ? 100 * (double)bytes / (double)of : 0);
}

/* Memory over the steps, eight heights: with its name at most 80 columns. */
static void sparkline(FILE *f, const int64_t *live, int n, int64_t top)
{
	static const char *const bar[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	enum { MOST = 57 };
	const int width = n < MOST ? n : MOST;
	for (int c = 0; c < width; c++) {
		int64_t high = 0;
		for (int s = (int)((int64_t)c * n / width); s < (int)((int64_t)(c + 1) * n / width);
			s++)
			high = live[s] > high ? live[s] : high;
		double share = top ? (double)high / (double)top : 0;
		int k = (int)(share * 8);
		fputs(bar[k > 7 ? 7 : k], f);
	}
	fputc('\n', f);
}

static void report_cost(
	FILE *f, const struct problem *p, const struct plan *plan, const struct plan_facts *x)
{
	double once = problem_one_pass(p), total = plan->cost_total;
	fputs("cost: ", f);
	if (p->costs) /* microseconds; elsewhere the unit is not known */
		fprintf(f, "%.4g ms predicted, ", x->beside / 1e3);
	if (p->costs && x->beside < total * (1 - 1e-9))
		fprintf(f, "copies beside the rest (%.4g one after the other), ", total / 1e3);
	fprintf(f, "%.3f x one pass", once > 0 ? total / once : 1.0);
	if (plan->lower_bound < 0)
		fprintf(f, "; no bound proven\n");
	else if (total <= plan->lower_bound * (1 + 1e-9))
		fprintf(f, "; proven optimal\n");
	else if (total - plan->lower_bound < 0.00005 * total) /* what would be printed as 0.00 % */
		fprintf(f, "; optimal within rounding\n");
	else
		fprintf(f, "; at least %.3f x is proven: a gap of at most %.2f %%\n",
			once > 0 ? plan->lower_bound / once : 1.0,
			100 * (total - plan->lower_bound) / total);
	if (p->costs) {
		fputs("costs from: ", f);
		safe_put(f, p->costs);
		fputc('\n', f);
	}
}

static void report_host(FILE *f, const struct plan *plan, const struct plan_facts *x)
{
	char b[24];
	if (x->offloads == 0)
		return;
	fprintf(f, "%s%s%s, for %d tensor%s, fetched %d time%s; %.2f %% of the cost\n",
		x->disk_reads ? "the file holds in a step: " : "host memory: ",
		bytes_human(x->host_bytes, b), x->disk_reads ? "" : " pinned", x->offloads,
		x->offloads == 1 ? "" : "s", x->fetches, x->fetches == 1 ? "" : "s",
		plan->cost_total > 0 ? 100 * x->transfer_cost / plan->cost_total : 0);
}

static void report_disk(FILE *f, const struct plan *plan, const struct plan_facts *x)
{
	char b[24], c[24];
	if (x->disk_reads == 0)
		return;
	fprintf(f,
		"disk: %s read by %d fetch%s, %s written by %d store%s, each step; %.2f %% of the "
		"cost\n",
		bytes_human(x->from_disk, b), x->disk_reads, x->disk_reads == 1 ? "" : "es",
		bytes_human(x->to_disk, c), x->disk_writes, x->disk_writes == 1 ? "" : "s",
		plan->cost_total > 0 ? 100 * x->disk_cost / plan->cost_total : 0);
}

static void report_ranks(FILE *f, const struct plan *plan, const struct plan_facts *x)
{
	char b[24];
	if (x->rank_fetches == 0)
		return;
	fprintf(f,
		"other ranks: %s of parameters come in a step, by %d fetch%s; %.2f %% of the "
		"cost\n",
		bytes_human(x->from_ranks, b), x->rank_fetches, x->rank_fetches == 1 ? "" : "es",
		plan->cost_total > 0 ? 100 * x->ranks_cost / plan->cost_total : 0);
}

static void report_branches(FILE *f, const struct problem *p, const struct plan *plan)
{
	int guarded = 0;
	for (int s = 0; s < plan->nstep; s++)
		guarded += p->op[plan->step[s].op].when > 0;
	if (guarded)
		fprintf(f, "branches: data decide whether %d of %d steps run; costs are of all\n",
			guarded, plan->nstep);
}

enum status report_plan(
	FILE *f, struct arena *a, const struct problem *p, const struct plan *plan, struct diag *d)
{
	struct plan_facts x;
	TRY(plan_facts_make(a, p, plan, &x, d));
	char b[24], c[24];
	if (plan->nstep) {
		const struct problem_op *at = &p->op[plan->step[x.peak_step].op];
		fprintf(f, "memory at the peak: step %d of %d, %s ", x.peak_step + 1, plan->nstep,
			phase_name[at->phase]);
		name_put(f, at->name, 60, false);
		fputc('\n', f);
	}
	row(f, "parameters", x.at_peak[TK_PARAMETER], plan->peak_bytes);
	row(f, "state", x.at_peak[TK_STATE], plan->peak_bytes);
	row(f, "inputs", x.at_peak[TK_INPUT], plan->peak_bytes);
	row(f, "activations", x.at_peak[TK_ACTIVATION], plan->peak_bytes);
	row(f, "gradients", x.at_peak[TK_GRADIENT], plan->peak_bytes);
	row(f, "updated in place", x.at_peak[TK_OUTPUT], plan->peak_bytes);
	row(f, "workspace", x.workspace_at_peak, plan->peak_bytes);
	row(f, "peak", plan->peak_bytes, plan->peak_bytes);
	fprintf(f, "  %-18s %12s  = %" PRId64 " bytes", "arena", bytes_human(plan->arena_bytes, b),
		plan->arena_bytes);
	if (plan->budget_bytes != INT64_MAX)
		fprintf(f, ", budget %s = %" PRId64 " bytes", bytes_human(plan->budget_bytes, c),
			plan->budget_bytes);
	fprintf(f, "\nkept for backward: %d activations, %s; overwritten in place: %d, %s\n",
		x.kept, bytes_human(x.kept_bytes, b), x.overwritten,
		bytes_human(x.overwritten_bytes, c));
	fprintf(f, "recomputed: %d op%s in %d extra run%s, %.2f %% of the cost\n", x.recomputed_ops,
		x.recomputed_ops == 1 ? "" : "s", x.recomputed_runs,
		x.recomputed_runs == 1 ? "" : "s",
		plan->cost_total > 0 ? 100 * x.recomputed_cost / plan->cost_total : 0);
	report_host(f, plan, &x);
	report_disk(f, plan, &x);
	report_ranks(f, plan, &x);
	report_loops(f, p, &x);
	report_branches(f, p, plan);
	report_cost(f, p, plan, &x);
	fputs("memory over the step: ", f);
	sparkline(f, x.live, plan->nstep, plan->arena_bytes);
	return ST_OK;
}

void report_trials(FILE *f, const struct pipeline *p)
{
	static const char *const state[] = {[TRIAL_PLANNED] = "",
		[TRIAL_SLOWER] = "not planned: slower whatever its plan",
		[TRIAL_NOT_MET] = "at least: over the budget",
		[TRIAL_FAILED] = "the model does not take this batch"};
	char b[24];
	if (p->ntrial)
		fprintf(f, "micro-batches  slices       arena   predicted\n");
	for (int i = 0; i < p->ntrial; i++) {
		const struct trial *x = &p->trial[i];
		const bool has_arena = x->state == TRIAL_PLANNED || x->state == TRIAL_NOT_MET;
		const bool has_cost = x->state == TRIAL_PLANNED || x->state == TRIAL_SLOWER;
		fprintf(f, "%c %11" PRId64 " %7" PRId64 " %11s", x == p->chosen ? '>' : ' ',
			x->parts.shards, x->parts.region.slices ? x->parts.region.slices : 1,
			has_arena ? bytes_human(x->arena_bytes, b) : "");
		if (has_cost)
			fprintf(f, "  %7.4g ms", x->cost / 1e3);
		if (x->parts.until) {
			fputs("  up to '", f);
			safe_put(f, x->parts.until);
			fputc('\'', f);
		}
		fprintf(f, "%s%s\n", *state[x->state] ? "  " : "", state[x->state]);
	}
}

enum status report_schedule(
	FILE *f, struct arena *a, const struct problem *p, const struct plan *plan, struct diag *d)
{
	struct plan_facts x;
	TRY(plan_facts_make(a, p, plan, &x, d));
	int *first = ARENA_ARRAY(a, int, p->nop);
	if (!first)
		return diag_nomem(d);
	fprintf(f, "%5s  %-8s  %-40s %10s %10s\n", "step", "phase", "node",
		p->costs ? "cost us" : "cost", "live");
	for (int s = 0; s < plan->nstep; s++) {
		const struct problem_op *op = &p->op[plan->step[s].op];
		char b[24];
		fprintf(f, "%5d  %-8s  ", s + 1, phase_name[op->phase]);
		name_put(f, op->name, 40, true);
		fprintf(f, " %10.4g %10s", op->choice[plan->step[s].choice].cost,
			bytes_human(x.live[s], b));
		if (plan_step_again(p, &plan->step[s]))
			fprintf(f, "  recompute of step %d",
				first[plan_step_op(p, &plan->step[s])] + 1);
		else
			first[plan->step[s].op] = s;
		if (op->when) {
			fputs("  when ", f);
			name_put(f, p->tensor[op->when - 1].name, 40, false);
		}
		fputc('\n', f);
	}
	return ST_OK;
}

static void json_again(FILE *f, const struct problem *p, const struct plan *plan,
	const struct plan_again *x, bool first)
{
	const struct problem_op *op = &p->op[plan->step[x->step].op];
	fprintf(f, "%s{\"step\":%d,\"op\":%" PRId64 ",\"name\":", first ? "" : ",", x->step,
		op->id);
	safe_json(f, op->name);
	fprintf(f, ",\"cost\":%.17g,\"forced_at\":", x->cost);
	if (x->forced_at >= 0)
		fprintf(f, "%d,\"freed_bytes\":%" PRId64 "}", x->forced_at, x->freed_bytes);
	else
		fputs("null,\"freed_bytes\":0}", f);
}

static void json_trials(FILE *f, const struct pipeline *p)
{
	static const char *const state[] = {[TRIAL_PLANNED] = "planned",
		[TRIAL_SLOWER] = "slower",
		[TRIAL_NOT_MET] = "over the budget",
		[TRIAL_FAILED] = "failed"};
	fputs(",\"tried\":[", f);
	for (int i = 0; i < p->ntrial; i++) {
		const struct trial *x = &p->trial[i];
		fprintf(f, "%s{\"micro_batches\":%" PRId64 ",\"slices\":%" PRId64 ",\"until\":",
			i ? "," : "", x->parts.shards,
			x->parts.region.slices ? x->parts.region.slices : 1);
		if (x->parts.until)
			safe_json(f, x->parts.until);
		else
			fputs("null", f);
		fprintf(f,
			",\"state\":\"%s\",\"arena_bytes\":%" PRId64
			",\"cost\":%.17g,\"chosen\":%s}",
			state[x->state], x->arena_bytes, x->cost,
			x == p->chosen ? "true" : "false");
	}
	fputc(']', f);
}

enum status report_json(FILE *f, struct arena *a, const struct problem *p, const struct plan *plan,
	const struct pipeline *tried, struct diag *d)
{
	struct plan_facts x;
	TRY(plan_facts_make(a, p, plan, &x, d));
	fprintf(f, "{\"arena_bytes\":%" PRId64 ",\"peak_bytes\":%" PRId64 ",\"budget_bytes\":",
		plan->arena_bytes, plan->peak_bytes);
	if (plan->budget_bytes == INT64_MAX)
		fputs("null", f);
	else
		fprintf(f, "%" PRId64, plan->budget_bytes);
	fprintf(f, ",\"peak_step\":%d,\"steps\":%d,\"at_peak\":{", x.peak_step, plan->nstep);
	for (int k = 0; k < 6; k++)
		fprintf(f, "\"%s\":%" PRId64 ",", tensor_kind_name[k], x.at_peak[k]);
	fprintf(f,
		"\"workspace\":%" PRId64 "},\"kept\":%d,\"kept_bytes\":%" PRId64
		",\"recomputed_ops\":%d,\"recomputed_runs\":%d,\"overwritten\":%d,"
		"\"cost\":{\"once\":%.17g,\"total\":%.17g",
		x.workspace_at_peak, x.kept, x.kept_bytes, x.recomputed_ops, x.recomputed_runs,
		x.overwritten, plan->cost_once, plan->cost_total);
	if (x.beside < plan->cost_total * (1 - 1e-9))
		fprintf(f, ",\"beside\":%.17g", x.beside);
	if (plan->lower_bound < 0)
		fputs(",\"lower_bound\":null}", f);
	else
		fprintf(f, ",\"lower_bound\":%.17g}", plan->lower_bound);
	if (x.offloads > 0)
		fprintf(f, ",\"host_bytes\":%" PRId64 ",\"offloads\":%d,\"fetches\":%d",
			x.host_bytes, x.offloads, x.fetches);
	if (x.disk_reads > 0)
		fprintf(f,
			",\"from_disk_bytes\":%" PRId64
			",\"disk_reads\":%d,\"to_disk_bytes\":%" PRId64 ",\"disk_writes\":%d",
			x.from_disk, x.disk_reads, x.to_disk, x.disk_writes);
	if (x.rank_fetches > 0)
		fprintf(f, ",\"from_ranks_bytes\":%" PRId64 ",\"rank_fetches\":%d", x.from_ranks,
			x.rank_fetches);
	if (tried && tried->kernels > 0)
		fprintf(f, ",\"kernels\":{\"all\":%d,\"kept\":%d}", tried->kernels,
			tried->kernels_kept);
	fputs(",\"recomputed\":[", f);
	for (int i = 0; i < x.recomputed_runs; i++)
		json_again(f, p, plan, &x.again[i], i == 0);
	fputc(']', f);
	TRY(report_kinds_json(f, a, p, plan, d));
	TRY(report_loops_json(f, p, &x, d));
	if (tried && tried->ntrial)
		json_trials(f, tried);
	if (tried)
		report_lengths_json(f, tried);
	fputs("}\n", f);
	return ST_OK;
}

void report_budgets(FILE *f, int64_t known, int64_t proven, int64_t keep_all)
{
	char a[24], b[24], c[24];
	fprintf(f,
		"smallest budget met: %" PRId64 " bytes (%s); proven lower bound: %" PRId64
		" bytes (%s); all kept: %" PRId64 " bytes (%s)\n",
		known, bytes_human(known, a), proven, bytes_human(proven, b), keep_all,
		bytes_human(keep_all, c));
}

void report_needs(FILE *f, int64_t arena_bytes, enum report_place place)
{
	char b[24], c[24];
	if (place == REPORT_PORTABLE) {
		fprintf(f,
			"needs %s (%" PRId64 " bytes) + its code and stack: it calls no library\n",
			bytes_human(arena_bytes, b), arena_bytes);
		return;
	}
	if (place == REPORT_GPU) {
		fprintf(f,
			"needs %s (%" PRId64 " bytes) of the GPU's memory + about %s outside "
			"(context, kernels, libraries: as on an H200)\n",
			bytes_human(arena_bytes, b), arena_bytes,
			bytes_human(REPORT_OUTSIDE_GPU_BYTES, c));
		return;
	}
	fprintf(f, "needs %s (%" PRId64 " bytes) + about %s outside (code, libraries, stack)\n",
		bytes_human(arena_bytes, b), arena_bytes, bytes_human(REPORT_OUTSIDE_BYTES, c));
}

enum report_place report_place_of(const struct pipeline *p)
{
	return p->target.cuda ? REPORT_GPU : p->target.portable ? REPORT_PORTABLE : REPORT_LIBRARY;
}

enum status report_compiled(FILE *f, struct pipeline *p)
{
	TRY(report_plan(
		f, p->arena, pipeline_problem_shown(p)->problem, pipeline_plan_shown(p), p->diag));
	report_trials(f, p);
	report_lengths(f, p);
	TRY(report_frozen(f, p));
	report_needs(f, p->plans.arena_bytes, report_place_of(p));
	if (p->kernels_kept > 0)
		fprintf(f, "compiled: %d of %d kernels; the others were in the cache\n",
			p->kernels - p->kernels_kept, p->kernels);
	return ST_OK;
}

static void report_tensors(FILE *f, const char *title, int n, struct tensor *const *t)
{
	static const char *const type[] = {"float32", "float64", "int64", "bool"};
	fprintf(f, "%s\n", title);
	for (int i = 0; i < n; i++) {
		fputs("  ", f);
		name_put(f, t[i]->name, 48, true);
		fprintf(f, " %-8s [", type[t[i]->dtype]);
		for (int k = 0; k < t[i]->rank; k++) {
			const char *axis = t[i]->axis ? t[i]->axis[k] : NULL;
			fputs(k ? ", " : "", f);
			if (axis)
				safe_put(f, axis);
			else
				fprintf(f, "%" PRId64, t[i]->dim[k]);
		}
		fputs("]\n", f);
	}
}

/* What an initializer is for, NULL: not one of the model's; and why. `passes`: by tensor id,
 * whether a gradient can come back to it. */
static const char *role_shown(
	const struct graph *g, const struct tensor *t, const bool *passes, const char **why)
{
	*why = t->role != TR_BUFFER && t->why ? t->why : "";
	if (t->maker || !t->data)
		return NULL;
	/* what is behind nodes that were left out nobody knows */
	if (t->role == TR_PARAMETER && (passes[t->id] || g->partial))
		return "trained";
	if (t->role == TR_PARAMETER)
		*why = "no gradient passes from an output to it";
	return t->role == TR_BUFFER                       ? "running statistics"
	       : t->from_model || t->role == TR_PARAMETER ? "constant"
							  : NULL;
}

enum status report_model(FILE *f, const struct graph *g)
{
	const bool *passes = graph_ways_back(g);
	if (!passes)
		return diag_nomem(g->diag);
	report_tensors(f, "inputs", g->ninput, g->input);
	report_tensors(f, "outputs", g->noutput, g->output);
	int64_t trained = 0, frozen = 0;
	fprintf(f, "initializers\n");
	for (int i = 0; i < g->ntensor; i++) {
		const struct tensor *t = g->tensor[i];
		char shape[200], b[24];
		const char *why, *role = role_shown(g, t, passes, &why);
		if (!role)
			continue;
		*(t->role == TR_PARAMETER && (passes[i] || g->partial) ? &trained
								       : &frozen) += t->numel;
		fputs("  ", f);
		name_put(f, t->name, 48, true);
		fprintf(f, " %-18s %-20s %10s  %s\n", role, tensor_shape_text(t, shape),
			bytes_human(t->stored ? stored_bytes(t->stored) : tensor_bytes(t), b), why);
	}
	fprintf(f, "%d nodes; %" PRId64 " trained values, %" PRId64 " not trained\n", g->nnode,
		trained, frozen);
	return ST_OK;
}

static void json_tensor(
	FILE *f, const struct tensor *t, const char *role, const char *why, bool first)
{
	static const char *const type[] = {"float32", "float64", "int64", "bool"};
	fputs(first ? "{\"name\":" : ",{\"name\":", f);
	safe_json(f, t->name);
	fprintf(f, ",\"type\":\"%s\",\"shape\":[", type[t->dtype]);
	for (int i = 0; i < t->rank; i++) {
		fputs(i ? "," : "", f);
		if (t->axis && t->axis[i])
			safe_json(f, t->axis[i]);
		else
			fprintf(f, "%" PRId64, t->dim[i]);
	}
	fputs("]", f);
	if (role)
		fprintf(f, ",\"role\":\"%s\",\"why\":\"%s\",\"bytes\":%" PRId64, role, why,
			tensor_bytes(t));
	fputs("}", f);
}

enum status report_model_json(FILE *f, const struct graph *g)
{
	bool first = true;
	const bool *passes = graph_ways_back(g);
	if (!passes)
		return diag_nomem(g->diag);
	fputs("{\"inputs\":[", f);
	for (int i = 0; i < g->ninput; i++)
		json_tensor(f, g->input[i], NULL, NULL, i == 0);
	fputs("],\"outputs\":[", f);
	for (int i = 0; i < g->noutput; i++)
		json_tensor(f, g->output[i], NULL, NULL, i == 0);
	fputs("],\"initializers\":[", f);
	for (int i = 0; i < g->ntensor; i++) {
		const char *why, *role = role_shown(g, g->tensor[i], passes, &why);
		if (!role)
			continue;
		json_tensor(f, g->tensor[i], role, why, first);
		first = false;
	}
	fprintf(f, "],\"nodes\":%d}\n", g->nnode);
	return ST_OK;
}

/* Plans and what can be read of them, for stint.h. */
#include <stdlib.h>
#include <string.h>

#include "api/frontier_points.h"
#include "api/output.h"
#include "api/plan_page.h"
#include "api/report.h"
#include "api/shown.h"
#include "api/stint_options.h"
#include "compile/other_lengths.h"

enum { TEXTS = STINT_TEXT_FRONTIER_SVG + 1 };

struct stint_result {
	struct told told;
	struct onlooker onlooker; /* of the call that runs */
	struct options options;
	struct stint_options *from; /* whose values these are */
	struct pipeline pipeline;   /* walked, but for a frontier or a plan that was read */
	bool walked;
	struct shown shown;       /* the plan is NULL: there is none */
	struct frontier frontier; /* no points: none was made */
	struct stint_facts facts;
	const int64_t *live; /* [facts.steps] */
	struct text text[TEXTS];
};

const char *stint_version(void)
{
	return STINT_VERSION;
}

void stint_result_free(struct stint_result *r)
{
	if (!r)
		return;
	for (int i = 0; i < TEXTS; i++)
		text_free(&r->text[i]);
	arena_free(r->pipeline.arena);
	stint_options_free(r->from);
	told_end(&r->told);
	free(r);
}

const struct stint_diagnostic *stint_result_diagnostic(const struct stint_result *r, size_t index)
{
	return told_at(&r->told, index);
}

/* NULL: no memory. */
static struct stint_result *result_new(struct stint_result **out)
{
	struct stint_result *r = *out = calloc(1, sizeof *r);
	if (!r || !told_begin(&r->told) || !(r->pipeline.arena = arena_new())) {
		stint_result_free(r);
		return *out = NULL;
	}
	r->pipeline.diag = &r->told.diag;
	r->pipeline.o = &r->options.compile;
	return r;
}

/* With its own copy of the options. */
static enum status begin(struct stint_result **out, const struct stint_options *o,
	const struct stint_onlooker *onlooker)
{
	struct stint_result *r = result_new(out);
	if (!r)
		return ST_INTERNAL;
	r->from = options_share(o);
	r->options = o->options;
	r->onlooker = told_onlooker(onlooker);
	r->options.compile.onlooker = &r->onlooker;
	onlooker_now(&r->onlooker, "planning");
	return options_check(&r->options, &r->told.diag);
}

/* --- Facts --- */

static enum status note_facts(struct stint_result *r)
{
	const struct problem *p = r->shown.problem;
	const struct plan *plan = r->shown.plan;
	struct stint_facts *f = &r->facts;
	struct plan_facts x = {0};
	*f = (struct stint_facts){.feasible = plan->feasible,
		.budget_bytes = plan->budget_bytes == INT64_MAX ? -1 : plan->budget_bytes,
		.min_bytes_known = plan->feasible ? -1 : plan->min_bytes_known,
		.min_bytes_proven = plan->feasible ? -1 : plan->min_bytes_proven,
		.lower_bound = -1};
	if (!plan->feasible)
		return ST_OK;
	TRY(plan_facts_make(r->pipeline.arena, p, plan, &x, &r->told.diag));
	f->arena_bytes = r->walked ? r->pipeline.plans.arena_bytes : plan->arena_bytes;
	f->peak_bytes = plan->peak_bytes;
	f->cost_once = plan->cost_once;
	f->cost_total = plan->cost_total;
	f->lower_bound = plan->lower_bound;
	f->cost_is_time = p->costs != NULL;
	f->steps = plan->nstep;
	f->peak_step = x.peak_step;
	r->live = x.live;
	f->recomputed_ops = x.recomputed_ops;
	f->recomputed_runs = x.recomputed_runs;
	f->micro_batches = r->walked ? (int)r->pipeline.parts.shards : 0;
	return ST_OK;
}

const struct stint_facts *stint_result_facts(const struct stint_result *r)
{
	return r->shown.plan ? &r->facts : NULL;
}

int stint_result_step(const struct stint_result *r, size_t index, struct stint_plan_step *out)
{
	if (!r->shown.plan || index >= (size_t)r->facts.steps)
		return 0;
	const struct problem *p = r->shown.problem;
	const struct plan_step *s = &r->shown.plan->step[index];
	const struct problem_op *op = &p->op[s->op];
	*out = (struct stint_plan_step){.node = op->name,
		.phase = (int)op->phase,
		.again = plan_step_again(p, s),
		.cost = op->choice[s->choice].cost,
		.live_bytes = r->live[index]};
	return 1;
}

/* After a walk that ended with `st`. */
static enum status keep_plan(struct stint_result *r, enum status st)
{
	struct plan *plan = pipeline_plan_shown(&r->pipeline);
	r->onlooker = (struct onlooker){0};
	if (!plan || (st != ST_OK && st != ST_BUDGET))
		return st;
	r->shown = (struct shown){
		pipeline_problem_shown(&r->pipeline)->problem, plan, report_place_of(&r->pipeline)};
	r->walked = true;
	TRY(note_facts(r));
	return st;
}

/* --- What makes a result --- */

static enum status plan(struct stint_result **out, const struct stint_options *o,
	const struct stint_onlooker *onlooker)
{
	enum status st = begin(out, o, onlooker);
	if (st == ST_OK)
		st = pipeline_run(&(*out)->pipeline);
	if (st == ST_OK)
		st = lengths_each(&(*out)->pipeline, NULL);
	return *out ? keep_plan(*out, st) : st;
}

int stint_plan(struct stint_result **out, const struct stint_options *o,
	const struct stint_onlooker *onlooker)
{
	return (int)plan(out, o, onlooker);
}

static enum status compile(struct stint_result **out, const struct stint_options *o,
	const char *dir, const struct stint_onlooker *onlooker)
{
	enum status st = begin(out, o, onlooker);
	struct stint_result *r = *out;
	if (st == ST_OK && !(r->options.out = arena_strdup(r->pipeline.arena, dir)))
		st = diag_nomem(&r->told.diag);
	if (st == ST_OK)
		st = compile_folder(&r->pipeline, &r->options, NULL);
	return r ? keep_plan(r, st) : st;
}

int stint_compile(struct stint_result **out, const struct stint_options *o, const char *dir,
	const struct stint_onlooker *onlooker)
{
	return (int)compile(out, o, dir, onlooker);
}

static enum status make_frontier(struct stint_result *r)
{
	struct pipeline *p = &r->pipeline;
	TRY(frontier_options_check(&r->options, p->diag));
	TRY(pipeline_problem(p, &r->shown.problem));
	const struct plan_options options = pipeline_options(p->o);
	struct loop_ways ways;
	TRY(loop_ways_make(p, r->shown.problem, &ways));
	return frontier_make(p->arena, &ways, &options, r->options.points, &r->frontier, p->diag);
}

static enum status frontier(struct stint_result **out, const struct stint_options *o,
	const struct stint_onlooker *onlooker)
{
	enum status st = begin(out, o, onlooker);
	if (st == ST_OK)
		st = make_frontier(*out);
	if (*out)
		(*out)->onlooker = (struct onlooker){0};
	return st;
}

int stint_frontier(struct stint_result **out, const struct stint_options *o,
	const struct stint_onlooker *onlooker)
{
	return (int)frontier(out, o, onlooker);
}

static enum status read_plan(struct stint_result **out, const char *dir)
{
	struct stint_result *r = result_new(out);
	if (!r)
		return ST_INTERNAL;
	struct arena *a = r->pipeline.arena;
	const char *graph = arena_printf(a, "%s/graph.json", dir),
		   *plan = arena_printf(a, "%s/plan.json", dir);
	if (!graph || !plan)
		return diag_nomem(&r->told.diag);
	const enum status st = shown_read(a, graph, plan, &r->shown, &r->told.diag);
	if (st == ST_OK)
		return note_facts(r);
	r->shown.plan = NULL;
	return st;
}

int stint_read_plan(struct stint_result **out, const char *dir)
{
	return (int)read_plan(out, dir);
}

/* --- Texts --- */

static enum status print_report(struct stint_result *r, FILE *f)
{
	if (r->walked)
		return report_compiled(f, &r->pipeline);
	TRY(report_plan(f, r->pipeline.arena, r->shown.problem, r->shown.plan, &r->told.diag));
	report_needs(f, r->shown.plan->arena_bytes, r->shown.place);
	return ST_OK;
}

static enum status print(struct stint_result *r, enum stint_text kind, FILE *f)
{
	struct arena *a = r->pipeline.arena;
	const struct shown *s = &r->shown;
	struct diag *d = &r->told.diag;
	return kind == STINT_TEXT_FACTS
		       ? report_json(f, a, s->problem, s->plan, r->walked ? &r->pipeline : NULL, d)
	       : kind == STINT_TEXT_SCHEDULE ? report_schedule(f, a, s->problem, s->plan, d)
					     : print_report(r, f);
}

/* What is written for a stream, as a text. */
static enum status print_text(struct stint_result *r, enum stint_text kind, struct text *t)
{
	char *s = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&s, &len);
	if (!f)
		return diag_nomem(&r->told.diag);
	enum status st = print(r, kind, f);
	if (fclose(f) != 0 && st == ST_OK)
		st = diag_nomem(&r->told.diag);
	if (st == ST_OK)
		text_write(t, s, len);
	free(s);
	return st;
}

static enum status make_text(struct stint_result *r, enum stint_text kind, struct text *t)
{
	struct arena *a = r->pipeline.arena;
	const struct shown *s = &r->shown;
	struct diag *d = &r->told.diag;
	switch (kind) {
	case STINT_TEXT_PLAN:
		plan_print(s->problem, s->plan, t);
		return ST_OK;
	case STINT_TEXT_GRAPH:
		problem_print(s->problem, t);
		return ST_OK;
	case STINT_TEXT_HTML:
		return plan_page(t, a, s->problem, s->plan, &r->onlooker, d);
	case STINT_TEXT_TRACE:
		return view_trace(t, a, s->problem, s->plan, d);
	case STINT_TEXT_FRONTIER:
		frontier_json(&r->frontier, t);
		return ST_OK;
	case STINT_TEXT_FRONTIER_SVG:
		return view_frontier_svg(t, &r->frontier.view, d);
	default:
		return print_text(r, kind, t);
	}
}

/* A plan that is not feasible can be written, but not shown. */
static bool has_text(const struct stint_result *r, enum stint_text kind)
{
	switch (kind) {
	case STINT_TEXT_GRAPH:
		return r->shown.problem != NULL;
	case STINT_TEXT_PLAN:
		return r->shown.plan != NULL;
	case STINT_TEXT_FRONTIER:
	case STINT_TEXT_FRONTIER_SVG:
		return r->frontier.view.npoint > 0;
	default:
		return (unsigned)kind < TEXTS && r->shown.plan && r->shown.plan->feasible;
	}
}

static enum status text_of(struct stint_result *r, enum stint_text kind,
	const struct stint_onlooker *onlooker, const char **text, size_t *len)
{
	struct diag *d = &r->told.diag;
	*text = NULL;
	if (!has_text(r, kind))
		return diag_fail(d, ST_USAGE, NULL, NULL, "there is no such text of this result");
	struct text *t = &r->text[kind];
	if (!t->s) {
		r->onlooker = told_onlooker(onlooker);
		enum status st = make_text(r, kind, t);
		r->onlooker = (struct onlooker){0};
		if (st == ST_OK && t->failed)
			st = diag_nomem(d);
		if (st != ST_OK) {
			text_free(t);
			*t = (struct text){0};
			return st;
		}
	}
	*text = t->s;
	if (len)
		*len = t->len;
	return ST_OK;
}

int stint_result_text(struct stint_result *r, enum stint_text kind,
	const struct stint_onlooker *onlooker, const char **text, size_t *len)
{
	return (int)text_of(r, kind, onlooker, text, len);
}

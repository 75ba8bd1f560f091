#include "compile/pipeline.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "bridge/loop_plans.h"
#include "compile/adapters.h"
#include "compile/batch_auto.h"
#include "compile/batch_parts.h"
#include "compile/batch_split.h"
#include "compile/custom_ops.h"
#include "compile/guess.h"
#include "compile/loop_slots.h"
#include "compile/not_met.h"
#include "compile/other_lengths.h"
#include "compile/short_batch.h"
#include "compile/target.h"
#include "planner/problem/roofline.h"
#include "planner/problem/transfer.h"
#include "runtime/safetensors.h"
#include "runtime/stint_lib.h"

/* "my-model.onnx" → "my_model" */
static char *identifier(struct arena *a, const char *path)
{
	const char *base = strrchr(path, '/');
	base = base ? base + 1 : path;
	const char *dot = strrchr(base, '.');
	size_t n = dot && dot != base ? (size_t)(dot - base) : strlen(base);
	char *s = arena_strndup(a, base, n > 48 ? 48 : n);
	for (char *c = s; c && *c; c++)
		if (!isalnum((unsigned char)*c) || (unsigned char)*c > 127)
			*c = '_';
	return s && *s ? s : arena_strdup(a, "model");
}

/* How many turns a loop has that stays one; 0: none does, because of what is asked for besides. */
static int64_t loop_turns(const struct compile_options *o)
{
	const bool other = o->target != TARGET_C || o->bare || o->precision == PRECISION_BF16 ||
			   o->precision == PRECISION_FP16 || o->frozen_precision != FROZEN_FP32 ||
			   o->lora || o->adapter || o->micro_batch || o->split || o->ranks ||
			   o->lengths.n || o->disk.folder || o->import.qat || o->import.unbound;
	return other ? 0 : (o->unroll ? o->unroll : UNROLL_MOST) + 1;
}

/* Which outputs losses read, by name, ended by NULL; *all: one of them names none, and reads what
 * there is. NULL: nothing is named. */
static enum status outputs_read(const struct pipeline *p, const char *const **list, bool *all)
{
	const char **name = ARENA_ARRAY(
		p->arena, const char *, p->losses.n *(LOSS_OUTPUTS + 1) + 1);
	int n = 0;
	if (!name)
		return diag_nomem(p->diag);
	*all = p->losses.n == 0;
	for (int i = 0; i < p->losses.n; i++) {
		const char *const *output = p->losses.item[i].output,
				  *against = p->losses.item[i].against;
		*all |= !output && !p->losses.item[i].parameter;
		for (int k = 0; output && output[k]; k++)
			if (!name_listed(name, output[k]))
				name[n++] = output[k];
		if (against && !name_listed(name, against))
			name[n++] = against;
	}
	*all |= !n;
	*list = n ? name : NULL;
	return ST_OK;
}

/* Where --dim INPUT:0=N says the batch, it says another one so, too: `rows`. Other first axes stay.
 */
static enum status bind_rows(struct pipeline *p, int64_t rows, struct import_options *o)
{
	struct import_dim *dim = arena_memdup(p->arena, o->dim, (size_t)o->ndim, sizeof *dim);
	const int64_t batch = p->imported ? graph_rows(p->imported) : 0;
	bool bound = false;
	if (!dim && o->ndim)
		return diag_nomem(p->diag);
	for (int i = 0; i < o->ndim; i++) {
		const char *axis = strrchr(dim[i].name, ':');
		if (!axis || strcmp(axis, ":0") != 0 || dim[i].size != batch)
			continue;
		dim[i].size = rows;
		bound = true;
	}
	o->dim = dim;
	o->batch = bound ? 0 : rows;
	return ST_OK;
}

enum status pipeline_read(struct pipeline *p, int64_t rows, struct diag *d, struct graph **out)
{
	struct import_options import = p->o->import;
	import.loop_turns = loop_turns(p->o);
	import.batch = rows;
	if (rows && !p->o->import.batch)
		TRY(bind_rows(p, rows, &import));
	import.guess = p->o->guess;
	import.whole = p->o->micro_batch ? p->o->import.batch : 0;
	struct adapter_folder from;
	TRY(adapters_begin(p, d, &from));
	import.adapted = p->o->lora || p->o->adapter;
	import.train_name = from.train;
	bool all = true;
	TRY(outputs_read(p, &import.output, &all));
	import.qat |= p->forward; /* where nothing trains, what rounds needs no gradient */
	if (!import.unbound)
		import.read = p->forward ? IMPORT_READ_ANY
			      : all      ? IMPORT_READ_ALL
					 : IMPORT_READ_OUTPUTS;
	p->import = import;
	enum status st = import_onnx(p->arena, p->o->model, &import, p->table, &p->target,
		p->o->precision == PRECISION_FP64 ? DT_F64 : DT_F32, d, out);
	if (st == ST_OK)
		st = adapters_add(p, d, &from, out);
	safetensors_close(from.tensors);
	return st;
}

static enum status begin(struct pipeline *p)
{
	const struct compile_options *o = p->o;
	if (!o->model)
		return diag_fail(p->diag, ST_USAGE, NULL, "`--help` shows how", "no model given");
	target_set(&p->target, o, p->arena, &p->asked);
	p->name = identifier(p->arena, o->model);
	if (p->name && p->longest)
		p->name = arena_printf(p->arena, "%s_%" PRId64, p->name, p->length_here);
	if (!p->name)
		return diag_nomem(p->diag);
	TRY(custom_ops_load(p->arena, o->ops, &p->table, p->diag));
	TRY(losses_parse(p->arena, p->table, o->loss, &p->losses, p->diag));
	p->forward = o->loss && !p->losses.n;
	return batch_auto_choose(p);
}

enum status pipeline_import(struct pipeline *p)
{
	TRY(begin(p));
	TRY(parts_set(p));
	p->imported = p->whole;
	if (!p->imported)
		TRY(pipeline_read(p, p->o->import.batch / p->parts.shards, p->diag, &p->imported));
	if (p->parts.region.slices)
		TRY(split_graph(p, &p->imported));
	if (p->dump)
		p->dump(p->user, STAGE_IMPORT, p->imported);
	return ST_OK;
}

enum status pipeline_each(struct pipeline *p, const struct trial_visitor *v)
{
	TRY(begin(p));
	return parts_each(p, v);
}

struct lower_options pipeline_lowering(const struct compile_options *o)
{
	return (struct lower_options){.mode = LOWER_TRAIN,
		.dropout_off = o->dropout_off != 0,
		.bn_frozen = o->bn == BN_FROZEN,
		.bn_sync = o->bn == BN_SYNC,
		.bn_population = o->bn_variance == VARIANCE_POPULATION,
		.nratio = o->nratio,
		.ratio = o->ratio};
}

static enum store store_of(enum frozen_precision p)
{
	static const enum store store[] = {[FROZEN_FP32] = STORE_AS_IS,
		[FROZEN_BF16] = STORE_BF16,
		[FROZEN_FP16] = STORE_F16,
		[FROZEN_INT8] = STORE_INT8,
		[FROZEN_NF4] = STORE_NF4,
		[FROZEN_NF4_DOUBLE] = STORE_NF4_DOUBLE};
	return store[p];
}

/* What may help where the loss depends on no parameter, by what was asked for and what the model
 * has. */
static const char *untrained_hint(const struct pipeline *p)
{
	static const char freeze
		[] = "--freeze leaves nothing that is trained: match less",
	  stop[] = "--stop-gradient lets no gradient reach a parameter: match less",
	  adapt[] = "--lora r=8 trains adapters beside the weights",
	  train[] = "--train PATTERN trains what `stint show MODEL.onnx` lists as a constant; "
		    "--lora r=8 adapters beside the weights",
	  output[] = "`stint show MODEL.onnx` lists the outputs: --loss LOSS:output=NAME reads "
		     "another";
	const struct import_options *o = &p->o->import;
	bool weights = false, parameters = false;
	for (int i = 0; i < p->imported->ntensor; i++) {
		const struct tensor *t = p->imported->tensor[i];
		weights |= t->role == TR_CONSTANT && t->rank >= 2 && dtype_is_real(t->dtype);
		parameters |= t->role == TR_PARAMETER;
	}
	return parameters && o->stop_pattern ? stop
	       : parameters                  ? p->imported->noutput > 1 ? output : NULL
	       : o->freeze_pattern           ? freeze
	       : !weights                    ? NULL
	       : o->qat                      ? adapt
					     : train;
}

static struct graph_options graph_options_of(const struct pipeline *p)
{
	const struct compile_options *o = p->o;
	return (struct graph_options){.lower = pipeline_lowering(o),
		.losses = &p->losses,
		.untrained = untrained_hint(p),
		.optimizer = &p->optimizer,
		.shards = p->parts.shards > 1 ? p->parts.shards : 0,
		.rows = o->import.batch / p->parts.shards,
		.ranks = o->ranks,
		.pieces = o->share == SHARE_STATE,
		.share_least = o->share_least,
		.input_gradient = o->input_gradient,
		.no_outputs = o->no_outputs != 0,
		.scale_loss = o->precision == PRECISION_FP16,
		.fuse = o->fuse == FUSE_ON,
		.everywhere = o->everywhere,
		.frozen = store_of(o->frozen_precision),
		.narrow = o->precision == PRECISION_FP16   ? DT_F16
			  : o->precision == PRECISION_BF16 ? DT_BF16
							   : DT_F32,
		.dump = p->dump,
		.user = p->user};
}

/* Some state can be stored narrower. */
static enum status check_state(const struct pipeline *p)
{
	const struct op_def *op = p->optimizer.op;
	bool any = false;
	for (const struct op_state *s = op->optimizer->state; s->name; s++)
		any |= op_state_narrows(s);
	return any || p->optimizer.state == DT_F32
		       ? ST_OK
		       : diag_fail(p->diag, ST_USAGE, NULL, "leave it out",
				 "--state-precision bf16: %s keeps its states as they are",
				 op->optimizer->name);
}

static bool keeps_gradients(const struct pipeline *p)
{
	const struct op_def *op = p->optimizer.op;
	return op && op->role == ROLE_KEEP_GRADIENT;
}

/* What is said of updates has no sense where there are none. */
static enum status check_kept(const struct pipeline *p)
{
	const struct compile_options *o = p->o;
	const char *other = o->ema > 0                         ? "ema"
			    : o->group                         ? "group"
			    : o->no_decay_1d                   ? "no-decay-1d"
			    : o->state_precision == STATE_BF16 ? "state-precision"
							       : NULL;
	return !keeps_gradients(p) || !other
		       ? ST_OK
		       : diag_fail(p->diag, ST_USAGE, NULL, "leave one of them away",
				 "--optimizer none updates nothing: there is nothing for --%s",
				 other);
}

enum status pipeline_optimizer(struct pipeline *p)
{
	const struct compile_options *o = p->o;
	struct optimizer_spec *s = &p->optimizer;
	const int n = list_length(o->group);
	const char *optimizer = guess_optimizer(p);
	if (!optimizer)
		return diag_fail(p->diag, ST_USAGE, NULL, "for example --optimizer sgd:lr=0.1",
			"no --optimizer given");
	TRY(optimizer_parse(p->arena, p->table, optimizer, s, p->diag));
	s->clip_value = o->clip_value;
	s->clip_norm = o->clip_norm;
	s->ema = o->ema;
	s->state = o->state_precision == STATE_BF16 ? DT_BF16 : DT_F32;
	TRY(check_kept(p));
	TRY(check_state(p));
	struct param_group *group = ARENA_ARRAY(p->arena, struct param_group, n + 1);
	if (!group)
		return diag_nomem(p->diag);
	s->group = group;
	if (o->no_decay_1d)
		TRY(group_no_decay(p->arena, s, &group[s->ngroup++], p->diag));
	for (int i = 0; i < n; i++)
		TRY(group_parse(p->arena, s, o->group[i], &group[s->ngroup++], p->diag));
	return ST_OK;
}

/* A step whose caller does a part of it does its own in this process's memory. */
static enum status check_caller(const struct pipeline *p)
{
	const struct compile_options *o = p->o;
	const char *mine = p->losses.n && p->losses.item[0].outside ? "loss outside"
			   : o->input_gradient                      ? "input-gradient"
			   : keeps_gradients(p)                     ? "optimizer none"
								    : NULL;
	const char *other = o->target == TARGET_CUDA ? "target cuda"
			    : o->bare                ? "bare"
			    : o->disk.folder         ? "offload disk"
			    : o->ranks               ? "ranks"
			    : o->lengths.n           ? "dim of several lengths"
						     : NULL;
	return !mine || !other ? ST_OK
			       : diag_fail(p->diag, ST_USAGE, NULL, "leave one of them away",
					 "--%s does not go with --%s yet", mine, other);
}

enum status pipeline_graphs(struct pipeline *p)
{
	const struct compile_options *o = p->o;
	TRY(guess_loss(p));
	if (p->forward && o->no_outputs)
		return diag_fail(p->diag, ST_USAGE, NULL, NULL,
			"--no-outputs: without a loss there would be nothing to compute");
	if (p->forward && o->input_gradient)
		return diag_fail(p->diag, ST_USAGE, NULL, "name a loss",
			"--input-gradient: without a loss there is no gradient");
	if (!p->forward)
		TRY(pipeline_optimizer(p));
	TRY(check_caller(p));
	const struct graph_options options = graph_options_of(p);
	if (!p->forward)
		TRY(graphs_train(p->imported, &options, &p->train));
	if (p->train)
		parts_tell(p);
	TRY(graphs_forward(p->imported, &options, LOWER_EVAL, &p->eval));
	gpu_asked_tell(&p->asked, p->train);
	gpu_asked_tell(&p->asked, p->eval);
	return ST_OK;
}

/* Times of another number of threads or another library are not this step's. */
static void warn_of_machine(const struct pipeline *p)
{
	const struct costs *c = p->costs;
	const struct where w = {.file = p->o->costs};
	char identity[96];
	if (c->threads && c->threads != p->o->threads)
		diag_warn(p->diag, &w, "measure again: `stint bench DIR --costs-out FILE`",
			"measured with %d thread%s, the step is planned for %d", c->threads,
			c->threads == 1 ? "" : "s", p->o->threads);
	else if (c->library && !p->o->portable &&
		 strcmp(c->library, stint_lib_identity(p->o->threads, identity)) != 0)
		diag_warn(p->diag, &w, "measure again: `stint bench DIR --costs-out FILE`",
			"measured with %s, this is %s", c->library, identity);
}

static enum status apply_costs(struct pipeline *p, struct problem *problem, struct costs_use *use)
{
	if (!p->o->costs)
		return ST_OK;
	if (!p->costs) {
		TRY(costs_read(p->arena, p->o->costs, &p->costs, p->diag));
		warn_of_machine(p);
	}
	return costs_apply(p->arena, problem, p->costs, use, p->diag);
}

/* What o->costs says, in place of the problem's own costs: a note tells how many ops were measured.
 */
static enum status take_costs(struct pipeline *p, struct problem *problem)
{
	struct costs_use use = {0};
	TRY(apply_costs(p, problem, &use));
	if (p->costs)
		diag_note(p->diag, &(struct where){.file = p->o->costs}, NULL,
			"%d of %d ops measured; %d scaled from the roofline, by the median of "
			"their "
			"operator or of all",
			use.measured, use.measured + use.scaled, use.scaled);
	return ST_OK;
}

const struct graph_problem *pipeline_problem_shown(const struct pipeline *p)
{
	return p->train ? &p->train_problem : &p->eval_problem;
}

const char *pipeline_name(const struct pipeline *p, const struct tensor *t)
{
	for (int i = 0; i < p->imported->ntensor; i++) {
		const struct tensor *x = p->imported->tensor[i];
		if (x->from_model && x->data == t->data && tensor_bytes(x) == tensor_bytes(t))
			return x->name;
	}
	return NULL;
}

struct plan *pipeline_plan_shown(const struct pipeline *p)
{
	return p->train ? p->plans.train_plan : p->plans.eval_plan;
}

/* Activations that may wait in a GPU's host's memory, or in the file. */
static enum status add_transfers(struct pipeline *p)
{
	const struct compile_options *o = p->o;
	const bool file = o->disk.folder && !o->keep_all && !o->segments;
	const int64_t least = file ? o->disk.least : o->offload_least;
	const double slower = o->disk.writes < o->disk.reads ? o->disk.writes : o->disk.reads;
	return least ? graph_problem_transfers(p->arena, &p->train_problem, least,
			       file ? slower : roofline_of(o->arch)->link, p->diag)
		     : ST_OK;
}

/* A library that could not be asked has not answered. */
static enum status check_asked(const struct pipeline *p)
{
	return p->target.no_room ? diag_nomem(p->diag) : ST_OK;
}

enum status pipeline_problems(struct pipeline *p)
{
	struct costs_use use;
	const struct plan_options loops = pipeline_options(p->o);
	TRY(loops_plan(p->arena, p->train, &loops, p->tight_turns, &p->bodies, p->diag));
	TRY(loops_plan(p->arena, p->eval, &loops, p->tight_turns, &p->bodies, p->diag));
	TRY(problems_from_graphs(p->arena, p->name, p->train, p->eval,
		p->longest ? pipeline_problem_shown(p->longest) : NULL, &p->train_problem,
		&p->eval_problem));
	TRY(check_asked(p));
	if (p->longest)
		TRY(lengths_agree(p));
	struct problem *main = pipeline_problem_shown(p)->problem;
	TRY(take_costs(p, main));
	if (p->train && p->train->shards_differ)
		TRY(graph_problem_shards(p->arena, &p->train_problem, p->diag));
	TRY(insist_once(p->arena, main, p->o->insist.once, p->o->model, p->diag));
	if (!p->train && p->o->insist.again)
		return diag_fail(p->diag, ST_USAGE, NULL, NULL,
			"--recompute: the forward pass alone keeps nothing for a backward pass");
	if (!p->train)
		return ST_OK;
	TRY(apply_costs(p, p->eval_problem.problem, &use));
	TRY(graph_problem_again(
		p->arena, &p->train_problem, p->o->insist.again, p->o->model, p->diag));
	TRY(add_transfers(p));
	/* what is run once in training is so there too, where it is there */
	return insist_once(p->arena, p->eval_problem.problem, p->o->insist.once, NULL, p->diag);
}

static enum status problems_of_model(struct pipeline *p)
{
	static enum status (*const stage[])(struct pipeline *) = {
		pipeline_import, pipeline_graphs, pipeline_problems, loop_slots_choose};
	for (size_t i = 0; i < sizeof stage / sizeof *stage; i++) {
		TRY(stage[i](p));
		TRY(onlooker_check(p->o->onlooker, p->diag));
	}
	return ST_OK;
}

enum status pipeline_problem(struct pipeline *p, struct problem **out)
{
	const struct compile_options *o = p->o;
	if (o->graph && o->model)
		return diag_fail(
			p->diag, ST_USAGE, NULL, NULL, "give a model or --graph, not both");
	if (o->graph) {
		TRY(problem_read(p->arena, o->graph, out, p->diag));
		TRY(take_costs(p, *out));
		TRY(insist_once(p->arena, *out, o->insist.once, o->graph, p->diag));
		int *was;
		TRY(insist_again(p->arena, *out, o->insist.again, o->graph, &was, p->diag));
		struct problem plain;
		return o->offload_least && !transfers_without(*out, &plain)
			       ? transfers_add(p->arena, *out, o->offload_least,
					 roofline_of(o->arch)->link, p->diag)
			       : ST_OK;
	}
	TRY(problems_of_model(p));
	*out = pipeline_problem_shown(p)->problem;
	return ST_OK;
}

struct plan_options pipeline_options(const struct compile_options *o)
{
	return (struct plan_options){.budget = INT64_MAX,
		.alignment = o->target == TARGET_CUDA ? 256 : 64,
		.segments = o->segments,
		.seconds = o->seconds,
		.effort = o->effort,
		.gap = o->gap,
		.onlooker = o->onlooker,
		.mode = o->keep_all   ? PLAN_KEEP_ALL
			: o->segments ? PLAN_SEGMENTS
				      : PLAN_AUTO};
}

const struct plan_budget *pipeline_budget(const struct pipeline *p)
{
	return p->ntrial || p->budget_settled ? &p->budget : &p->o->budget;
}

enum status pipeline_plan_quietly(struct pipeline *p)
{
	p->plan_options = pipeline_options(p->o);
	p->plans = (struct plan_pair){
		.train = p->train_problem.problem, .eval = p->eval_problem.problem};
	return plan_pair_make(p->arena, &p->plans, pipeline_budget(p), &p->plan_options, p->diag);
}

enum status pipeline_plan(struct pipeline *p)
{
	const enum status st = pipeline_plan_quietly(p);
	return st == ST_BUDGET ? budget_not_met(p) : st;
}

enum status pipeline_texts(
	struct pipeline *p, struct step_texts *texts, struct source_files *kernels)
{
	const struct compile_options *o = p->o;
	const struct target *t = &p->target;
	const char *file = strrchr(o->model, '/');
	char identity[96];
	struct short_batch whole;
	TRY(short_batch_find(p, &whole));
	const struct codegen_input in = {.name = p->name,
		.model_file = file ? file + 1 : o->model,
		.train = p->train_problem,
		.eval = p->eval_problem,
		.train_plan = p->plans.train_plan,
		.eval_plan = p->plans.eval_plan,
		.arena_bytes = p->plans.arena_bytes,
		.losses = &p->losses,
		.library_identity = t->portable || t->cuda
					    ? NULL
					    : stint_lib_identity(t->threads, identity),
		.isa_flags = o->isa                   ? arena_printf(p->arena, "-march=%s", o->isa)
			     : t->portable || t->cuda ? ""
						      : "-march=native",
		.cross = o->cross,
		.lr = p->optimizer.lr,
		.shards = (int)p->parts.shards,
		.ranks = (int)o->ranks,
		.whole_batch = whole.training,
		.whole_output = whole.output,
		.disk_folder = o->disk.folder,
		.beside = p->longest != NULL,
		.debug_arena = o->debug_arena != 0};
	if (!in.isa_flags)
		return diag_nomem(p->diag);
	TRY(codegen_step(&in, texts, kernels, p->diag));
	return check_asked(p);
}

enum status pipeline_run(struct pipeline *p)
{
	TRY(problems_of_model(p));
	return pipeline_plan(p);
}

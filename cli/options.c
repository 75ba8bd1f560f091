/* The shared options, read with popt. */
#include "cli/options.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/args.h"
#include "planner/problem/transfer.h"
#include "runtime/stint_gpu.h"

enum {
	OPT_DIM = 1,
	OPT_TRAIN,
	OPT_FREEZE,
	OPT_TIE,
	OPT_UNTIE,
	OPT_STOP,
	OPT_FIX,
	OPT_PADDING,
	OPT_DROPOUT,
	OPT_BATCH,
	OPT_ONCE,
	OPT_AGAIN,
	OPT_OPS,
	OPT_CHOICE /* and those behind it: a choice's, by its place */
};
enum { LIST_MAX = 64 };
/* Kernels whose threads each have scratch of their own run with so many on a GPU, whatever the
 * processors here. */
enum { NOT_GIVEN = INT_MIN, GPU_THREADS = 32, GPU_ARCH = 90 };

struct lists {
	int ndim, ntie, nfix, nkeep, ntrain, nfreeze, nuntie, nstop, nonce, nagain, nops, npadding;
	struct import_dim dim[LIST_MAX];
	struct import_tie tie[LIST_MAX];
	struct import_fix fix[LIST_MAX];
	struct import_padding padding[LIST_MAX];
	struct dropout_ratio ratio[LIST_MAX];
	const char *train[LIST_MAX + 1], *freeze[LIST_MAX + 1];
	const char *untie[LIST_MAX + 1], *stop[LIST_MAX + 1];
	const char *once[LIST_MAX + 1], *again[LIST_MAX + 1];
	const char *ops[LIST_MAX + 1];
};

static int processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : n > 1024 ? 1024 : (int)n;
}

static enum status usage_fail(struct diag *d, const char *what, const char *value)
{
	return diag_fail(d, ST_USAGE, NULL, NULL, "%s: '%s'", what, value);
}

static enum status parse_size(const char *flag, const char *text, int64_t *out, struct diag *d)
{
	char *end;
	long long v = strtoll(text, &end, 10);
	if (end == text || *end || v < 1 || v > INT32_MAX)
		return diag_fail(d, ST_USAGE, NULL, NULL, "%s wants a size of at least 1, not '%s'",
			flag, text);
	*out = v;
	return ST_OK;
}

/* --- Options that take one of a few words --- */

enum { CHOICE_WORDS = 8 };
struct choice {
	const char *name, *help, *arg;
	size_t at; /* of the enum in struct options: a word's value is its place */
	const char *word[CHOICE_WORDS + 1];
};
enum {
	CHOOSE_TARGET,
	CHOOSE_MATH,
	CHOOSE_PRECISION,
	CHOOSE_BN,
	CHOOSE_VARIANCE,
	CHOOSE_FUSE,
	CHOOSE_STAGE
};
static const struct choice choices[] = {
	[CHOOSE_TARGET] = {"target", "c, or cuda: for NVIDIA's GPUs", "T",
		offsetof(struct options, target), {"c", "cuda"}},
	[CHOOSE_MATH] = {"math", "fixed, free or strict", "M", offsetof(struct options, math),
		{"fixed", "strict", "free"}},
	[CHOOSE_PRECISION] = {"precision",
		"fp32, bf16, fp16; fp64 with --portable, tf32 with --target cuda", "P",
		offsetof(struct options, precision), {"fp32", "tf32", "bf16", "fp16", "fp64"}},
	[CHOOSE_BN] = {"bn", "batch-norm in training: train or frozen", "MODE",
		offsetof(struct options, bn), {"train", "frozen"}},
	[CHOOSE_VARIANCE] = {"bn-variance",
		"running variances: unbiased (as PyTorch's) or population", "KIND",
		offsetof(struct options, bn_variance), {"unbiased", "population"}},
	[CHOOSE_FUSE] = {"fuse", "pointwise nodes in one loop: on, or off to see each", "MODE",
		offsetof(struct options, fuse), {"on", "off"}},
	[CHOOSE_STAGE] = {"dump-after",
		"print the graph after import, lower, loss, autodiff, updates, layout, narrow or "
		"fuse",
		"STAGE", offsetof(struct options, dump_after),
		{"import", "lower", "loss", "autodiff", "updates", "layout", "narrow", "fuse"}},
};

/* "--fuse is on or off, not 'x'" */
static enum status choice_fail(const struct choice *c, const char *text, struct diag *d)
{
	struct text words = {0};
	for (int i = 0; c->word[i]; i++)
		text_add(&words, "%s%s", !i ? "" : c->word[i + 1] ? ", " : " or ", c->word[i]);
	const enum status st = words.failed
				       ? diag_nomem(d)
				       : diag_fail(d, ST_USAGE, NULL, NULL, "--%s is %s, not: '%s'",
						 c->name, words.s, text);
	text_free(&words);
	return st;
}

static enum status take_choice(
	const struct choice *c, const char *text, struct options *o, struct diag *d)
{
	int i = 0;
	while (c->word[i] && strcmp(c->word[i], text) != 0)
		i++;
	if (!c->word[i])
		return choice_fail(c, text, d);
	memcpy((char *)o + c->at, &i, sizeof i);
	return ST_OK;
}

static enum status take_dim(struct arena *a, struct lists *l, const char *text, struct diag *d)
{
	const char *eq = strrchr(text, '=');
	if (!eq || eq == text)
		return usage_fail(d, "--dim wants NAME=N", text);
	struct import_dim dim = {.name = arena_strndup(a, text, (size_t)(eq - text))};
	if (!dim.name)
		return diag_nomem(d);
	TRY(parse_size("--dim", eq + 1, &dim.size, d));
	if (l->ndim == LIST_MAX)
		return usage_fail(d, "too many --dim", text);
	l->dim[l->ndim++] = dim;
	return ST_OK;
}

/* "LEFT=RIGHT", parted at the first or the last "=". */
static enum status take_pair(struct arena *a, const char *flag, const char *text, const char *at,
	const char **left, const char **right, struct diag *d)
{
	if (!at || at == text || !at[1])
		return usage_fail(d, flag, text);
	*left = arena_strndup(a, text, (size_t)(at - text));
	*right = at + 1;
	return *left ? ST_OK : diag_nomem(d);
}

static enum status take_tie(struct arena *a, struct lists *l, const char *text, struct diag *d)
{
	if (l->ntie == LIST_MAX)
		return usage_fail(d, "too many --tie", text);
	struct import_tie *t = &l->tie[l->ntie++];
	return take_pair(
		a, "--tie wants NAME=COPY", text, strchr(text, '='), &t->name, &t->copy, d);
}

static enum status take_fix(struct arena *a, struct lists *l, const char *text, struct diag *d)
{
	if (l->nfix == LIST_MAX)
		return usage_fail(d, "too many --fix", text);
	struct import_fix *t = &l->fix[l->nfix++];
	return take_pair(
		a, "--fix wants NAME=NUMBERS", text, strrchr(text, '='), &t->name, &t->values, d);
}

static enum status take_padding(struct arena *a, struct lists *l, const char *text, struct diag *d)
{
	const char *row;
	char *end;
	if (l->npadding == LIST_MAX)
		return usage_fail(d, "too many --padding-idx", text);
	struct import_padding *p = &l->padding[l->npadding++];
	TRY(take_pair(
		a, "--padding-idx wants NAME=N, not", text, strrchr(text, '='), &p->name, &row, d));
	p->row = strtoll(row, &end, 10);
	return *end ? usage_fail(d, "--padding-idx wants NAME=N, not", text) : ST_OK;
}

/* "off", or "NODE=P" */
static enum status take_dropout(
	struct arena *a, struct lists *l, const char *text, struct options *o, struct diag *d)
{
	const char *p = text;
	char *end;
	if (!strcmp(text, "off")) {
		o->dropout_off = 1;
		return ST_OK;
	}
	if (l->nkeep == LIST_MAX)
		return usage_fail(d, "too many --dropout", text);
	struct dropout_ratio *r = &l->ratio[l->nkeep++];
	TRY(take_pair(a, "--dropout takes off or NODE=P, not", text, strrchr(text, '='),
		&r->pattern, &p, d));
	r->ratio = strtod(p, &end);
	if (*end || !(r->ratio >= 0 && r->ratio < 1))
		return usage_fail(d, "--dropout NODE=P wants a P from 0 to below 1, not", p);
	return ST_OK;
}

static enum status take_pattern(const char **list, int *n, const char *text, struct diag *d)
{
	if (*n == LIST_MAX)
		return usage_fail(d, "too many of an option", text);
	list[(*n)++] = text;
	return ST_OK;
}

/* What options_parse fills. */
struct taken {
	struct lists *l;
	struct options *o;
};

static enum status take(struct arena *a, int option, const char *text, void *user, struct diag *d)
{
	struct lists *l = ((struct taken *)user)->l;
	struct options *o = ((struct taken *)user)->o;
	switch (option) {
	case OPT_DIM:
		return take_dim(a, l, text, d);
	case OPT_TRAIN:
		return take_pattern(l->train, &l->ntrain, text, d);
	case OPT_FREEZE:
		return take_pattern(l->freeze, &l->nfreeze, text, d);
	case OPT_TIE:
		return take_tie(a, l, text, d);
	case OPT_UNTIE:
		return take_pattern(l->untie, &l->nuntie, text, d);
	case OPT_STOP:
		return take_pattern(l->stop, &l->nstop, text, d);
	case OPT_FIX:
		return take_fix(a, l, text, d);
	case OPT_PADDING:
		return take_padding(a, l, text, d);
	case OPT_DROPOUT:
		return take_dropout(a, l, text, o, d);
	case OPT_ONCE:
		return take_pattern(l->once, &l->nonce, text, d);
	case OPT_AGAIN:
		return take_pattern(l->again, &l->nagain, text, d);
	case OPT_OPS:
		return take_pattern(l->ops, &l->nops, text, d);
	case OPT_BATCH:
		return parse_size("--batch", text, &o->import.batch, d);
	default:
		return take_choice(&choices[option - OPT_CHOICE], text, o, d);
	}
}

/* "host", "host:64KiB" */
static enum status check_offload(struct options *o, struct diag *d)
{
	struct budget least = {.kind = BUDGET_BYTES, .bytes = TRANSFER_BYTES};
	if (!o->offload)
		return ST_OK;
	if (strncmp(o->offload, "host", 4) != 0 || (o->offload[4] && o->offload[4] != ':'))
		return usage_fail(d, "--offload is host or host:SIZE, not", o->offload);
	if (o->offload[4])
		TRY(budget_parse(o->offload + 5, &least, d));
	if (least.kind != BUDGET_BYTES || least.bytes < 1)
		return usage_fail(d, "--offload host:SIZE wants bytes, 1 or more, not", o->offload);
	if (o->target != TARGET_CUDA)
		return diag_fail(d, ST_USAGE, NULL, "add --target cuda",
			"--offload host: a step of --target c works in the host's memory already");
	if (o->keep_all || o->segments)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--offload host: --%s says what is held already",
			o->keep_all ? "keep-all" : "segments");
	o->offload_least = least.bytes;
	return ST_OK;
}

/* --arch, 90 or sm_90. */
static enum status check_arch(struct options *o, bool cuda, struct diag *d)
{
	o->arch = GPU_ARCH;
	if (!o->gpu)
		return ST_OK;
	if (!cuda)
		return diag_fail(d, ST_USAGE, NULL, "add --target cuda",
			"--arch names a GPU's architecture");
	const char *digits = strncmp(o->gpu, "sm_", 3) ? o->gpu : o->gpu + 3;
	const size_t n = strspn(digits, "0123456789");
	o->arch = n > 0 && n < 4 && !digits[n] ? atoi(digits) : 0;
	if (!o->arch || stint_gpu_arch(o->arch / 10, o->arch % 10) != o->arch)
		return usage_fail(d, "--arch is 80, 86, 89, 90, 100 or 120, not", o->gpu);
	return ST_OK;
}

static enum status check_words(struct options *o, struct diag *d)
{
	const bool cuda = o->target == TARGET_CUDA;
	if (cuda && (o->portable || o->debug_arena || o->isa))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--%s does not go with --target cuda",
			o->portable ? "portable"
			: o->isa    ? "isa"
				    : "debug-arena");
	TRY(check_arch(o, cuda, d));
	if (o->precision == PRECISION_TF32 && !cuda)
		return diag_fail(d, ST_USAGE, NULL,
			"add --target cuda, or take fp32: the same training, nothing rounded",
			"--precision tf32 is for GPUs: no CPU's library has tf32");
	if (o->precision == PRECISION_FP64 && !o->portable)
		return diag_fail(d, ST_USAGE, NULL, "add --portable",
			"--precision fp64 is for the portable path");
	if (o->threads == NOT_GIVEN)
		o->threads = cuda ? GPU_THREADS : processors();
	if (o->threads < 1 || o->threads > 1024)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--threads wants 1 to 1024");
	if (o->segments < 0 || (o->segments && o->keep_all))
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--segments wants a number of 1 or more, without --keep-all");
	if (!(o->clip_norm >= 0) || isinf(o->clip_norm))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--clip-norm wants a number above 0");
	if (!(o->seconds >= 0))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--time wants seconds");
	if (!(o->effort > 0) || isinf(o->effort))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--effort wants a number above 0");
	return check_offload(o, d);
}

/* The list, ended by NULL; NULL when it is empty. */
static enum status patterns(
	struct arena *a, const char *const *list, int n, const char *const **out, struct diag *d)
{
	*out = n ? arena_memdup(a, list, (size_t)n + 1, sizeof *list) : NULL;
	return n && !*out ? diag_nomem(d) : ST_OK;
}

static enum status finish(
	struct arena *a, poptContext ctx, struct lists *l, struct options *o, struct diag *d)
{
	const char *model = poptGetArg(ctx);
	o->model = model ? arena_strdup(a, model) : NULL;
	if (poptPeekArg(ctx))
		return usage_fail(d, "one model at a time; unexpected argument", poptGetArg(ctx));
	o->import.ndim = l->ndim;
	o->import.dim = arena_memdup(a, l->dim, (size_t)l->ndim, sizeof *l->dim);
	TRY(patterns(a, l->train, l->ntrain, &o->import.train_pattern, d));
	TRY(patterns(a, l->freeze, l->nfreeze, &o->import.freeze_pattern, d));
	TRY(patterns(a, l->untie, l->nuntie, &o->import.untie_pattern, d));
	TRY(patterns(a, l->stop, l->nstop, &o->import.stop_pattern, d));
	o->import.ntie = l->ntie;
	o->import.tie = arena_memdup(a, l->tie, (size_t)l->ntie, sizeof *l->tie);
	o->import.nfix = l->nfix;
	o->import.fix = arena_memdup(a, l->fix, (size_t)l->nfix, sizeof *l->fix);
	o->import.npadding = l->npadding;
	o->import.padding = arena_memdup(a, l->padding, (size_t)l->npadding, sizeof *l->padding);
	o->nratio = l->nkeep;
	o->ratio = arena_memdup(a, l->ratio, (size_t)l->nkeep, sizeof *l->ratio);
	TRY(patterns(a, l->once, l->nonce, &o->insist.once, d));
	TRY(patterns(a, l->again, l->nagain, &o->insist.again, d));
	TRY(patterns(a, l->ops, l->nops, &o->ops, d));
	return check_words(o, d);
}

/* popt allocates the strings it hands out; move them into the arena. */
static enum status own_strings(struct arena *a, struct options *o, struct diag *d)
{
	const char **const mine[] = {&o->loss, &o->optimizer, &o->budget, &o->out, &o->isa,
		&o->graph, &o->dump_graph, &o->costs, &o->html, &o->trace, &o->onnx, &o->svg,
		&o->gpu, &o->offload};
	enum status st = ST_OK;
	for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) {
		if (!*mine[i])
			continue;
		char *copy = arena_strdup(a, *mine[i]);
		free((char *)(uintptr_t)*mine[i]);
		*mine[i] = copy;
		if (!copy)
			st = diag_nomem(d);
	}
	return st;
}

/* clang-format off */
#define STR(name, var, text, arg) {name, 0, POPT_ARG_STRING, &o->var, 0, text, arg}
#define FLAG(name, var, text) {name, 0, POPT_ARG_NONE, &o->var, 0, text, NULL}
#define CHOICE(which) {choices[which].name, 0, POPT_ARG_STRING, NULL, OPT_CHOICE + (which), choices[which].help, choices[which].arg}
/* clang-format on */

enum { TABLE_MAX = 60 };

/* Whether the command takes the option. */
static bool belongs(const char *option, enum command_kind kind)
{
	static const struct {
		const char *name;
		enum command_kind kind;
	} only[] = {{"html", COMMAND_SHOW}, {"trace", COMMAND_SHOW}, {"onnx", COMMAND_SHOW},
		{"steps", COMMAND_SHOW}, {"compare", COMMAND_PLAN}, {"points", COMMAND_FRONTIER},
		{"svg", COMMAND_FRONTIER}, {"force", COMMAND_COMPILE}};
	for (size_t i = 0; option && i < sizeof only / sizeof *only; i++)
		if (!strcmp(option, only[i].name))
			return kind == only[i].kind;
	return true;
}

/* popt's table, its variables in *o and *help. */
static void fill_table(
	struct poptOption table[TABLE_MAX], enum command_kind kind, struct options *o, int *help)
{
	const struct poptOption all[] = {
		STR("loss", loss, "cross-entropy, mse, l1, bce-with-logits, ..., output:NAME, none",
			"LOSS"),
		STR("optimizer", optimizer,
			"sgd, adam, adamw, rmsprop, ..., with options: sgd:lr=0.1,momentum=0.9",
			"OPT"),
		{"batch", 0, POPT_ARG_STRING, NULL, OPT_BATCH, "size of the inputs' first axis",
			"N"},
		{"dim", 0, POPT_ARG_STRING, NULL, OPT_DIM, "size of a symbolic dimension",
			"NAME=N"},
		STR("budget", budget, "2GiB, 1500000, 70%, min; default: keep everything", "SIZE"),
		CHOICE(CHOOSE_TARGET),
		STR("arch", gpu,
			"the GPU that --target cuda plans for: 80, 86, 89, 90 (default), 100, 120",
			"N"),
		{"output", 'o', POPT_ARG_STRING, &o->out, 0,
			kind == COMMAND_PLAN       ? "write the plan here"
			: kind == COMMAND_FRONTIER ? "write the points as JSON"
						   : "directory to write",
			"PATH"},
		FLAG("keep-all", keep_all, "recompute nothing"),
		{"segments", 0, POPT_ARG_INT, &o->segments, 0, "K equal checkpoint segments", "K"},
		CHOICE(CHOOSE_MATH), CHOICE(CHOOSE_PRECISION),
		STR("offload", offload,
			"host: saved activations may wait in the host's memory (of SIZE or more: "
			"1MiB)",
			"host[:SIZE]"),
		FLAG("portable", portable, "plain C only: libc and libm"),
		STR("isa", isa, "compile for this -march instead of this machine's", "NAME"),
		{"threads", 0, POPT_ARG_INT, &o->threads, 0,
			"threads of the step (default: one per processor)", "N"},
		{"dropout", 0, POPT_ARG_STRING, NULL, OPT_DROPOUT,
			"off: no dropout in training; NODE=P: with probability P there",
			"off|NODE=P"},
		CHOICE(CHOOSE_BN), CHOICE(CHOOSE_VARIANCE),
		{"train", 0, POPT_ARG_STRING, NULL, OPT_TRAIN, "train only parameters matching",
			"PATTERN"},
		{"freeze", 0, POPT_ARG_STRING, NULL, OPT_FREEZE, "do not train parameters matching",
			"PATTERN"},
		{"tie", 0, POPT_ARG_STRING, NULL, OPT_TIE,
			"one parameter: COPY is NAME, or NAME transposed", "NAME=COPY"},
		{"untie", 0, POPT_ARG_STRING, NULL, OPT_UNTIE,
			"separate parameters for each layer that reads a matching one", "PATTERN"},
		{"stop-gradient", 0, POPT_ARG_STRING, NULL, OPT_STOP,
			"no gradient passes the outputs of nodes matching", "NODE"},
		{"fix", 0, POPT_ARG_STRING, NULL, OPT_FIX,
			"an input that is the same in every step", "NAME=NUMBERS"},
		{"padding-idx", 0, POPT_ARG_STRING, NULL, OPT_PADDING,
			"row N of an embedding gets no gradient from lookups", "NAME=N"},
		FLAG("restore-biases", import.restore_biases,
			"train the biases of zeros that an exporter took away"),
		{"ops", 0, POPT_ARG_STRING, NULL, OPT_OPS,
			"operators of your own, from a shared object", "FILE.so"},
		{"clip-norm", 0, POPT_ARG_DOUBLE, &o->clip_norm, 0,
			"clip the gradients' global norm", "X"},
		{"time", 0, POPT_ARG_DOUBLE, &o->seconds, 0,
			"let the planner search this long (plans may then differ)", "SECONDS"},
		{"effort", 0, POPT_ARG_DOUBLE, &o->effort, 0,
			"search this many times as long as usual (default 1)", "X"},
		{"no-recompute", 0, POPT_ARG_STRING, NULL, OPT_ONCE,
			"run nodes once that match by name or operator", "PATTERN"},
		{"recompute", 0, POPT_ARG_STRING, NULL, OPT_AGAIN,
			"keep nothing of matching nodes for the backward pass", "PATTERN"},
		STR("costs", costs, "plan with the measured times in a stint-costs-1 file", "FILE"),
		CHOICE(CHOOSE_FUSE),
		FLAG("no-outputs", no_outputs,
			"evaluation computes the loss alone, not the model's outputs"),
		FLAG("debug-arena", debug_arena, "poison dead ranges of the arena"),
		FLAG("no-build", no_build, "do not run the C compiler"),
		FLAG("force", force, "write into a folder that stint did not make"),
		STR("graph", graph, "plan a stint-graph-1 file instead of a model", "FILE"),
		STR("dump-graph", dump_graph, "write the problem as stint-graph-1", "FILE"),
		CHOICE(CHOOSE_STAGE),
		{"compare", 0, POPT_ARG_NONE, &o->compare, 0,
			"beside the plan what keep-everything and checkpointing by segments need",
			NULL},
		{"points", 0, POPT_ARG_INT, &o->points, 0, "how many budgets", "N"},
		STR("svg", svg, "draw cost against budget", "FILE"),
		STR("html", html, "for show: write a plan as a page to look at", "FILE"),
		STR("trace", trace, "for show: write a plan as a Chrome trace, for Perfetto",
			"FILE"),
		STR("onnx", onnx,
			"for show: the model again, saying of each node what happens to it",
			"FILE"),
		FLAG("steps", steps, "every step, however many"),
		FLAG("json", json, "print JSON for programs"),
		{"help", 'h', POPT_ARG_NONE, help, 0, "show this", NULL}, POPT_TABLEEND};
	_Static_assert(sizeof all / sizeof *all <= TABLE_MAX, "the table is longer than its room");
	size_t n = 0;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (belongs(all[i].longName, kind))
			table[n++] = all[i];
}
#undef STR
#undef FLAG
#undef CHOICE

enum status options_parse(struct arena *a, enum command_kind kind, int argc, const char **argv,
	struct options *out, bool *help, struct diag *d)
{
	struct lists l = {0};
	struct options o = {
		.math = MATH_FIXED, .dump_after = STAGE_NONE, .effort = 1, .threads = NOT_GIVEN};
	int want_help = 0;
	struct poptOption table[TABLE_MAX];
	fill_table(table, kind, &o, &want_help);
	poptContext ctx = poptGetContext(NULL, argc, argv, table, 0);
	bool graph_will_do = kind == COMMAND_PLAN || kind == COMMAND_FRONTIER;
	poptSetOtherOptionHelp(
		ctx, graph_will_do ? "[MODEL.onnx] [OPTIONS]" : "MODEL.onnx [OPTIONS]");
	enum status st = args_options(a, ctx, take, &(struct taken){&l, &o}, d);
	if (st == ST_OK && want_help)
		poptPrintHelp(ctx, stdout, 0);
	else if (st == ST_OK)
		st = own_strings(a, &o, d);
	if (st == ST_OK && !want_help)
		st = finish(a, ctx, &l, &o, d);
	poptFreeContext(ctx);
	*help = want_help != 0;
	*out = o;
	return st;
}

/* What compile, plan, frontier and show take, and libstint: one table. To add an option: a field,
 * and a line in the table. */
#include "api/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/loss_file.h"
#include "api/offload.h"
#include "base/marked.h"
#include "base/nearest.h"
#include "base/once.h"

static enum status usage_fail(struct diag *d, const char *what, const char *value)
{
	return diag_fail(d, ST_USAGE, NULL, NULL, "%s: '%s'", what, value);
}

/* --- What an option's text becomes --- */

static enum status take_size_from(
	int least, const char *flag, const char *text, int64_t *out, struct diag *d)
{
	char *end;
	long long v = strtoll(text, &end, 10);
	if (end == text || *end || v < least || v > INT32_MAX)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--%s wants a size of at least %d, not '%s'", flag, least, text);
	*out = v;
	return ST_OK;
}

static enum status take_size(const char *flag, const char *text, int64_t *out, struct diag *d)
{
	return take_size_from(1, flag, text, out, d);
}

static enum status take_count(const char *flag, const char *text, int *out, struct diag *d)
{
	char *end;
	errno = 0;
	const long v = strtol(text, &end, 10);
	if (end == text || *end || errno || v < INT_MIN || v > INT_MAX)
		return diag_fail(
			d, ST_USAGE, NULL, NULL, "--%s wants a whole number, not '%s'", flag, text);
	*out = (int)v;
	return ST_OK;
}

static enum status take_real(const char *flag, const char *text, double *out, struct diag *d)
{
	char *end;
	const double v = strtod(text, &end);
	if (end == text || *end)
		return diag_fail(
			d, ST_USAGE, NULL, NULL, "--%s wants a number, not '%s'", flag, text);
	*out = v;
	return ST_OK;
}

/* "--fuse is on or off, not 'x'" */
static enum status word_fail(const struct option *c, const char *text, struct diag *d)
{
	struct text words = {0};
	for (int i = 0; c->word[i]; i++)
		text_add(&words, "%s%s", !i ? "" : c->word[i + 1] ? ", " : " or ", c->word[i]);
	const char *meant = NULL;
	for (int i = 0; c->word[i]; i++)
		meant = nearest(text, meant, c->word[i]);
	char hint[64];
	snprintf(hint, sizeof hint, "did you mean %s?", meant ? meant : "");
	const enum status st = words.failed
				       ? diag_nomem(d)
				       : diag_fail(d, ST_USAGE, NULL, meant ? hint : NULL,
						 "--%s is %s, not: '%s'", c->name, words.s, text);
	text_free(&words);
	return st;
}

static enum status take_word(const struct option *c, const char *text, int *out, struct diag *d)
{
	int i = 0;
	while (c->word[i] && strcmp(c->word[i], text) != 0)
		i++;
	if (!c->word[i])
		return word_fail(c, text, d);
	*out = i;
	return ST_OK;
}

/* `n` things of `size` bytes and one more. */
static void *longer(struct arena *a, const void *list, int n, size_t size, const void *item)
{
	char *grown = arena_alloc(a, (size_t)n + 1, size);
	if (grown && n)
		memcpy(grown, list, (size_t)n * size);
	if (grown)
		memcpy(grown + (size_t)n * size, item, size);
	return grown;
}

static enum status take_listed(
	struct arena *a, const char *text, const char *const **list, struct diag *d)
{
	const char *none = NULL;
	const int n = list_length(*list);
	const char *const *with = longer(a, *list, n, sizeof text, &text);
	*list = with ? longer(a, with, n + 1, sizeof none, &none) : NULL;
	return *list ? ST_OK : diag_nomem(d);
}

/* "NAME=VALUE", parted at the last "=". */
static enum status take_pair(struct arena *a, const char *flag, const char *text, const char **left,
	const char **right, struct diag *d)
{
	const char *at = marked_last(text, '=');
	if (!at || at == text || !at[1])
		return usage_fail(d, flag, text);
	*left = marked_name(a, text, (size_t)(at - text));
	*right = at + 1;
	return *left ? ST_OK : diag_nomem(d);
}

static int by_size(const void *x, const void *y)
{
	const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
	return (a > b) - (a < b);
}

/* "64,128,256", in any order; *longest: the last of them. */
static enum status take_lengths(struct arena *a, const char *dim, const char *text,
	struct length_options *out, int64_t *longest, struct diag *d)
{
	int n = 0;
	int64_t *length = ARENA_ARRAY(a, int64_t, (int64_t)strlen(text));
	if (!length)
		return diag_nomem(d);
	if (out->dim)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--dim: '%s' has several sizes already; one dimension may", out->dim);
	for (const char *at = text; at; at = strchr(at, ',')) {
		at += *at == ',';
		const char *one = arena_strndup(a, at, strcspn(at, ","));
		if (!one)
			return diag_nomem(d);
		TRY(take_size("dim", one, &length[n++], d));
	}
	qsort(length, (size_t)n, sizeof *length, by_size);
	for (int i = 1; i < n; i++)
		if (length[i] == length[i - 1])
			return usage_fail(d, "--dim wants different sizes, not", text);
	*longest = length[n - 1];
	*out = (struct length_options){dim, n - 1, length};
	return ST_OK;
}

static enum status take_dim(struct arena *a, const char *text, struct options *o, struct diag *d)
{
	struct import_options *i = &o->compile.import;
	struct import_dim dim;
	const char *sizes = NULL;
	TRY(take_pair(a, "--dim wants NAME=N or INPUT:AXIS=N", text, &dim.name, &sizes, d));
	if (strchr(sizes, ','))
		TRY(take_lengths(a, dim.name, sizes, &o->compile.lengths, &dim.size, d));
	else
		TRY(take_size_from(0, "dim", sizes, &dim.size, d));
	i->dim = longer(a, i->dim, i->ndim++, sizeof dim, &dim);
	return i->dim ? ST_OK : diag_nomem(d);
}

static enum status take_tie(struct arena *a, const char *text, struct options *o, struct diag *d)
{
	struct import_options *i = &o->compile.import;
	struct import_tie tie;
	TRY(take_pair(a, "--tie wants NAME=COPY", text, &tie.name, &tie.copy, d));
	if (!(tie.copy = marked_name(a, tie.copy, strlen(tie.copy))))
		return diag_nomem(d);
	for (int k = 0; k < i->ntie; k++)
		if (!strcmp(i->tie[k].copy, tie.copy))
			return once_fail("--tie: the copy ", tie.copy, i->tie[k].name, tie.name, d);
	i->tie = longer(a, i->tie, i->ntie++, sizeof tie, &tie);
	return i->tie ? ST_OK : diag_nomem(d);
}

static enum status take_fix(struct arena *a, const char *text, struct options *o, struct diag *d)
{
	struct import_options *i = &o->compile.import;
	struct import_fix fix = {0};
	TRY(take_pair(a, "--fix wants NAME=NUMBERS", text, &fix.name, &fix.values, d));
	for (int k = 0; k < i->nfix; k++)
		if (!strcmp(i->fix[k].name, fix.name))
			return once_fail("--fix ", fix.name, i->fix[k].values, fix.values, d);
	i->fix = longer(a, i->fix, i->nfix++, sizeof fix, &fix);
	return i->fix ? ST_OK : diag_nomem(d);
}

static enum status take_padding(
	struct arena *a, const char *text, struct options *o, struct diag *d)
{
	static const char wants[] = "--padding-idx wants NAME=N, not";
	struct import_options *i = &o->compile.import;
	struct import_padding padding;
	const char *row = NULL;
	char *end;
	TRY(take_pair(a, wants, text, &padding.name, &row, d));
	padding.row = strtoll(row, &end, 10);
	if (*end)
		return usage_fail(d, wants, text);
	for (int k = 0; k < i->npadding; k++)
		if (!strcmp(i->padding[k].name, padding.name))
			return once_fail("--padding-idx ", padding.name,
				arena_printf(a, "%lld", (long long)i->padding[k].row), row, d);
	i->padding = longer(a, i->padding, i->npadding++, sizeof padding, &padding);
	return i->padding ? ST_OK : diag_nomem(d);
}

static enum status take_head(struct arena *a, const char *text, struct options *o, struct diag *d)
{
	struct import_options *i = &o->compile.import;
	const char *keep = strchr(text, ':');
	char *size = arena_strndup(a, text, keep ? (size_t)(keep - text) : strlen(text));
	if (!size)
		return diag_nomem(d);
	if (keep && strcmp(keep, ":keep") != 0)
		return usage_fail(d, "--replace-head wants N or N:keep, not", text);
	i->head_keeps = keep;
	return take_size("replace-head", size, &i->head, d);
}

static enum status take_batch(struct arena *a, const char *text, struct options *o, struct diag *d)
{
	(void)a;
	o->compile.batch_auto = !strcmp(text, "auto");
	return o->compile.batch_auto ? ST_OK
				     : take_size("batch", text, &o->compile.import.batch, d);
}

static enum status take_micro_batch(
	struct arena *a, const char *text, struct options *o, struct diag *d)
{
	(void)a;
	o->compile.micro_batch = MICRO_BATCH_AUTO;
	return strcmp(text, "auto") ? take_size("micro-batch", text, &o->compile.micro_batch, d)
				    : ST_OK;
}

static enum status take_split(struct arena *a, const char *text, struct options *o, struct diag *d)
{
	struct compile_options *c = &o->compile;
	const char *until = strchr(text, ':');
	c->split = !strcmp(text, "auto") ? SPLIT_AUTO : 0;
	if (!strcmp(text, "auto") || !strcmp(text, "off"))
		return ST_OK;
	const char *n = until ? arena_strndup(a, text, (size_t)(until - text)) : text;
	c->split_until = until ? marked_name(a, until + 1, strlen(until + 1)) : NULL;
	if (!n || (until && !c->split_until))
		return diag_nomem(d);
	return take_size("split", n, &c->split, d);
}

/* "state", "none", "parameters" or "parameters:SIZE" */
static enum status take_share(struct arena *a, const char *text, struct options *o, struct diag *d)
{
	static const char parameters[] = "parameters";
	static const int64_t usual = 16384; /* what takes about as long to send as a message */
	struct compile_options *c = &o->compile;
	const char *size = text + sizeof parameters - 1;
	struct plan_budget b = {BUDGET_BYTES, usual, 0};
	(void)a;
	c->share_least = 0;
	c->share = strcmp(text, "none") ? SHARE_STATE : SHARE_NONE;
	if (c->share == SHARE_NONE || !strcmp(text, "state"))
		return ST_OK;
	if (strncmp(text, parameters, sizeof parameters - 1) != 0 || (*size && *size != ':'))
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--shard %s: it is state, none, parameters or parameters:SIZE", text);
	if (*size)
		TRY(plan_budget_parse(size + 1, &b, d));
	if (b.kind != BUDGET_BYTES || b.bytes < 1)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--shard %s wants bytes, 1 or more, behind the colon", text);
	c->share_least = b.bytes;
	return ST_OK;
}

/* "off", or "NODE=P" */
static enum status take_dropout(
	struct arena *a, const char *text, struct options *o, struct diag *d)
{
	struct compile_options *c = &o->compile;
	struct dropout_ratio r;
	const char *p = text;
	char *end;
	const bool off = !strcmp(text, "off");
	if (off ? c->nratio > 0 : c->dropout_off)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--dropout off and --dropout %s do not go together",
			off ? arena_printf(a, "%s=%g", c->ratio[0].pattern, c->ratio[0].ratio)
			    : text);
	if (off) {
		c->dropout_off = 1;
		return ST_OK;
	}
	TRY(take_pair(a, "--dropout takes off or NODE=P, not", text, &r.pattern, &p, d));
	r.pattern = arena_strndup(a, text, (size_t)(p - 1 - text)); /* with its backslashes */
	r.ratio = strtod(p, &end);
	if (*end || !(r.ratio >= 0 && r.ratio < 1))
		return usage_fail(d, "--dropout NODE=P wants a P from 0 to below 1, not", p);
	c->ratio = longer(a, c->ratio, c->nratio++, sizeof r, &r);
	return r.pattern && c->ratio ? ST_OK : diag_nomem(d);
}

static enum status take_loss(struct arena *a, const char *text, struct options *o, struct diag *d)
{
	const char *with;
	TRY(loss_files_read(a, text, &with, d));
	return take_listed(a, with, &o->compile.loss, d);
}

/* --- The table --- */

/* clang-format off */
#define AT(field) offsetof(struct options, field)
#define FLAG(name, field, commands, help) {name, 0, OPTION_FLAG, AT(field), commands, NULL, help, {0}, NULL, true}
#define VALUE(name, type, field, commands, arg, help) {name, 0, type, AT(field), commands, arg, help, {0}, NULL, (type) == OPTION_LIST}
#define WORD(name, field, commands, arg, help, ...) {name, 0, OPTION_WORD, AT(field), commands, arg, help, {__VA_ARGS__}, NULL, false}
#define SPECIAL(name, take, arg, help) {name, 0, OPTION_SPECIAL, 0, COMMAND_ALL, arg, help, {0}, take, false}
#define REPEATED(name, take, arg, help) {name, 0, OPTION_SPECIAL, 0, COMMAND_ALL, arg, help, {0}, take, true}
#define OUTPUT(commands, help) {"output", 'o', OPTION_TEXT, AT(out), commands, "PATH", help, {0}, NULL, false}

static const struct option table[] = {
	REPEATED("loss", take_loss, "LOSS",
		"cross-entropy, mse, l1, bce-with-logits, ..., output:NAME, none; of several the "
		"sum, each [WEIGHT*]LOSS:output=O,name=NAME,target=T"),
	VALUE("optimizer", OPTION_TEXT, compile.optimizer, COMMAND_ALL, "OPT",
		"sgd, adam, adamw, rmsprop, ..., with options: sgd:lr=0.1,momentum=0.9; none leaves "
		"the gradients"),
	VALUE("input-gradient", OPTION_LIST, compile.input_gradient, COMMAND_ALL, "NAME",
		"the loss's gradient by an input stays readable after a step"),
	SPECIAL("batch", take_batch, "N|auto",
		"size of the inputs' first axis; auto: the largest within --budget"),
	SPECIAL("micro-batch", take_micro_batch, "N|auto",
		"a step takes the batch in parts of N and updates once; auto: the fastest that fits"),
	VALUE("ranks", OPTION_SIZE, compile.ranks, COMMAND_ALL, "N",
		"for N processes, no more and no fewer, that share the optimizer's states"),
	SPECIAL("shard", take_share, "WHAT",
		"what they share: state (default), none, or parameters[:SIZE]: those of SIZE (16KiB) or "
		"more, too"),
	SPECIAL("split", take_split, "N[:NODE]|auto",
		"the first layers, up to NODE, run in N slices of the batch; auto: the fastest"),
	REPEATED("dim", take_dim, "NAME=N[,N...]",
		"size of a symbolic dimension, or of an axis: x:2=N; several: a step for each, in one arena"),
	VALUE("budget", OPTION_BUDGET, compile.budget, COMMAND_ALL, "SIZE",
		"2GiB, 1500000, 70%, min; default: keep everything"),
	WORD("target", compile.target, COMMAND_ALL, "T", "c, or cuda: for NVIDIA's GPUs", "c", "cuda"),
	VALUE("arch", OPTION_TEXT, gpu, COMMAND_ALL, "N",
		"the GPU that --target cuda plans for: 80, 86, 89, 90 (default), 100, 120"),
	OUTPUT(COMMAND_COMPILE | COMMAND_SHOW, "directory to write"),
	OUTPUT(COMMAND_PLAN, "write the plan here"),
	OUTPUT(COMMAND_FRONTIER, "write the points as JSON"),
	FLAG("keep-all", compile.keep_all, COMMAND_ALL, "recompute nothing"),
	VALUE("segments", OPTION_COUNT, compile.segments, COMMAND_ALL, "K",
		"K equal checkpoint segments"),
	WORD("math", compile.math, COMMAND_ALL, "M", "fixed, free or strict", "fixed", "strict", "free"),
	WORD("precision", compile.precision, COMMAND_ALL, "P",
		"fp32, bf16, fp16; fp64 with --portable, tf32 with --target cuda",
		"fp32", "tf32", "bf16", "fp16", "fp64"),
	WORD("frozen-precision", compile.frozen_precision, COMMAND_ALL, "P",
		"weights of products that are not trained are stored in fp32, bf16, fp16, int8, nf4; or "
		"nf4-double, whose scales take 8 bits",
		"fp32", "bf16", "fp16", "int8", "nf4", "nf4-double"),
	WORD("state-precision", compile.state_precision, COMMAND_ALL, "P",
		"optimizer states of a parameter's size are stored in fp32, or bf16, rounded by chance",
		"fp32", "bf16"),
	SPECIAL("offload", offload_take, "host|disk:FOLDER",
		"host[:SIZE]: saved activations may wait in the host's memory (of SIZE or more: 1MiB); "
		"disk:FOLDER[:RATE[:SIZE]]: weights and states lie in a file there, of RATE bytes a second"),
	FLAG("portable", compile.portable, COMMAND_ALL, "plain C only: libc and libm"),
	FLAG("bare", compile.bare, COMMAND_ALL,
		"for a microcontroller: weights as C, the caller's memory; --portable, one thread"),
	VALUE("isa", OPTION_TEXT, compile.isa, COMMAND_ALL, "NAME",
		"compile for this -march instead of this machine's"),
	VALUE("cross", OPTION_TEXT, compile.cross, COMMAND_ALL, "PREFIX",
		"for another machine, by PREFIX-gcc: aarch64-linux-gnu; plain C, as --portable"),
	VALUE("threads", OPTION_COUNT, compile.threads, COMMAND_ALL, "N",
		"threads of the step (default: one per processor)"),
	REPEATED("dropout", take_dropout, "off|NODE=P",
		"off: no dropout in training; NODE=P: with probability P there"),
	WORD("bn", compile.bn, COMMAND_ALL, "MODE",
		"batch-norm in training: train, frozen, or sync: over all ranks' micro-batches",
		"train", "frozen", "sync"),
	WORD("bn-variance", compile.bn_variance, COMMAND_ALL, "KIND",
		"running variances: unbiased (as PyTorch's) or population", "unbiased", "population"),
	VALUE("train", OPTION_LIST, compile.import.train_pattern, COMMAND_ALL, "PATTERN",
		"train only parameters matching"),
	VALUE("freeze", OPTION_LIST, compile.import.freeze_pattern, COMMAND_ALL, "PATTERN",
		"do not train parameters matching (their batch norms: --bn frozen)"),
	VALUE("lora", OPTION_LIST, compile.lora, COMMAND_ALL, "r=8,alpha=16[:PATTERN]",
		"train small adapters beside weights matching, and nothing else but --train's"),
	VALUE("adapter", OPTION_TEXT, compile.adapter, COMMAND_ALL, "FOLDER",
		"go on from the adapters in a folder of PEFT's form, as `export --adapter` writes"),
	REPEATED("tie", take_tie, "NAME=COPY", "one parameter: COPY is NAME, or NAME transposed"),
	VALUE("untie", OPTION_LIST, compile.import.untie_pattern, COMMAND_ALL, "PATTERN",
		"separate parameters for each layer that reads a matching one"),
	VALUE("stop-gradient", OPTION_LIST, compile.import.stop_pattern, COMMAND_ALL, "NODE",
		"no gradient passes the outputs of nodes matching"),
	REPEATED("fix", take_fix, "NAME=NUMBERS", "an input that is the same in every step"),
	REPEATED("padding-idx", take_padding, "NAME=N",
		"row N of an embedding gets no gradient from lookups"),
	SPECIAL("replace-head", take_head, "N[:keep]",
		"a last layer of N outputs, new (or with the old ones' weights first)"),
	FLAG("qat", compile.import.qat, COMMAND_ALL,
		"train through QuantizeLinear and DequantizeLinear: the gradient goes straight through"),
	FLAG("restore-biases", compile.import.restore_biases, COMMAND_ALL,
		"train the biases of zeros that an exporter took away"),
	VALUE("ops", OPTION_LIST, compile.ops, COMMAND_ALL, "FILE.so",
		"operators of your own, from a shared object"),
	VALUE("group", OPTION_LIST, compile.group, COMMAND_ALL, "PATTERN:OPTIONS",
		"options of the optimizer for parameters matching: '*.bias:lr=2x,weight_decay=0'"),
	FLAG("no-decay-1d", compile.no_decay_1d, COMMAND_ALL,
		"no weight decay for parameters of at most one axis: norms and biases"),
	VALUE("clip-value", OPTION_REAL, compile.clip_value, COMMAND_ALL, "V",
		"clip each gradient to [-V, V], before --clip-norm"),
	VALUE("clip-norm", OPTION_REAL, compile.clip_norm, COMMAND_ALL, "X",
		"clip the gradients' global norm"),
	VALUE("ema", OPTION_REAL, compile.ema, COMMAND_ALL, "DECAY",
		"keep an average of each parameter over the steps: 0.999"),
	VALUE("time", OPTION_REAL, compile.seconds, COMMAND_ALL, "SECONDS",
		"let the planner search this long (plans may then differ)"),
	VALUE("effort", OPTION_REAL, compile.effort, COMMAND_ALL, "X",
		"search this many times as long as usual (default 1)"),
	VALUE("gap", OPTION_REAL, compile.gap, COMMAND_ALL, "SHARE",
		"a plan that is proven to cost at most so much more than any other will do (default "
		"0.001; with more --effort 0)"),
	VALUE("unroll", OPTION_SIZE, compile.unroll, COMMAND_ALL, "N",
		"loops of more than N (15) turns stay loops, where they can; others become their turns"),
	VALUE("no-recompute", OPTION_LIST, compile.insist.once, COMMAND_ALL, "PATTERN",
		"run nodes once that match by name or operator"),
	VALUE("recompute", OPTION_LIST, compile.insist.again, COMMAND_ALL, "PATTERN",
		"keep nothing of matching nodes for the backward pass"),
	VALUE("costs", OPTION_TEXT, compile.costs, COMMAND_ALL, "FILE",
		"plan with the measured times in a stint-costs-1 file"),
	WORD("fuse", compile.fuse, COMMAND_ALL, "MODE", "pointwise nodes in one loop: on, or off to see each",
		"on", "off"),
	FLAG("no-outputs", compile.no_outputs, COMMAND_ALL,
		"evaluation computes the loss alone, not the model's outputs"),
	FLAG("debug-arena", compile.debug_arena, COMMAND_ALL, "poison dead ranges of the arena"),
	FLAG("link-weights", compile.link_weights, COMMAND_COMPILE | PROGRAM,
		"frozen weights stay in the model's external data, which DIR then needs"),
	FLAG("no-build", no_build, COMMAND_ALL, "do not run the C compiler"),
	FLAG("no-cache", compile.no_cache, COMMAND_COMPILE | PROGRAM,
		"compile all kernels, and keep none of them"),
	FLAG("force", force, COMMAND_COMPILE | PROGRAM, "write into a folder that stint did not make"),
	VALUE("graph", OPTION_TEXT, compile.graph, COMMAND_LINE, "FILE",
		"plan a stint-graph-1 file instead of a model"),
	VALUE("dump-graph", OPTION_TEXT, dump_graph, COMMAND_LINE, "FILE",
		"write the problem as stint-graph-1"),
	WORD("dump-after", dump_after, COMMAND_LINE, "STAGE",
		"print the graph after import, lower, loss, autodiff, updates, layout, narrow or fuse",
		"import", "lower", "loss", "autodiff", "updates", "layout", "narrow", "fuse"),
	FLAG("compare", compare, COMMAND_PLAN,
		"beside the plan what keep-everything and checkpointing by segments need"),
	VALUE("link", OPTION_TEXT, link, COMMAND_PLAN | COMMAND_COMPILE | PROGRAM, "SPEED,LATENCY",
		"between ranks, which --shard parameters reckons with: 25GB/s,2us; `plan` prints what "
		"a step takes that 1, 2, 4 to --ranks processes share"),
	VALUE("points", OPTION_COUNT, points, COMMAND_FRONTIER | PROGRAM, "N", "how many budgets"),
	VALUE("svg", OPTION_TEXT, svg, COMMAND_FRONTIER, "FILE", "draw cost against budget"),
	VALUE("html", OPTION_TEXT, html, COMMAND_SHOW, "FILE",
		"for show: write a plan as a page to look at"),
	VALUE("trace", OPTION_TEXT, trace, COMMAND_SHOW, "FILE",
		"for show: write a plan as a Chrome trace, for Perfetto"),
	VALUE("onnx", OPTION_TEXT, onnx, COMMAND_SHOW, "FILE",
		"for show: the model again, saying of each node what happens to it"),
	FLAG("steps", steps, COMMAND_SHOW, "every step, however many"),
	FLAG("json", json, COMMAND_LINE, "print JSON for programs"),
	{"help", 'h', OPTION_FLAG, AT(help), COMMAND_LINE, NULL, "show this", {0}, NULL, true},
};
#undef AT
#undef FLAG
#undef VALUE
#undef WORD
#undef SPECIAL
#undef REPEATED
#undef OUTPUT
/* clang-format on */
enum { OPTIONS = sizeof table / sizeof *table };
_Static_assert((int)OPTIONS <= (int)OPTIONS_MAX, "struct options has a place for each");

const struct option *option_at(int i)
{
	return i < OPTIONS ? &table[i] : NULL;
}

int option_find(enum command_kind kind, const char *name)
{
	for (int i = 0; i < OPTIONS; i++)
		if (table[i].commands & kind && !strcmp(table[i].name, name))
			return i;
	return -1;
}

bool options_given(const struct options *o, const char *name)
{
	for (int i = 0; i < OPTIONS; i++)
		if (!strcmp(table[i].name, name) && o->given[i])
			return true;
	return false;
}

const char *options_but(const struct options *o, const char *const *names)
{
	for (int i = 0; i < OPTIONS; i++) {
		int k = 0;
		while (names[k] && strcmp(names[k], table[i].name) != 0)
			k++;
		if (o->given[i] && !names[k])
			return table[i].name;
	}
	return NULL;
}

void options_begin(struct options *o)
{
	*o = (struct options){.compile = {.effort = 1,
				      .threads = OPTION_NOT_GIVEN,
				      .budget = {BUDGET_NONE, INT64_MAX, 0}},
		.dump_after = STAGE_NONE};
}

void options_replaceable(struct options *o)
{
	memset(o->replaceable, true, sizeof o->replaceable);
}

enum status options_set(
	struct arena *a, struct options *o, int option, const char *text, struct diag *d)
{
	const struct option *c = &table[option];
	void *at = (char *)o + c->at;
	if (o->given[option] && !c->repeats && !o->replaceable[option])
		return once_fail("--", c->name, o->given[option], text, d);
	if (c->take == take_loss && o->replaceable[option])
		o->compile.loss = NULL; /* a file's losses are others, not more of them */
	o->given[option] = text;
	o->replaceable[option] = false;
	switch (c->type) {
	case OPTION_FLAG:
		*(int *)at = 1;
		return ST_OK;
	case OPTION_COUNT:
		return take_count(c->name, text, at, d);
	case OPTION_REAL:
		return take_real(c->name, text, at, d);
	case OPTION_LIST:
		return take_listed(a, text, at, d);
	case OPTION_SIZE:
		return take_size(c->name, text, at, d);
	case OPTION_BUDGET:
		return plan_budget_parse(text, at, d);
	case OPTION_WORD:
		return take_word(c, text, at, d);
	case OPTION_SPECIAL:
		return c->take(a, text, o, d);
	default:
		*(const char **)at = text;
		return ST_OK;
	}
}

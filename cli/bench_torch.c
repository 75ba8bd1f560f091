/* stint bench --against torch: the same model's step in PyTorch, in turn with ours. A Python that
 * has torch and onnx runs a script of ours (torch_step.py, torch_model.py), spoken to over two
 * pipes. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/links.h"
#include "api/safe_put.h"
#include "base/safe.h"
#include "cli/bench.h"
#include "cli/busy.h"
#include "cli/torch_files.h"
#include "runtime/safetensors.h"

extern char **environ;

struct other {
	pid_t pid;
	FILE *to, *from;
	const char *python;
	char line[512]; /* its last words */
	/* what it says */
	double loss, us;
	long long numbers, bytes;
	int random;
	char version[64];
};

struct race {
	double *ours_us, *theirs_us, *ratio; /* [steps] */
	double ours_ms, theirs_ms, middle, low, high;
	double loss;
};

/* --- What is to be run, as a line of JSON --- */

static bool clips(const struct stint_model *m)
{
	for (int i = 0; i < m->ntrain_steps; i++)
		if (strstr(m->train_info[i].op, "ClipScale"))
			return true;
	return false;
}

/* "AdamW" from "stint.AdamWUpdate", which updates what has a gradient. */
static const char *optimizer_name(struct arena *a, const struct stint_model *m)
{
	for (int i = m->ntrain_steps - 1; i >= 0; i--) {
		const char *op = m->train_info[i].op;
		const size_t n = strlen(op);
		if (strncmp(op, "stint.", 6) == 0 && n > 12 && strcmp(op + n - 6, "Update") == 0 &&
			!strstr(op, "Norm"))
			return arena_strndup(a, op + 6, n - 12);
	}
	return "none";
}

static void add_resident(struct text *t, const struct stint_tensor *x, const char *comma)
{
	text_add(t, "%s{\"name\":", comma);
	text_json_shown(t, x->name);
	text_add(t, ",\"dtype\":\"%s\",\"bytes\":%zu,\"dim\":[", safetensors_type(x->dtype),
		x->bytes);
	for (int i = 0; i < x->rank; i++)
		text_add(t, "%s%lld", i ? "," : "", (long long)x->dim[i]);
	text_puts(t, "]}");
}

static void add_word(struct text *t, const char *key, const char *value)
{
	text_add(t, ",\"%s\":", key);
	if (value)
		text_json_shown(t, value);
	else
		text_puts(t, "null");
}

static void request(struct text *t, const struct bench *b, const char *variant)
{
	const struct stint_model *m = b->l.model;
	int states = 0;
	const char *comma = "";
	text_add(t, "{\"threads\":%d,\"real\":\"%s\"", m->threads,
		m->loss_dtype == STINT_F64 ? "f64" : "f32");
	add_word(t, "variant", variant);
	add_word(t, "model", arena_printf(b->arena, "%s/model.onnx", b->dir));
	add_word(t, "loss", m->loss->kind);
	add_word(t, "options", m->loss->text);
	add_word(t, "optimizer", optimizer_name(b->arena, m));
	add_word(t, "target", m->loss->target >= 0 ? m->resident[m->loss->target].name : NULL);
	text_puts(t, ",\"inputs\":[");
	for (int i = 0; i < m->nresident; i++) {
		states += m->resident[i].kind == STINT_STATE &&
			  strncmp(m->resident[i].name, "state/ema/", 10) != 0;
		if (m->resident[i].kind != STINT_INPUT)
			continue;
		add_resident(t, &m->resident[i], comma);
		comma = ",";
	}
	text_puts(t, "],\"trainable\":[");
	comma = "";
	for (int i = 0; i < m->nresident; i++)
		if (m->resident[i].kind == STINT_PARAMETER && m->resident[i].trainable) {
			text_puts(t, comma);
			text_json_shown(t, m->resident[i].name);
			comma = ",";
		}
	text_add(t, "],\"states\":%d,\"clip\":%s}\n", states, clips(m) ? "true" : "false");
}

/* --- The other process --- */

static enum status no_torch(const struct other *o, struct diag *d)
{
	const char *why = strncmp(o->line, "error ", 6) == 0 ? o->line + 6
							     : "it ended without a word";
	return diag_fail(d, ST_USAGE, &(struct where){.file = o->python},
		"STINT_PYTHON names a Python that has torch and onnx", "no comparison: %s", why);
}

/* The next line that starts with `word`. */
static enum status hear(struct other *o, const char *word, struct diag *d)
{
	const size_t n = strlen(word);
	o->line[0] = 0;
	while (fgets(o->line, sizeof o->line, o->from)) {
		o->line[strcspn(o->line, "\n")] = 0;
		if (strncmp(o->line, word, n) == 0 && o->line[n] == ' ')
			return ST_OK;
		if (strncmp(o->line, "error ", 6) == 0)
			break;
	}
	return no_torch(o, d);
}

static char *script(struct arena *a)
{
	struct text t = {0};
	for (const struct embedded_file *f = torch_files(); f->name; f++)
		text_write(&t, f->text, f->len);
	char *s = t.failed ? NULL : arena_strdup(a, t.s);
	text_free(&t);
	return s;
}

static enum status start(struct arena *a, struct other *o, struct diag *d)
{
	char *text = script(a);
	int to[2], from[2];
	if (!text)
		return diag_nomem(d);
	o->python = getenv("STINT_PYTHON");
	if (!o->python || !*o->python)
		o->python = "python3";
	char *name = arena_strdup(a, o->python);
	if (!name)
		return diag_nomem(d);
	if (pipe(to) != 0)
		return diag_fail(d, ST_IO, NULL, NULL, "no pipe: %s", strerror(errno));
	if (pipe(from) != 0) {
		close(to[0]), close(to[1]);
		return diag_fail(d, ST_IO, NULL, NULL, "no pipe: %s", strerror(errno));
	}
	char option[] = "-c";
	char *argv[] = {name, option, text, NULL};
	posix_spawn_file_actions_t act;
	posix_spawn_file_actions_init(&act);
	posix_spawn_file_actions_adddup2(&act, to[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&act, from[1], STDOUT_FILENO);
	for (int i = 0; i < 2; i++) {
		posix_spawn_file_actions_addclose(&act, to[i]);
		posix_spawn_file_actions_addclose(&act, from[i]);
	}
	int rc = posix_spawnp(&o->pid, name, &act, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&act);
	close(to[0]);
	close(from[1]);
	o->to = fdopen(to[1], "w");
	o->from = fdopen(from[0], "r");
	if (rc == 0 && o->to && o->from)
		return ST_OK;
	if (rc != 0)
		o->pid = 0;
	return diag_fail(d, ST_USAGE, &(struct where){.file = o->python},
		"STINT_PYTHON names a Python that has torch and onnx", "cannot be started: %s",
		strerror(rc ? rc : ENOMEM));
}

static void stop(struct other *o)
{
	if (o->to)
		fclose(o->to);
	if (o->from)
		fclose(o->from);
	if (o->pid > 0)
		waitpid(o->pid, NULL, 0);
}

static enum status prepare(
	const struct bench *b, const char *variant, struct other *o, struct diag *d)
{
	const struct stint_model *m = b->l.model;
	struct text t = {0};
	request(&t, b, variant);
	if (t.failed) {
		text_free(&t);
		return diag_nomem(d);
	}
	fwrite(t.s, 1, t.len, o->to);
	text_free(&t);
	for (int i = 0; i < m->nresident; i++)
		if (m->resident[i].kind == STINT_INPUT)
			fwrite(load_at(&b->l, i), 1, m->resident[i].bytes, o->to);
	fflush(o->to); /* where it has gone, it said why */
	TRY(hear(o, "ready", d));
	if (sscanf(o->line, "ready %lf %lld %d %63s", &o->loss, &o->numbers, &o->random,
		    o->version) != 4)
		return no_torch(o, d);
	return ST_OK;
}

static enum status their_step(struct other *o, double *us, struct diag *d)
{
	fputs("step\n", o->to);
	fflush(o->to);
	TRY(hear(o, "step", d));
	if (sscanf(o->line, "step %lf %lf %lld", us, &o->loss, &o->bytes) != 3)
		return no_torch(o, d);
	return ST_OK;
}

/* --- The race --- */

static int rising(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

static enum status run(struct bench *b, struct other *o, int steps, struct race *r, struct diag *d)
{
	r->ours_us = ARENA_ARRAY(b->arena, double, steps);
	r->theirs_us = ARENA_ARRAY(b->arena, double, steps);
	r->ratio = ARENA_ARRAY(b->arena, double, steps);
	if (!r->ours_us || !r->theirs_us || !r->ratio)
		return diag_nomem(d);
	for (int i = -1; i < steps; i++) { /* the first warms up */
		TRY(timing_step(&b->l, &r->ours_us[i < 0 ? 0 : i], d));
		TRY(their_step(o, &r->theirs_us[i < 0 ? 0 : i], d));
	}
	r->loss = b->l.loss(b->l.step);
	for (int i = 0; i < steps; i++)
		r->ratio[i] = r->theirs_us[i] / fmax(r->ours_us[i], 1e-3);
	qsort(r->ratio, (size_t)steps, sizeof *r->ratio, rising);
	r->low = r->ratio[steps / 4];
	r->high = r->ratio[steps - 1 - steps / 4];
	r->middle = costs_median(r->ratio, steps);
	r->ours_ms = costs_median(r->ours_us, steps) / 1e3;
	r->theirs_ms = costs_median(r->theirs_us, steps) / 1e3;
	return ST_OK;
}

static long long trainable(const struct stint_model *m)
{
	long long n = 0;
	for (int i = 0; i < m->nresident; i++) {
		const struct stint_tensor *x = &m->resident[i];
		if (x->kind == STINT_PARAMETER && x->trainable)
			n += (long long)(x->bytes / (x->dtype == STINT_F64 ? 8 : 4));
	}
	return n;
}

/* The two did the same work: the same loss of the same data, unless something is random; as many
 * numbers trained. */
static void compare_work(
	const struct bench *b, const struct other *o, const struct race *r, struct diag *d)
{
	const struct stint_model *m = b->l.model;
	if (!o->random && !(fabs(r->loss - o->loss) <= 1e-3 * fmax(1e-3, fabs(r->loss))))
		diag_warn(d, NULL, NULL, "the losses differ: %.6g here, %.6g in PyTorch", r->loss,
			o->loss);
	if (trainable(m) != o->numbers)
		diag_warn(d, NULL, NULL, "%lld numbers are trained here, %lld in PyTorch",
			trainable(m), o->numbers);
}

static void print_json(const struct bench *b, const struct other *o, const struct race *r,
	int steps, const char *variant)
{
	printf("{\"against\":\"%s\",\"torch\":\"%s\",\"steps\":%d,\"threads\":%d,\"step_ms\":%.6g,"
	       "\"torch_ms\":%.6g,\"ratio\":%.6g,\"ratio_low\":%.6g,\"ratio_high\":%.6g,"
	       "\"arena_bytes\":%zu,\"torch_bytes\":%lld",
		variant, o->version, steps, b->l.model->threads, r->ours_ms, r->theirs_ms,
		r->middle, r->low, r->high, b->l.model->arena_bytes, o->bytes);
	if (isfinite(r->loss) && isfinite(o->loss))
		printf(",\"loss\":%.9g,\"torch_loss\":%.9g", r->loss, o->loss);
	busy_json(b->others);
	printf("}\n");
}

static void print_words(const struct bench *b, const struct other *o, const struct race *r,
	int steps, const char *variant)
{
	const struct stint_model *m = b->l.model;
	char x[24], y[24], busy[160];
	printf("%s: %.4g ms a step; PyTorch %s (%s): %.4g ms; %d thread%s\n", m->name, r->ours_ms,
		o->version, variant[5] ? variant + 6 : "eager", r->theirs_ms, m->threads,
		m->threads == 1 ? "" : "s");
	printf("PyTorch takes %.3f times as long (half of %d rounds: %.3f to %.3f)\n", r->middle,
		steps, r->low, r->high);
	printf("memory: arena %s; PyTorch's peak %s, besides what it takes to load\n",
		bytes_human((int64_t)m->arena_bytes, x), bytes_human(o->bytes, y));
	printf("loss: %.6g; PyTorch: %.6g\n", r->loss, o->loss);
	if (*busy_words(b->others, busy))
		printf("%s\n", busy);
}

enum status bench_torch(struct bench *b, const char *variant, int steps, bool json, struct diag *d)
{
	struct other o = {0};
	struct race r = {0};
	TRY(bench_open(b, d));
	if (load_on_gpu(&b->l))
		return diag_fail(d, ST_USAGE, &(struct where){.file = b->dir},
			"tests/gpu/run.sh compares", "a GPU's step beside PyTorch's: not yet");
	if (!b->l.model->train)
		return diag_fail(d, ST_USAGE, &(struct where){.file = b->dir}, NULL,
			"was compiled with --loss none: it has no training step to compare");
	if (b->l.model->nloss != 1 || b->l.model->loss->weight != 1)
		return diag_fail(d, ST_USAGE, &(struct where){.file = b->dir},
			"compile with one loss, without a weight",
			"several losses, or one with a weight, beside PyTorch's: not yet");
	const char *weights = arena_printf(b->arena, "%s/weights.safetensors", b->dir);
	if (!weights)
		return diag_nomem(d);
	if (links_any(weights))
		return diag_fail(d, ST_USAGE, &(struct where){.file = b->dir},
			"compile without --link-weights",
			"its weights lie elsewhere (--link-weights), where PyTorch does not look");
	/* where the other one has ended, writing fails and says so */
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);
	struct busy busy;
	busy_begin(&busy);
	enum status st = start(b->arena, &o, d);
	if (st == ST_OK)
		st = prepare(b, variant, &o, d);
	if (st == ST_OK)
		st = run(b, &o, steps, &r, d);
	stop(&o); /* what it took is known then */
	b->others = busy_others(&busy);
	signal(SIGPIPE, before);
	TRY(st);
	compare_work(b, &o, &r, d);
	(json ? print_json : print_words)(b, &o, &r, steps, variant);
	return ST_OK;
}

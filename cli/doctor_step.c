/* `stint doctor`: a tiny step, compiled and held against another one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/output.h"
#include "cli/doctor.h"
#include "cli/doctor_files.h"
#include "cli/interrupt.h"

/* --- Words of others --- */

static void hear(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct doctor_words *words = user;
	const char *node = w && w->node ? w->node : "";
	if (words->told || level == DIAG_WARNING)
		return;
	if (level == DIAG_NOTE) { /* a compiler's words, a line each */
		const size_t room = sizeof words->notes - words->used;
		const int n = snprintf(words->notes + words->used, room, "\n%s", message);
		words->used += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
		return;
	}
	snprintf(words->text, sizeof words->text, "%.200s%s%.800s%s", node, *node ? ": " : "",
		message, words->notes);
	snprintf(words->hint, sizeof words->hint, "%s", hint ? hint : "");
	words->told = true;
}

struct diag doctor_hear(struct doctor_words *w)
{
	*w = (struct doctor_words){0};
	return (struct diag){.put = hear, .user = w};
}

/* --- Compiling --- */

static const char *model_file(struct doctor *x)
{
	const struct embedded_file *f = doctor_files();
	const char *path = arena_printf(x->arena, "%s/%s", x->work, f->name);
	FILE *out = path ? fopen(path, "wb") : NULL;
	if (!out)
		return NULL;
	const bool written = fwrite(f->text, 1, f->len, out) == f->len;
	return fclose(out) == 0 && written ? path : NULL;
}

static enum status set(struct pipeline *p, struct options *o, const char *name, const char *value)
{
	const int i = option_find(COMMAND_COMPILE, name);
	char *text = arena_strdup(p->arena, value);
	return text ? options_set(p->arena, o, i, text, p->diag) : diag_nomem(p->diag);
}

static enum status compile(struct pipeline *p, struct options *o, const struct doctor_step *s)
{
	const struct {
		const char *name, *value;
	} list[] = {{"loss", "cross-entropy"}, {"optimizer", "sgd:lr=0.1"},
		{"batch", s->batch ? s->batch : "8"}, {"target", s->target},
		{"precision", s->precision}};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		TRY(set(p, o, list[i].name, list[i].value));
	if (s->portable)
		TRY(set(p, o, "portable", ""));
	TRY(options_check(o, p->diag));
	TRY(pipeline_run(p));
	return output_write(p, s->dir, true, true);
}

static bool asked(void *user)
{
	(void)user;
	return interrupt_asked();
}

bool doctor_compile(struct doctor *x, struct doctor_step *s)
{
	struct doctor_words words;
	struct diag d = doctor_hear(&words);
	struct onlooker onlooker = {.stop = asked};
	struct options o;
	struct pipeline p = {.arena = arena_new(), .diag = &d, .o = &o.compile};
	const double from = doctor_ms();
	options_begin(&o);
	o.compile.onlooker = &onlooker;
	o.compile.model = model_file(x);
	s->dir = arena_printf(x->arena, "%s/%s-%s%s%s", x->work, s->target, s->precision,
		s->portable ? "-portable" : "", s->batch ? s->batch : "");
	enum status st = ST_INTERNAL;
	if (p.arena && s->dir && o.compile.model)
		st = compile(&p, &o, s);
	else
		snprintf(words.text, sizeof words.text,
			"the temporary folder cannot be written, or there is no memory");
	arena_free(p.arena);
	const char *hint = strstr(words.text, "dnnl")
				   ? "install oneDNN's headers (libdnnl-dev), or pass --portable"
			   : words.hint[0] ? words.hint
					   : NULL;
	if (st == ST_OK)
		doctor_say(x, FINDING_OK, NULL, "%s: compiled in %.1f s", s->name,
			(doctor_ms() - from) / 1e3);
	else
		doctor_say(x, FINDING_WRONG, hint, "%s: not compiled: %s", s->name, words.text);
	return st == ST_OK;
}

/* --- Training --- */

struct gradient {
	const char *name;
	float *x; /* malloc'ed */
	size_t n;
};

struct gradients {
	const struct stint_model *model;
	struct gradient *list; /* [n], room for each resident */
	int n;
	bool lost;
};

static void keep(void *user, int parameter, const void *data, size_t bytes)
{
	struct gradients *g = user;
	float *x = data ? malloc(bytes + 1) : NULL;
	if (!x) {
		g->lost = true;
		return;
	}
	memcpy(x, data, bytes);
	g->list[g->n++] = (struct gradient){
		g->model->resident[parameter].name, x, bytes / sizeof *x};
}

static void drop(struct gradients *g)
{
	for (int i = 0; i < g->n; i++)
		free(g->list[i].x);
	free(g->list);
}

static enum status train(struct bench *b, struct gradients *g, struct diag *d)
{
	const struct loaded *l = &b->l;
	*g = (struct gradients){.model = l->model};
	g->list = calloc((size_t)l->model->nresident + 1, sizeof *g->list);
	if (!g->list)
		return diag_nomem(d);
	const struct stint_probe probe = {.user = g, .gradient = keep};
	const int rc = l->train(l->step, 0.1, &probe);
	if (rc)
		return load_fail(l, rc, "train", d);
	return g->lost ? diag_nomem(d) : ST_OK;
}

/* How far apart two vectors are, of the second one's length; NaN where they are not alike. */
static double apart(const struct gradient *a, const struct gradient *b)
{
	double difference = 0, length = 0;
	if (!b || a->n != b->n)
		return NAN;
	for (size_t i = 0; i < a->n; i++) {
		const double x = (double)a->x[i] - (double)b->x[i];
		difference += x * x;
		length += (double)b->x[i] * (double)b->x[i];
	}
	return length > 0 ? sqrt(difference / length) : difference > 0 ? INFINITY : 0;
}

static const struct gradient *find(const struct gradients *g, const char *name)
{
	for (int i = 0; i < g->n; i++)
		if (!strcmp(g->list[i].name, name))
			return &g->list[i];
	return NULL;
}

static void judge(struct doctor *x, const struct doctor_step *s, const struct gradients *ours,
	const struct gradients *theirs, const double loss[2], const char *than, double most)
{
	double worst = 0;
	const char *name = "";
	if (!than) {
		x->steps++;
		doctor_say(x, FINDING_OK, NULL, "%s: trained: loss %.7g", s->name, loss[0]);
		return;
	}
	for (int i = 0; i < ours->n; i++) {
		const double far = apart(&ours->list[i], find(theirs, ours->list[i].name));
		if (!(far <= worst)) {
			worst = far;
			name = ours->list[i].name;
		}
		if (isnan(far))
			break;
	}
	const bool alike = ours->n > 0 && ours->n == theirs->n && worst <= most &&
			   fabs(loss[0] - loss[1]) <= most * fabs(loss[1]);
	x->steps += alike;
	doctor_say(x, alike ? FINDING_OK : FINDING_WRONG,
		alike ? NULL : "please report it, with all of this text",
		"%s: trained: loss %.7g, the %s's %.7g; gradients %.2g apart at most (%s), of %.0g "
		"allowed",
		s->name, loss[0], than, loss[1], worst, name, most);
}

void doctor_compare(struct doctor *x, const struct doctor_step *s, struct bench *b,
	const struct doctor_step *reference, double most)
{
	struct doctor_words words;
	struct diag d = doctor_hear(&words);
	struct bench other = {.arena = x->arena, .dir = reference ? reference->dir : NULL};
	struct gradients ours = {0}, theirs = {0};
	double loss[2] = {0, 0};
	enum status st = b->l.step ? ST_OK : bench_open(b, &d);
	if (st == ST_OK)
		st = train(b, &ours, &d);
	if (st == ST_OK)
		loss[0] = b->l.loss(b->l.step);
	if (st == ST_OK && reference)
		st = bench_open(&other, &d);
	if (st == ST_OK && reference)
		st = train(&other, &theirs, &d);
	if (st == ST_OK && reference)
		loss[1] = other.l.loss(other.l.step);
	if (st == ST_OK)
		judge(x, s, &ours, &theirs, loss, reference ? reference->name : NULL, most);
	else
		doctor_say(x, FINDING_WRONG, words.hint[0] ? words.hint : NULL,
			"%s: not trained: %s", s->name, words.text);
	drop(&ours);
	drop(&theirs);
	load_close(&other.l);
}

/* Losses and optimizers as the command line writes them: "cross-entropy:label_smoothing=0.1",
 * "output:NAME", "sgd:lr=0.1,momentum=0.9". */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/marked.h"
#include "base/nearest.h"
#include "base/once.h"
#include "graph/pass.h"

enum { OPTIONS_MAX = 16 };

struct options {
	struct arena *arena;
	int n;
	struct attr attr[OPTIONS_MAX];
	const char *output, *name, *target, *against, *parameter; /* of a loss */
	double detach;                                            /* NAN: not said */
	bool several;                                             /* losses are given */
	bool group;  /* the learning rate is a multiple: */
	double rate; /* NAN: not said */
};

/* Into t, to be freed; NULL: nothing is meant. */
static const char *hint_of(struct text *t, const char *meant)
{
	if (meant)
		text_add(t, "did you mean %s?", meant);
	return t->s;
}

/* Behind an output's name: one with a mark in it. */
static const char *hint_of_names(const char *spec)
{
	size_t n;
	return marked_option(spec, "output", &n)
		       ? "a comma or colon of a name takes a backslash: output=a\\,b"
		       : NULL;
}

static enum status unknown_option(
	const struct op_def *op, const char *spec, const char *key, struct diag *d)
{
	struct text known = {0}, hint = {0};
	const char *meant = NULL;
	for (const struct op_option *o = op->option; o && o->name; o++) {
		text_add(&known, "%s%s", o == op->option ? "" : ", ", o->name);
		meant = nearest(key, meant, o->name);
	}
	const enum status st = diag_fail(d, ST_USAGE, NULL,
		meant ? hint_of(&hint, meant) : hint_of_names(spec),
		"'%s': unknown option '%s'; it takes %s", spec, key, known.s ? known.s : "none");
	text_free(&known);
	text_free(&hint);
	return st;
}

/* How many of an option's words are for the command line. */
static int words_offered(const struct op_option *o)
{
	int n = 1;
	for (const char *p = o->words; (p = strchr(p, ' ')); p++)
		n++;
	return o->high > 0 && o->high + 1 < n ? (int)o->high + 1 : n;
}

static enum status add_word(const struct op_option *o, const char *spec, const char *word,
	struct options *out, struct diag *d)
{
	const int n = words_offered(o), k = option_word(o, word);
	if (k >= 0 && k < n) {
		out->attr[out->n++] = (struct attr){
			.name = o->name, .kind = ATTR_STRING, .s = word};
		return ST_OK;
	}
	struct text known = {0};
	const char *p = o->words;
	for (int i = 0; i < n; i++, p += strcspn(p, " ") + 1)
		text_add(&known, "%s%.*s", i ? ", " : "", (int)strcspn(p, " "), p);
	enum status st = diag_fail(d, ST_USAGE, NULL, NULL, "'%s': %s is one of %s", spec, o->name,
		known.s ? known.s : "");
	text_free(&known);
	return st;
}

static enum status add_rate(
	const char *spec, const char *value, struct options *out, struct diag *d)
{
	char *end;
	out->rate = strtod(value, &end);
	if (end != value && !strcmp(end, "x") && out->rate >= 0 && isfinite(out->rate))
		return ST_OK;
	return diag_fail(d, ST_USAGE, NULL,
		"lr=0.1x is a tenth of the step's rate, which each step is told",
		"'%s': a group's lr is a multiple of the optimizer's, not %s", spec, value);
}

static enum status parse_number(
	const struct op_option *o, const char *spec, const char *value, double *v, struct diag *d)
{
	char *end;
	errno = 0;
	const bool yes = !strcmp(value, "true"), word = yes || !strcmp(value, "false");
	*v = word ? yes : strtod(value, &end);
	if (!word && (end == value || *end || errno || !isfinite(*v)))
		return diag_fail(d, ST_USAGE, NULL, NULL, "'%s': '%s' is no number", spec, value);
	if ((o->low != 0 || o->high != 0) && (*v < o->low || *v > o->high))
		return diag_fail(
			d, ST_USAGE, NULL, NULL, "'%s': %s cannot be %s", spec, o->name, value);
	return ST_OK;
}

/* "1;2;0.5", which is cut up. */
static enum status add_list(const struct op_option *o, const char *spec, char *value,
	struct options *out, struct diag *d)
{
	int n = 1;
	for (const char *p = value; (p = strchr(p, ';')); p++)
		n++;
	double *v = ARENA_ARRAY(out->arena, double, n);
	if (!v)
		return diag_nomem(d);
	for (int i = 0; i < n; i++) {
		char *next = strchr(value, ';');
		if (next)
			*next++ = '\0';
		TRY(parse_number(o, spec, value, &v[i], d));
		value = next;
	}
	out->attr[out->n++] = (struct attr){
		.name = o->name, .kind = ATTR_FLOATS, .n = n, .floats = v};
	return ST_OK;
}

/* What of a loss no record says: which outputs it reads (to be parted yet), what it is told by, and
 * what its target is called, or the output in its place. Of records that have an option of that
 * name it is only where there are several losses, and not one of the option's words. */
static bool take_name(
	const struct op_def *op, const char *key, const char *value, struct options *out)
{
	const struct op_option *o = op->option;
	if (!strcmp(key, "output"))
		out->output = value;
	else if (!strcmp(key, "name"))
		out->name = value;
	else if (!strcmp(key, "against"))
		out->against = value;
	else if (!strcmp(key, "parameter") && op->loss->parameters)
		out->parameter = value;
	else if (!strcmp(key, "target")) {
		while (o && o->name && strcmp(o->name, key) != 0)
			o++;
		if (o && o->name && (!out->several || option_word(o, value) >= 0))
			return false;
		out->target = value;
	} else {
		return false;
	}
	return true;
}

static enum status add_option(const struct op_def *op, const char *spec, char *key, char *value,
	struct options *out, struct diag *d)
{
	static const struct op_option detach = {.name = "detach", .high = 1};
	if (op->loss && take_name(op, key, value, out))
		return ST_OK;
	if (op->loss && !strcmp(key, detach.name))
		return parse_number(&detach, spec, value, &out->detach, d);
	if (out->group && !strcmp(key, "lr"))
		return add_rate(spec, value, out, d);
	const struct op_option *o = op->option;
	while (o && o->name && strcmp(o->name, key) != 0)
		o++;
	if (!o || !o->name)
		return unknown_option(op, spec, key, d);
	if (out->n == OPTIONS_MAX)
		return diag_fail(d, ST_USAGE, NULL, NULL, "'%s': too many options", spec);
	if (o->words)
		return add_word(o, spec, value, out, d);
	if (o->list)
		return add_list(o, spec, value, out, d);
	double v;
	TRY(parse_number(o, spec, value, &v, d));
	out->attr[out->n++] = ATTR_F(o->name, v);
	return ST_OK;
}

/* "a=1,b=2" (':' separates too), from `text`, which is cut up. */
static enum status parse_options(
	const struct op_def *op, const char *spec, char *text, struct options *out, struct diag *d)
{
	struct once given = {0};
	const char *what = arena_printf(out->arena, "'%s': ", spec);
	while (what && text && *text) {
		char *next = marked_option_end(text);
		if (next)
			*next++ = '\0';
		char *eq = strchr(text, '=');
		if (!eq)
			return diag_fail(d, ST_USAGE, NULL,
				hint_of_names(spec)
					? hint_of_names(spec)
					: "options are written key=value, separated by commas",
				"'%s': '%s' has no value", spec, text);
		*eq = '\0';
		TRY(once_add(&given, what, text, eq + 1, d));
		TRY(add_option(op, spec, text, eq + 1, out, d));
		text = next;
	}
	return what ? ST_OK : diag_nomem(d);
}

static enum status unknown_name(
	const struct op_table *t, bool loss, const char *name, struct diag *d)
{
	struct text known = {0}, hint = {0};
	const char *meant = NULL;
	for (int f = 0; f < t->nfamily; f++)
		for (const struct op_def *r = t->family[f]; r->name; r++) {
			const char *s = loss ? op_loss(r) : op_optimizer(r);
			if (!s)
				continue;
			text_add(&known, "%s%s", known.len ? ", " : "", s);
			meant = nearest(name, meant, s);
		}
	const enum status st = diag_fail(d, ST_USAGE, NULL, hint_of(&hint, meant),
		"unknown %s '%s'; known are %s%s", loss ? "loss" : "optimizer", name,
		known.s ? known.s : "none", loss ? ", output:NAME, none" : "");
	text_free(&known);
	text_free(&hint);
	return st;
}

/* "A;B;C", of a loss that reads several; "A,B,C", of the caller's; one name, which may have such
 * marks, of others. */
static enum status name_outputs(
	struct arena *a, const char *text, struct loss_spec *out, struct diag *d)
{
	const char *mark = out->outside ? "," : out->op && out->op->loss->outputs > 1 ? ";" : "";
	const char **name = ARENA_ARRAY(
		a, const char *, LOSS_OUTPUTS + 2); /* one too many is told */
	if (!name)
		return diag_nomem(d);
	for (int i = 0; *text && i <= LOSS_OUTPUTS; i++) {
		const char *end = *mark ? marked_first(text, mark) : NULL;
		const size_t length = end ? (size_t)(end - text) : strlen(text);
		name[i] = marked_name(a, text, length);
		if (!name[i])
			return diag_nomem(d);
		text += length + (end != NULL);
	}
	out->output = name;
	return ST_OK;
}

/* "0.5*LOSS": *loss is what stands behind the weight. */
static enum status take_weight(const char *text, double *weight, const char **loss, struct diag *d)
{
	char *end;
	*weight = strtod(text, &end);
	*loss = end + 1;
	if (end == text || *end != '*') {
		*weight = 1;
		*loss = text;
		return ST_OK;
	}
	return isfinite(*weight)
		       ? ST_OK
		       : diag_fail(d, ST_USAGE, NULL, "for example --loss 0.5*mse",
				 "'%s': %.*s is no weight", text, (int)(end - text), text);
}

/* Names as they are in the model and in files; `otherwise` where none was given. */
static const char *name_or(struct arena *a, const char *given, const char *otherwise)
{
	return given ? marked_name(a, given, strlen(given)) : otherwise;
}

/* Of a loss of no other outputs than its own: those that may have one. */
static enum status no_against(
	const struct op_table *t, const struct loss_spec *loss, struct diag *d)
{
	struct text known = {0};
	for (int f = 0; f < t->nfamily; f++)
		for (const struct op_def *r = t->family[f]; r->name; r++)
			if (r->loss && r->loss->against)
				text_add(&known, "%s%s", known.len ? ", " : "against=NAME is of ",
					r->loss->name);
	const enum status st = diag_fail(d, ST_USAGE, NULL, known.s,
		"'%s': the loss %s is compared with no other output", loss->text,
		loss->op->loss->name);
	text_free(&known);
	return st;
}

/* What a loss is compared with in place of a target. */
static enum status take_against(struct arena *a, const struct op_table *t, const struct options *o,
	struct loss_spec *out, struct diag *d)
{
	if (!o->against)
		return isnan(o->detach) ? ST_OK
					: diag_fail(d, ST_USAGE, NULL,
						  "through a target there is no gradient to stop",
						  "'%s': detach is of against=NAME", out->text);
	if (!out->op->loss->against)
		return no_against(t, out, d);
	if (o->target)
		return diag_fail(d, ST_USAGE, NULL, "leave target= or against= away",
			"'%s': a loss is compared with a target or with another output, not with "
			"both",
			out->text);
	if (!o->output)
		return diag_fail(d, ST_USAGE, NULL, "output=NAME says which",
			"'%s': which output is compared with '%s'?", out->text, o->against);
	out->against = name_or(a, o->against, NULL);
	out->attached = o->detach == 0;
	return out->against ? ST_OK : diag_nomem(d);
}

static enum status loss_parse(struct arena *a, const struct op_table *t, const char *text,
	bool several, struct loss_spec *out, struct diag *d)
{
	const char *loss;
	*out = (struct loss_spec){.text = text};
	TRY(take_weight(text, &out->weight, &loss, d));
	char *copy = arena_strdup(a, loss);
	if (!copy)
		return diag_nomem(d);
	char *rest = strchr(copy, ':');
	if (rest)
		*rest++ = '\0';
	if (!strcmp(copy, "outside")) {
		out->outside = true;
		out->name = copy;
		if (several)
			return diag_fail(d, ST_USAGE, NULL, "the caller adds what else there is",
				"--loss outside goes with no other loss");
		return rest && *rest ? name_outputs(a, rest, out, d) : ST_OK;
	}
	if (!strcmp(copy, "output")) {
		out->name = copy;
		if (!rest || !*rest)
			return ST_OK;
		TRY(name_outputs(a, rest, out, d));
		out->name = out->output[0];
		return ST_OK;
	}
	out->op = op_by_loss(t, copy);
	if (!out->op)
		return unknown_name(t, true, copy, d);
	struct options o = {.arena = a, .several = several, .detach = NAN};
	TRY(parse_options(out->op, text, rest, &o, d));
	if (o.output)
		TRY(name_outputs(a, o.output, out, d));
	out->name = name_or(a, o.name, copy);
	out->target = o.target ? name_or(a, o.target, NULL) : NULL;
	TRY(take_against(a, t, &o, out, d));
	if (o.parameter && o.output)
		return diag_fail(d, ST_USAGE, NULL, "a loss for each of the two",
			"'%s': a penalty is of an output or of parameters", text);
	out->parameter = o.parameter;
	out->nattr = o.n;
	out->attr = arena_memdup(a, o.attr, (size_t)o.n, sizeof *o.attr);
	return out->name && out->attr && (out->target || !o.target) ? ST_OK : diag_nomem(d);
}

/* Names tell losses apart, and their targets where none is named. */
static enum status name_losses(int n, struct loss_spec *loss, struct diag *d)
{
	for (int i = 0; i < n; i++) {
		if (!*loss[i].name || (loss[i].target && !*loss[i].target))
			return diag_fail(
				d, ST_USAGE, NULL, NULL, "'%s': a name is empty", loss[i].text);
		for (int k = 0; k < i; k++)
			if (!strcmp(loss[i].name, loss[k].name))
				return diag_fail(d, ST_USAGE, NULL,
					"name=NAME in one of them tells them apart",
					"two losses are called '%s': '%s' and '%s'", loss[i].name,
					loss[k].text, loss[i].text);
		if (!loss[i].target && !loss[i].against && n > 1)
			loss[i].target = loss[i].name;
	}
	return ST_OK;
}

enum status losses_parse(struct arena *a, const struct op_table *t, const char *const *text,
	struct loss_list *out, struct diag *d)
{
	const int n = list_length(text);
	struct loss_spec *loss = ARENA_ARRAY(a, struct loss_spec, n);
	*out = (struct loss_list){0};
	if (!loss)
		return diag_nomem(d);
	for (int i = 0; i < n; i++) {
		if (strcmp(text[i], "none") != 0)
			TRY(loss_parse(a, t, text[i], n > 1, &loss[i], d));
		else if (n > 1)
			return diag_fail(
				d, ST_USAGE, NULL, NULL, "--loss none goes with no other loss");
		else
			return ST_OK;
	}
	TRY(name_losses(n, loss, d));
	*out = (struct loss_list){n, loss};
	return ST_OK;
}

enum status optimizer_parse(struct arena *a, const struct op_table *t, const char *text,
	struct optimizer_spec *out, struct diag *d)
{
	char *copy = arena_strdup(a, text);
	if (!copy)
		return diag_nomem(d);
	char *rest = strchr(copy, ':');
	if (rest)
		*rest++ = '\0';
	*out = (struct optimizer_spec){.op = op_by_optimizer(t, copy)};
	if (!out->op)
		return unknown_name(t, false, copy, d);
	struct options o = {.arena = a};
	TRY(parse_options(out->op, text, rest, &o, d));
	for (const struct op_option *p = out->op->option; p && p->name; p++)
		if (!strcmp(p->name, "lr"))
			out->lr = p->value;
	for (int i = 0; i < o.n; i++)
		if (!strcmp(o.attr[i].name, "lr"))
			out->lr = o.attr[i].f;
	out->nattr = o.n;
	out->attr = arena_memdup(a, o.attr, (size_t)o.n, sizeof *o.attr);
	return out->attr ? ST_OK : diag_nomem(d);
}

enum status group_parse(struct arena *a, const struct optimizer_spec *o, const char *text,
	struct param_group *out, struct diag *d)
{
	struct options options = {.arena = a, .group = true, .rate = NAN};
	char *pattern = arena_strdup(a, text), *rest = pattern ? marked_last(pattern, ':') : NULL;
	if (!pattern)
		return diag_nomem(d);
	if (!rest || rest == pattern || !rest[1])
		return diag_fail(d, ST_USAGE, NULL, "for example --group '*.bias:weight_decay=0'",
			"--group wants PATTERN:OPTIONS, not '%s'", text);
	*rest++ = '\0';
	TRY(parse_options(o->op, text, rest, &options, d));
	*out = (struct param_group){.text = text,
		.pattern = pattern,
		.rate = options.rate,
		.nattr = options.n,
		.attr = arena_memdup(a, options.attr, (size_t)options.n, sizeof *options.attr)};
	return out->attr ? ST_OK : diag_nomem(d);
}

enum status group_no_decay(
	struct arena *a, const struct optimizer_spec *o, struct param_group *out, struct diag *d)
{
	static const char decay[] = "weight_decay";
	const struct attr none = ATTR_F(decay, 0);
	const struct op_option *p = o->op->option;
	while (p && p->name && strcmp(p->name, decay) != 0)
		p++;
	if (!p || !p->name)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--no-decay-1d: %s has no weight decay",
			o->op->optimizer->name);
	*out = (struct param_group){.text = "--no-decay-1d",
		.rate = NAN,
		.nattr = 1,
		.attr = arena_memdup(a, &none, 1, sizeof none)};
	return out->attr ? ST_OK : diag_nomem(d);
}

#include "cli/log_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/safe.h"
#include "train/event_file.h"

/* The i-th metric is one number. */
static bool logged(const struct evaluation *e, int i)
{
	return evaluation_metric(e, i)->which != METRIC_CONFUSION;
}

/* Losses that are told beside their sum. */
static int parts(const struct stint_model *m)
{
	return m->nloss > 1 ? m->nloss : 0;
}

/* --- JSON lines --- */

/* A number, or null where JSON has none. */
static void put_number(struct text *out, const char *name, double v)
{
	text_puts(out, ",");
	text_json_shown(out, name);
	text_add(out, isfinite(v) ? ":%.9g" : ":null", v);
}

/* So of one of several losses: "loss/NAME". */
static void put_part(struct text *out, const char *prefix, const char *name, double v)
{
	struct text key = {0};
	text_add(&key, "%s/%s", prefix, name);
	out->failed |= key.failed;
	if (!key.failed)
		put_number(out, key.s, v);
	text_free(&key);
}

void log_json(struct text *out, const struct log_record *r)
{
	if (r->what == LOG_STEP) {
		text_add(out, "{\"step\":%" PRId64 ",\"epoch\":%" PRId64 ",\"lr\":%.9g",
			r->at->step, r->at->epoch, r->lr);
		put_number(out, "loss", r->loss);
		for (int k = 0; k < parts(r->m); k++)
			put_part(out, "loss", r->m->loss[k].name, r->part[k]);
	} else if (r->within) {
		text_add(
			out, "{\"step\":%" PRId64 ",\"epoch\":%" PRId64, r->at->step, r->at->epoch);
	} else {
		text_add(out, "{\"epoch\":%" PRId64, r->at->epoch);
	}
	if (r->what == LOG_SCORE) {
		text_add(out, ",\"eval_samples\":%" PRId64, r->e->samples);
		put_number(out, "eval_loss", r->e->loss);
		for (int k = 0; k < parts(r->m); k++)
			put_part(out, "eval_loss", r->m->loss[k].name, r->e->scored[k].loss);
		for (int i = 0; i < r->e->nmetric; i++)
			if (logged(r->e, i))
				put_number(out, evaluation_metric(r->e, i)->label,
					evaluation_value(r->e, i));
	}
	if (r->what == LOG_EPOCH)
		text_add(out, ",\"seconds\":%.3f,\"data_seconds\":%.3f", r->seconds,
			r->data_seconds);
	text_puts(out, "}\n");
}

/* --- CSV --- */

/* A name with a comma or the like in it stands between quotes. */
static void put_column(struct text *out, const char *prefix, const char *name)
{
	const char *quote = strpbrk(name, ",\"\r\n") ? "\"" : "";
	text_add(out, ",%s%s", quote, prefix);
	for (const char *p = name; *p; p++)
		text_add(out, *p == '"' ? "%c\"" : "%c", *p);
	text_puts(out, quote);
}

void log_csv_columns(struct text *out, const struct stint_model *m, const struct evaluation *e)
{
	text_puts(out, "step,epoch,lr,loss");
	for (int k = 0; k < parts(m); k++)
		put_column(out, "loss/", m->loss[k].name);
	text_puts(out, ",seconds,data_seconds");
	if (e)
		text_puts(out, ",eval_samples,eval_loss");
	for (int k = 0; e && k < parts(m); k++)
		put_column(out, "eval_loss/", m->loss[k].name);
	for (int i = 0; e && i < e->nmetric; i++)
		if (logged(e, i))
			put_column(out, "", evaluation_metric(e, i)->label);
	text_puts(out, "\n");
}

static void put_empty(struct text *out, int n)
{
	for (int i = 0; i < n; i++)
		text_puts(out, ",");
}

/* An epoch's line has its score; what a line does not know it leaves empty. */
void log_csv(struct text *out, const struct log_record *r)
{
	const int n = parts(r->m);
	const bool scored = r->what == LOG_EPOCH || r->within;
	if (r->what == LOG_SCORE && !r->within)
		return;
	text_add(out, "%" PRId64 ",%" PRId64, r->at->step, r->at->epoch);
	if (r->what == LOG_STEP) {
		text_add(out, ",%.9g,%.9g", r->lr, r->loss);
		for (int k = 0; k < n; k++)
			text_add(out, ",%.9g", r->part[k]);
		text_puts(out, ",,");
	} else {
		put_empty(out, 2 + n + (r->within ? 2 : 0));
		if (!r->within)
			text_add(out, ",%.3f,%.3f", r->seconds, r->data_seconds);
	}
	if (r->e && scored) {
		text_add(out, ",%" PRId64 ",%.9g", r->e->samples, r->e->loss);
		for (int k = 0; k < n; k++)
			text_add(out, ",%.9g", r->e->scored[k].loss);
	} else if (r->e) {
		put_empty(out, 2 + n);
	}
	for (int i = 0; r->e && i < r->e->nmetric; i++)
		if (logged(r->e, i) && scored)
			text_add(out, ",%.9g", evaluation_value(r->e, i));
		else if (logged(r->e, i))
			text_puts(out, ",");
	text_puts(out, "\n");
}

/* --- TensorBoard --- */

/* TensorBoard puts curves together whose tags begin alike, up to the slash. */
static void put_scalar(
	struct text *out, const struct log_record *r, const char *group, const char *name, double v)
{
	struct text tag = {0};
	text_add(&tag, "%s/%s", group, name);
	out->failed |= tag.failed;
	if (!tag.failed)
		event_scalars(out, r->time, r->at->step, &(struct event_scalar){tag.s, v}, 1);
	text_free(&tag);
}

static void put_scores(struct text *out, const struct log_record *r)
{
	struct event_scalar s[METRICS_MAX + 1] = {{"eval/loss", r->e->loss}};
	char tag[METRICS_MAX][128];
	int n = 1;
	for (int i = 0; i < r->e->nmetric; i++)
		if (logged(r->e, i)) {
			snprintf(tag[i], sizeof tag[i], "eval/%s",
				evaluation_metric(r->e, i)->label);
			s[n++] = (struct event_scalar){tag[i], evaluation_value(r->e, i)};
		}
	event_scalars(out, r->time, r->at->step, s, n);
	for (int k = 0; k < parts(r->m); k++)
		put_scalar(out, r, "eval/loss", r->m->loss[k].name, r->e->scored[k].loss);
}

void log_events(struct text *out, const struct log_record *r)
{
	const struct event_scalar step[] = {{"train/loss", r->loss}, {"train/lr", r->lr}},
				  epoch[] = {{"epoch/seconds", r->seconds},
					  {"epoch/data_seconds", r->data_seconds}};
	if (r->what == LOG_SCORE)
		put_scores(out, r);
	else
		event_scalars(out, r->time, r->at->step, r->what == LOG_STEP ? step : epoch, 2);
	for (int k = 0; r->what == LOG_STEP && k < parts(r->m); k++)
		put_scalar(out, r, "train/loss", r->m->loss[k].name, r->part[k]);
}

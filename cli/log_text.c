#include "cli/log_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "train/event_file.h"

/* The i-th metric is one number. */
static bool logged(const struct evaluation *e, int i)
{
	return e->metrics.item[i].which != METRIC_CONFUSION;
}

/* --- JSON lines --- */

/* A number, or null where JSON has none. */
static void put_number(struct text *out, const char *name, double v)
{
	text_add(out, isfinite(v) ? ",\"%s\":%.9g" : ",\"%s\":null", name, v);
}

void log_json(struct text *out, const struct log_record *r)
{
	if (r->what == LOG_STEP) {
		text_add(out, "{\"step\":%" PRId64 ",\"epoch\":%" PRId64 ",\"lr\":%.9g",
			r->at->step, r->at->epoch, r->lr);
		put_number(out, "loss", r->loss);
	} else {
		text_add(out, "{\"epoch\":%" PRId64, r->at->epoch);
	}
	if (r->what == LOG_SCORE) {
		text_add(out, ",\"eval_samples\":%" PRId64, r->e->samples);
		put_number(out, "eval_loss", r->e->loss);
		for (int i = 0; i < r->e->metrics.n; i++)
			if (logged(r->e, i))
				put_number(out, r->e->metrics.item[i].label,
					metrics_value(&r->e->metrics, i));
	}
	if (r->what == LOG_EPOCH)
		text_add(out, ",\"seconds\":%.3f,\"data_seconds\":%.3f", r->seconds,
			r->data_seconds);
	text_puts(out, "}\n");
}

/* --- CSV --- */

/* A name with a comma in it stands between quotes. */
static void put_column(struct text *out, const char *name)
{
	text_add(out, strchr(name, ',') ? ",\"%s\"" : ",%s", name);
}

void log_csv_columns(struct text *out, const struct evaluation *e)
{
	text_puts(out, "step,epoch,lr,loss,seconds,data_seconds");
	if (e)
		text_puts(out, ",eval_samples,eval_loss");
	for (int i = 0; e && i < e->metrics.n; i++)
		if (logged(e, i))
			put_column(out, e->metrics.item[i].label);
	text_puts(out, "\n");
}

/* An epoch's line has its score; what a line does not know it leaves empty. */
void log_csv(struct text *out, const struct log_record *r)
{
	if (r->what == LOG_SCORE)
		return;
	text_add(out, "%" PRId64 ",%" PRId64, r->at->step, r->at->epoch);
	if (r->what == LOG_STEP)
		text_add(out, ",%.9g,%.9g,,", r->lr, r->loss);
	else
		text_add(out, ",,,%.3f,%.3f", r->seconds, r->data_seconds);
	if (r->e && r->what == LOG_EPOCH)
		text_add(out, ",%" PRId64 ",%.9g", r->e->samples, r->e->loss);
	else if (r->e)
		text_puts(out, ",,");
	for (int i = 0; r->e && i < r->e->metrics.n; i++)
		if (logged(r->e, i) && r->what == LOG_EPOCH)
			text_add(out, ",%.9g", metrics_value(&r->e->metrics, i));
		else if (logged(r->e, i))
			text_puts(out, ",");
	text_puts(out, "\n");
}

/* --- TensorBoard --- */

/* TensorBoard puts curves together whose tags begin alike, up to the slash. */
static void put_scores(struct text *out, const struct log_record *r)
{
	struct event_scalar s[METRICS_MAX + 1] = {{"eval/loss", r->e->loss}};
	char tag[METRICS_MAX][128];
	int n = 1;
	for (int i = 0; i < r->e->metrics.n; i++)
		if (logged(r->e, i)) {
			snprintf(tag[i], sizeof tag[i], "eval/%s", r->e->metrics.item[i].label);
			s[n++] = (struct event_scalar){tag[i], metrics_value(&r->e->metrics, i)};
		}
	event_scalars(out, r->time, r->at->step, s, n);
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
}

#include "train/learning_rate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "train/option_text.h"

static const double pi = 3.14159265358979323846;

static const char *const names[] = {"constant", "linear", "cosine", "step", "multistep",
	"exponential", "cosine-restarts", "one-cycle", "plateau"};
enum { NNAME = sizeof names / sizeof *names };

/* --- What is asked for --- */

/* "30/80": rising. */
static enum status parse_milestones(const char *text, struct schedule *s, struct diag *d)
{
	const char *p = text ? text : "";
	do {
		char *end;
		const long long v = strtoll(p, &end, 10);
		const int64_t before = s->nmilestone ? s->milestone[s->nmilestone - 1] : 0;
		if (end == p || (*end && *end != '/') || v <= before ||
			s->nmilestone == SCHEDULE_MILESTONES)
			return diag_fail(d, ST_USAGE, NULL, "--schedule multistep:milestones=30/80",
				"milestones want up to %d rising whole numbers",
				SCHEDULE_MILESTONES);
		s->milestone[s->nmilestone++] = v;
		p = *end ? end + 1 : NULL;
	} while (p);
	return ST_OK;
}

static enum status parse_plateau(struct spec *o, struct schedule *s, struct diag *d)
{
	int mode = 0;
	TRY(spec_number(o, "factor", 0, 0.999999999, &s->gamma, d));
	TRY(spec_whole(o, "patience", 0, INT32_MAX, &s->patience, d));
	TRY(spec_number(o, "threshold", 0, HUGE_VAL, &s->threshold, d));
	TRY(spec_choice(o, "threshold_mode", "rel abs", &mode, d));
	TRY(spec_whole(o, "cooldown", 0, INT32_MAX, &s->cooldown, d));
	TRY(spec_number(o, "min_lr", 0, HUGE_VAL, &s->least, d));
	TRY(spec_number(o, "eps", 0, HUGE_VAL, &s->eps, d));
	s->absolute = mode == 1;
	return ST_OK;
}

static enum status parse_one_cycle(struct spec *o, struct schedule *s, struct diag *d)
{
	int anneal = 0;
	int64_t three = 0;
	TRY(spec_number(o, "pct_start", 0, 1, &s->rise, d));
	TRY(spec_number(o, "div_factor", 1e-9, HUGE_VAL, &s->div_factor, d));
	TRY(spec_number(o, "final_div_factor", 1e-9, HUGE_VAL, &s->final_div_factor, d));
	TRY(spec_choice(o, "anneal_strategy", "cos linear", &anneal, d));
	TRY(spec_whole(o, "three_phase", 0, 1, &three, d));
	s->straight = anneal == 1;
	s->three_phase = three != 0;
	return ST_OK;
}

static enum status parse_options(struct spec *o, struct schedule *s, struct diag *d)
{
	switch (s->which) {
	case SCHEDULE_LINEAR:
		return spec_number(o, "end_factor", 0, 1, &s->end_factor, d);
	case SCHEDULE_COSINE:
		return spec_number(o, "eta_min", 0, HUGE_VAL, &s->least, d);
	case SCHEDULE_STEP:
		TRY(spec_whole(o, "size", 1, INT64_MAX, &s->size, d));
		if (!s->size)
			return diag_fail(d, ST_USAGE, NULL, "--schedule step:size=30",
				"--schedule step wants a size");
		return spec_number(o, "gamma", 0, 1, &s->gamma, d);
	case SCHEDULE_MULTISTEP:
		TRY(parse_milestones(spec_word(o, "milestones"), s, d));
		return spec_number(o, "gamma", 0, 1, &s->gamma, d);
	case SCHEDULE_EXPONENTIAL:
		s->gamma = 0;
		TRY(spec_number(o, "gamma", 1e-300, 1, &s->gamma, d));
		return s->gamma > 0
			       ? ST_OK
			       : diag_fail(d, ST_USAGE, NULL, "--schedule exponential:gamma=0.95",
					 "--schedule exponential wants a gamma");
	case SCHEDULE_RESTARTS:
		TRY(spec_whole(o, "t_0", 1, INT64_MAX, &s->size, d));
		if (!s->size)
			return diag_fail(d, ST_USAGE, NULL, "--schedule cosine-restarts:t_0=10",
				"--schedule cosine-restarts wants t_0");
		TRY(spec_whole(o, "t_mult", 1, INT32_MAX, &s->mult, d));
		return spec_number(o, "eta_min", 0, HUGE_VAL, &s->least, d);
	case SCHEDULE_ONE_CYCLE:
		return parse_one_cycle(o, s, d);
	case SCHEDULE_PLATEAU:
		return parse_plateau(o, s, d);
	default:
		return ST_OK;
	}
}

enum status schedule_parse(struct arena *a, const char *text, struct schedule *out, struct diag *d)
{
	struct spec o;
	int which = 0, per;
	TRY(spec_parse(a, "--schedule", text, &o, d));
	while (which < NNAME && strcmp(names[which], o.name) != 0)
		which++;
	if (which == NNAME)
		return diag_fail(d, ST_USAGE, NULL, did_you_mean(a, o.name, names, NNAME),
			"--schedule is constant, linear, cosine, step, multistep, exponential, "
			"cosine-restarts, one-cycle or plateau, not '%s'",
			o.name);
	/* PyTorch's defaults */
	*out = (struct schedule){.which = (enum schedule_which)which,
		.gamma = 0.1,
		.mult = 1,
		.rise = 0.3,
		.div_factor = 25,
		.final_div_factor = 1e4,
		.patience = 10,
		.threshold = 1e-4,
		.eps = 1e-8,
		.factor = 1,
		.best = NAN};
	per = which >= SCHEDULE_STEP && which <= SCHEDULE_RESTARTS;
	if (which >= SCHEDULE_LINEAR && which <= SCHEDULE_RESTARTS)
		TRY(spec_choice(&o, "per", "step epoch", &per, d));
	out->per_epoch = per == 1;
	TRY(parse_options(&o, out, d));
	return spec_end(&o, d);
}

bool schedule_has_end(const struct schedule *s)
{
	return s->which == SCHEDULE_LINEAR || s->which == SCHEDULE_COSINE ||
	       s->which == SCHEDULE_ONE_CYCLE;
}

/* --- Rates --- */

/* From `high` to `low`. */
static double cosine(double high, double low, double share)
{
	return low + (high - low) * 0.5 * (1 + cos(pi * share));
}

static double restarts(const struct schedule *s, double lr, int64_t t)
{
	int64_t length = s->size;
	while (t >= length) {
		if (s->mult == 1) {
			t %= length;
		} else {
			t -= length;
			if (__builtin_mul_overflow(length, s->mult, &length))
				length = INT64_MAX;
		}
	}
	return cosine(lr, s->least, (double)t / (double)length);
}

static double one_cycle(const struct schedule *s, double most, int64_t t, int64_t total)
{
	const double first = most / s->div_factor, last = first / s->final_div_factor,
		     n = (double)total, turn = s->rise * n - 1;
	const struct phase {
		double end, from, to;
	} two[] = {{turn, first, most}, {n - 1, most, last}},
	  three[] = {{turn, first, most}, {2 * s->rise * n - 2, most, first}, {n - 1, first, last}};
	const struct phase *p = s->three_phase ? three : two, *end = p + (s->three_phase ? 2 : 1);
	double start = 0;
	for (; p < end && (double)t > p->end; p++)
		start = p->end;
	double share = p->end > start ? ((double)t - start) / (p->end - start) : 1;
	share = share > 1 ? 1 : share;
	return s->straight ? p->from + (p->to - p->from) * share : cosine(p->from, p->to, share);
}

/* The rate of unit `t` of `total`. */
static double rate(const struct schedule *s, double lr, int64_t t, int64_t total)
{
	const double share = total > 0 ? (double)t / (double)total : 0;
	int passed = 0;
	switch (s->which) {
	case SCHEDULE_LINEAR:
		return lr * (1 + (s->end_factor - 1) * share);
	case SCHEDULE_COSINE:
		return cosine(lr, s->least, share);
	case SCHEDULE_STEP:
		return lr * pow(s->gamma, (double)(t / s->size));
	case SCHEDULE_MULTISTEP:
		while (passed < s->nmilestone && s->milestone[passed] <= t)
			passed++;
		return lr * pow(s->gamma, passed);
	case SCHEDULE_EXPONENTIAL:
		return lr * pow(s->gamma, (double)t);
	case SCHEDULE_RESTARTS:
		return restarts(s, lr, t);
	case SCHEDULE_ONE_CYCLE:
		return one_cycle(s, lr, t, total);
	case SCHEDULE_PLATEAU:
		return lr * s->factor;
	default:
		return lr;
	}
}

double schedule_rate(const struct schedule *s, double lr, const struct schedule_at *at)
{
	const int64_t behind = at->step > at->warmup ? at->step - at->warmup : 0;
	const double r = s->per_epoch ? rate(s, lr, at->epoch, at->epochs)
				      : rate(s, lr, behind, at->steps - at->warmup);
	return at->step < at->warmup ? r * (double)(at->step + 1) / (double)at->warmup : r;
}

void schedule_told(struct schedule *s, double lr, double value, bool falls)
{
	if (s->which != SCHEDULE_PLATEAU)
		return;
	/* relative to the best, whatever its sign, as PyTorch has it */
	const double step = s->absolute ? s->threshold : s->threshold * s->best;
	const bool better = isnan(s->best) ||
			    (falls ? value < s->best - step : value > s->best + step);
	if (better)
		s->best = value;
	s->bad = better ? 0 : s->bad + 1;
	if (s->cooling > 0) {
		s->cooling--;
		s->bad = 0;
	}
	if (s->bad <= s->patience)
		return;
	const double before = lr * s->factor;
	double after = before * s->gamma;
	after = after > s->least ? after : s->least;
	if (before - after > s->eps)
		s->factor = after / lr;
	s->cooling = s->cooldown;
	s->bad = 0;
}

#include "cli/lr_find.h"

#include <inttypes.h>
#include <math.h>

#include "cli/interrupt.h"

static const double LOW = 1e-7, HIGH = 10;

/* What was seen, step by step. */
struct search {
	int n, least; /* of `smooth` */
	double rate[LR_FIND_STEPS], loss[LR_FIND_STEPS], smooth[LR_FIND_STEPS];
};

enum status lr_find_check(const struct train_args *o, struct diag *d)
{
	const char *bad = !isnan(o->lr)                 ? "--lr"
			  : o->warmup                   ? "--warmup"
			  : o->folder                   ? "--checkpoint"
			  : o->resume                   ? "--resume"
			  : o->keep_best                ? "--keep-best"
			  : o->swa_start                ? "--swa-start"
			  : o->log.n                    ? "--log"
			  : o->ranks || ranks_started() ? "--ranks"
			  : o->check_finite             ? "--check-finite"
							: NULL;
	return bad ? diag_fail(d, ST_USAGE, NULL, "leave one of them away",
			     "--lr-find looks for a rate, and saves nothing: no %s", bad)
		   : ST_OK;
}

static enum status one_step(struct training *t, int64_t batch, double rate, double *loss)
{
	const struct loaded *l;
	TRY(training_feed(t, batch));
	TRY(lengths_take(&t->lengths, &t->train, &l, t->diag));
	TRY(training_rows(t, l, batch));
	const int rc = l->train(l->step, rate, NULL);
	if (rc)
		return load_fail(l, rc, "training", t->diag);
	*loss = l->loss(l->step);
	return ST_OK;
}

/* The step's loss among those before it; *over: it has gone up too far. */
static void add(struct search *s, double rate, double loss, double *average, bool *over)
{
	static const double weight = 0.98, far = 4;
	*average = weight * *average + (1 - weight) * loss;
	const double smooth = *average / (1 - pow(weight, s->n + 1));
	*over = !isfinite(smooth) || (s->n && smooth > far * s->smooth[s->least]);
	if (*over)
		return;
	s->rate[s->n] = rate;
	s->loss[s->n] = loss;
	s->smooth[s->n] = smooth;
	if (smooth < s->smooth[s->least])
		s->least = s->n;
	s->n++;
}

/* Where the average falls fastest, before it is least; 0: nowhere. The first ones are averages of
 * too little (PyTorch Lightning leaves out as many). */
static int steepest(const struct search *s)
{
	enum { FIRST = 10 };
	int best = 0;
	double fall = 0;
	for (int i = FIRST; i < s->least; i++) {
		const double rise = s->smooth[i + 1] - s->smooth[i - 1];
		if (rise < fall) {
			fall = rise;
			best = i;
		}
	}
	return best;
}

static void print_json(const struct search *s, int best)
{
	printf("{\"lr\":%.9g,\"lr_least_tenth\":%.9g,\"steps\":[", s->rate[best],
		s->rate[s->least] / 10);
	for (int i = 0; i < s->n; i++)
		printf("%s{\"lr\":%.9g,\"loss\":%.9g,\"smooth\":%.9g}", i ? "," : "", s->rate[i],
			s->loss[i], s->smooth[i]);
	printf("]}\n");
}

static void print_words(const struct search *s, int best)
{
	enum { LINES = 10 };
	printf("%10s %12s\n", "lr", "loss");
	for (int i = 0; i < s->n; i++)
		if (s->n <= LINES || i % (s->n / LINES) == 0 || i + 1 == s->n)
			printf("%10.2e %12.5g\n", s->rate[i], s->smooth[i]);
	printf("--lr %.2g: the loss falls fastest there; a tenth of where it is least is %.2g\n",
		s->rate[best], s->rate[s->least] / 10);
}

enum status lr_find(struct training *t)
{
	struct search s = {.n = 0};
	double average = 0, loss = NAN;
	bool over = false;
	for (int i = 0; i < LR_FIND_STEPS && !over; i++) {
		const int64_t epoch = i / t->batches, batch = i % t->batches;
		const double rate = LOW * pow(HIGH / LOW, (double)i / (LR_FIND_STEPS - 1));
		if (interrupt_asked())
			return diag_fail(t->diag, ST_INTERRUPTED, NULL, NULL, "interrupted by %s",
				interrupt_name());
		if (!batch)
			TRY(feed_epoch(&t->train, t->o->seed, epoch, t->diag));
		TRY(one_step(t, batch, rate, &loss));
		add(&s, rate, loss, &average, &over);
	}
	const int best = steepest(&s);
	if (!best)
		return diag_fail(t->diag, ST_DIVERGED, NULL,
			"look at the data: their scale, labels, numbers that are not finite",
			"at no rate from %g to %g the loss fell", LOW, HIGH);
	if (t->o->json)
		print_json(&s, best);
	else
		print_words(&s, best);
	return ST_OK;
}

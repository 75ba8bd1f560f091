#include "cli/hold_out.h"

#include <inttypes.h>

static enum status count(const char *text, int64_t samples, int64_t *held, struct diag *d)
{
	return data_options_count("--hold-out", text, samples,
		"--hold-out 500 are 500 samples, --hold-out 10% that share of them", held, d);
}

enum status hold_out_check(const char *text, struct diag *d)
{
	int64_t held;
	return text ? count(text, 0, &held, d) : ST_OK;
}

enum status hold_out_take(struct feed *f, struct diag *d)
{
	enum { NO_EPOCH = -1 }; /* of which no training has an order */
	int64_t held;
	if (!f->o->hold_out)
		return ST_OK;
	TRY(count(f->o->hold_out, f->samples, &held, d));
	if (held < 1 || held >= f->samples)
		return diag_fail(d, ST_INVALID, &(struct where){.file = f->bound[0].data.path},
			"both what is held out and what is trained on must be some samples",
			"--hold-out %s are %" PRId64 " of %" PRId64 " samples", f->o->hold_out,
			held, f->samples);
	if (shuffle_open(&f->drawn, f->samples))
		return diag_nomem(d);
	shuffle_begin(&f->drawn, 0, NO_EPOCH);
	f->from = f->o->held ? 0 : held;
	f->samples = f->o->held ? held : f->samples - held;
	return ST_OK;
}

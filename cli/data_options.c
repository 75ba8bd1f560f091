#include "cli/data_options.h"

#include <math.h>
#include <stdlib.h>

#include "cli/hold_out.h"

void data_options_free(struct data_options *o)
{
	free(o->scale);
	free(o->shift);
	free(o->skip_bad);
	free(o->augment);
	free(o->hold_out);
	*o = (struct data_options){0};
}

/* "0.5" or "0.5,0.25,1"; NULL is none. */
static enum status numbers(
	const char *option, const char *text, int *n, double out[DATASET_CHANNELS], struct diag *d)
{
	for (*n = 0; text && *n < DATASET_CHANNELS;) {
		char *end;
		const double v = strtod(text, &end);
		if (end == text || !isfinite(v) || (*end && *end != ','))
			break;
		out[(*n)++] = v;
		text = *end ? end + 1 : NULL;
	}
	if (!text)
		return ST_OK;
	return diag_fail(d, ST_USAGE, NULL, "one finite number, or one a channel: 0.5,0.25,1",
		"%s: '%s' at its number %d", option, text, *n + 1);
}

/* One number for all channels, or one for each. */
static enum status spread(const char *option, int n, double v[DATASET_CHANNELS], double def,
	const char *name, int rank, const int64_t *dim, struct dataset_map *out, struct diag *d)
{
	if (n > 1 && (rank < 2 || dim[1] != n))
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"%s has %d numbers; '%s' has %lld channels", option, n, name,
			rank < 2 ? 1LL : (long long)dim[1]);
	if (n > 1)
		out->channels = n;
	for (int c = n; c < DATASET_CHANNELS; c++)
		v[c] = n ? v[0] : def;
	return ST_OK;
}

enum status data_options_check(const struct data_options *o, struct diag *d)
{
	double v[DATASET_CHANNELS];
	int64_t most;
	int n;
	TRY(numbers("--scale", o->scale, &n, v, d));
	TRY(numbers("--shift", o->shift, &n, v, d));
	if (o->augment && !dataset_is_augmentation(o->augment))
		return diag_fail(d, ST_USAGE, NULL,
			"words are " AUGMENT_WORDS ", with commas between them",
			"--augment: '%s' is not what pictures can be changed by", o->augment);
	TRY(hold_out_check(o->hold_out, d));
	return data_options_bad(o, 0, 0, &most, d);
}

enum status data_options_count(const char *option, const char *text, int64_t samples,
	const char *hint, int64_t *out, struct diag *d)
{
	char *end;
	const double v = strtod(text, &end);
	const bool share = *end == '%';
	if (end == text || end[share] || !(v >= 0) || v > (share ? 100 : 0x1p53) ||
		(!share && v > floor(v)))
		return diag_fail(d, ST_USAGE, NULL, hint,
			"%s: '%s' is neither a number of samples nor a share", option, text);
	*out = (int64_t)(share ? floor((double)samples * v / 100) : v);
	return ST_OK;
}

enum status data_options_bad(
	const struct data_options *o, int64_t samples, int64_t usual, int64_t *most, struct diag *d)
{
	*most = usual;
	if (!o->skip_bad || !*o->skip_bad)
		return ST_OK;
	return data_options_count("--skip-bad", o->skip_bad, samples,
		"--skip-bad=20 are 20 samples, --skip-bad=0.5% that share of them", most, d);
}

enum status data_options_map(const struct data_options *o, const char *name, int rank,
	const int64_t *dim, struct dataset_map *out, struct diag *d)
{
	int scales, shifts;
	*out = (struct dataset_map){.channels = 1, .inner = 1};
	for (int k = 2; k < rank; k++)
		out->inner *= dim[k];
	TRY(numbers("--scale", o->scale, &scales, out->scale, d));
	TRY(numbers("--shift", o->shift, &shifts, out->shift, d));
	TRY(spread("--scale", scales, out->scale, 1, name, rank, dim, out, d));
	return spread("--shift", shifts, out->shift, 0, name, rank, dim, out, d);
}

#include "train/weight_average.h"

#include <math.h>
#include <stdlib.h>

#include "train/option_text.h"

enum status swa_rate_parse(struct arena *a, const char *text, struct swa_rate *out, struct diag *d)
{
	struct spec o;
	char *end;
	int anneal = 0;
	*out = (struct swa_rate){.lr = NAN, .anneal_epochs = 10};
	if (!text)
		return ST_OK;
	TRY(spec_parse(a, "--swa-lr", text, &o, d));
	out->lr = strtod(o.name, &end);
	if (end == o.name || *end || !(out->lr >= 0) || isinf(out->lr))
		return diag_fail(d, ST_USAGE, NULL, "--swa-lr 0.05:anneal_epochs=10",
			"--swa-lr wants a rate of 0 or more, not '%s'", o.name);
	TRY(spec_whole(&o, "anneal_epochs", 0, INT32_MAX, &out->anneal_epochs, d));
	TRY(spec_choice(&o, "anneal_strategy", "cos linear", &anneal, d));
	out->straight = anneal == 1;
	return spec_end(&o, d);
}

double swa_rate_at(const struct swa_rate *r, double before, int64_t epochs)
{
	const double pi = 3.14159265358979323846;
	if (isnan(r->lr) || epochs < 1)
		return before;
	const double t = epochs < r->anneal_epochs ? (double)epochs / (double)r->anneal_epochs : 1;
	const double share = r->straight ? t : (1 - cos(pi * t)) / 2;
	return r->lr * share + before * (1 - share);
}

void swa_add_floats(float *mean, const float *x, size_t n, int64_t count)
{
	for (size_t i = 0; i < n; i++)
		mean[i] = count ? mean[i] + (x[i] - mean[i]) / (float)(count + 1) : x[i];
}

void swa_add_doubles(double *mean, const double *x, size_t n, int64_t count)
{
	for (size_t i = 0; i < n; i++)
		mean[i] = count ? mean[i] + (x[i] - mean[i]) / (double)(count + 1) : x[i];
}

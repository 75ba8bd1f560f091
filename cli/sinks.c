#include "cli/sinks.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/safe_put.h"
#include "base/marked.h"
#include "cli/answer_masks.h"

static const struct {
	const char *name, *ending;
} formats[SINK_FORMATS] = {[SINK_NPY] = {"npy", ".npy"},
	[SINK_SAFETENSORS] = {"safetensors", ".safetensors"},
	[SINK_CSV] = {"csv", ".csv"},
	[SINK_JSONL] = {"jsonl", ".jsonl"},
	[SINK_JSON] = {"json", ".json"},
	[SINK_MASKS] = {"png", "/"}};

static bool is_rows(const struct sink *s)
{
	return s->format == SINK_CSV || s->format == SINK_JSONL || s->format == SINK_JSON;
}

static bool is_stdout(const struct sink *s)
{
	return !strcmp(s->path, "-");
}

/* --- What goes where --- */

/* Rows of an output that a sample gives, or 0: it has no axis of samples. */
static int64_t rows_of(const struct sinks *p, int output)
{
	const struct stint_output *o = &p->l->model->output[output];
	if (o->rank == 0)
		return 0;
	if (p->f->whole)
		return o->dim[0];
	return o->dim[0] == feed_evaluated(p->f) ? 1 : 0;
}

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);
	return n >= m && !strcmp(s + n - m, end);
}

static enum status find_output(struct sinks *p, const char *name, int *out)
{
	const struct stint_model *m = p->l->model;
	const char *all = "";
	for (int i = 0; i < m->noutput; i++) {
		if (!strcmp(m->output[i].name, name)) {
			*out = i;
			return ST_OK;
		}
		all = all ? arena_printf(p->a, "%s%s'%s'", all, i ? ", " : "", m->output[i].name)
			  : NULL;
	}
	return !all ? diag_nomem(p->d)
		    : diag_fail(p->d, ST_USAGE, NULL, arena_printf(p->a, "it has %s", all),
			      "the model has no output '%s'", name);
}

/* --format, or the ending; of another ending .npy, on standard output CSV. */
static enum status find_format(struct sinks *p, struct sink *s)
{
	int i = 0;
	while (i < SINK_FORMATS && !(p->format ? !strcmp(p->format, formats[i].name)
					       : ends_with(s->path, formats[i].ending)))
		i++;
	if (p->format && i == SINK_FORMATS)
		return diag_fail(p->d, ST_USAGE, NULL, "npy, safetensors, csv, jsonl, json or png",
			"there is no --format %s", p->format);
	s->format = i < SINK_FORMATS ? (enum sink_format)i
		    : !is_stdout(s)  ? SINK_NPY
		    : p->json        ? SINK_JSON
				     : SINK_CSV;
	if (is_stdout(s) && (!is_rows(s) || (p->json && s->format != SINK_JSON)))
		return diag_fail(p->d, ST_USAGE, NULL, "-o FILE",
			"--format %s does not go to standard output%s", formats[s->format].name,
			p->json ? " with --json" : "");
	return ST_OK;
}

enum status sinks_add(struct sinks *p, const char *text)
{
	const struct stint_model *m = p->l->model;
	const char *eq = marked_first(text, "=");
	struct sink *s = &p->sink[p->n++];
	*s = (struct sink){.path = eq ? eq + 1 : text};
	TRY(find_format(p, s));
	s->output = ARENA_ARRAY(p->a, int, m->noutput);
	s->y = ARENA_ARRAY(p->a, const void *, m->noutput);
	char *name = eq ? marked_name(p->a, text, (size_t)(eq - text)) : NULL;
	if (!s->output || !s->y || (eq && !name))
		return diag_nomem(p->d);
	const struct stint_output *scored = NULL;
	for (int i = 0; i < m->nloss && !scored; i++)
		if (feed_has_labels(m, &m->loss[i]))
			scored = feed_scored_output(m, &m->loss[i]);
	if (eq)
		TRY(find_output(p, name, &s->output[s->n++]));
	else if (m->noutput == 1)
		s->output[s->n++] = 0;
	else if (scored && (is_rows(s) || s->format == SINK_MASKS))
		s->output[s->n++] = (int)(scored - m->output);
	else if (s->format == SINK_SAFETENSORS || is_rows(s))
		for (int i = 0; i < m->noutput; i++)
			if (rows_of(p, i))
				s->output[s->n++] = i;
	if (!s->n && m->noutput != 1)
		return diag_fail(p->d, ST_USAGE, NULL,
			"-o NAME=OUT.npy writes one, -o OUT.safetensors all",
			"the model has %d outputs", m->noutput);
	for (int i = 0; i < s->n; i++)
		if (!rows_of(p, s->output[i]))
			return diag_fail(p->d, ST_USAGE, NULL, NULL,
				"output '%s' has no axis of samples", m->output[s->output[i]].name);
	return ST_OK;
}

/* --- Opening --- */

static enum status open_arrays(struct sinks *p, struct sink *s)
{
	char message[256];
	struct safetensors_entry *entry = ARENA_ARRAY(p->a, struct safetensors_entry, s->n);
	if (!entry)
		return diag_nomem(p->d);
	for (int i = 0; i < s->n; i++) {
		const struct stint_output *o = &p->l->model->output[s->output[i]];
		int64_t *dim = arena_memdup(p->a, o->dim, (size_t)o->rank, sizeof *dim);
		if (!dim)
			return diag_nomem(p->d);
		if (!size_mul(p->f->samples, rows_of(p, s->output[i]), &dim[0]))
			return diag_fail(p->d, ST_INVALID, NULL, NULL, "too many samples");
		entry[i] = (struct safetensors_entry){
			.name = o->name, .dtype = o->dtype, .rank = o->rank, .dim = dim};
	}
	if (array_stream_open(&s->stream, s->path, s->format == SINK_SAFETENSORS, entry, s->n, NULL,
		    0, message))
		return diag_fail(p->d, ST_IO, NULL, NULL, "%s", message);
	return ST_OK;
}

/* A document on standard output is there whole, or not at all. */
static enum status open_file(struct sinks *p, struct sink *s)
{
	if (!is_stdout(s)) {
		TRY(file_begin(s->path, &s->saving, p->d));
		s->f = s->saving.f;
	} else {
		s->f = s->format == SINK_JSON ? tmpfile() : stdout;
	}
	if (!s->f)
		return diag_fail(p->d, ST_IO, NULL, NULL, "no temporary file: %s", strerror(errno));
	if (s->format == SINK_CSV)
		answer_rows_head(&s->rows, s->f);
	else if (s->format == SINK_JSON)
		fputs("{\"predictions\":[", s->f);
	return ST_OK;
}

/* Samples are the files of the first input that has some. */
static const struct dataset *files_of(const struct sinks *p)
{
	for (int i = 0; i < p->f->n && !p->f->whole; i++)
		if (dataset_name(&p->f->bound[i].data, 0))
			return &p->f->bound[i].data;
	return NULL;
}

static enum status open_answers(struct sinks *p, struct sink *s)
{
	s->rows = (struct answer_rows){.options = p->options,
		.answer = ARENA_ARRAY(p->a, struct answer, s->n),
		.n = s->n,
		.files = files_of(p) != NULL,
		.why = p->f->o->skip_bad != NULL,
		.best = ARENA_ARRAY(p->a, int64_t, p->options->top + 1)};
	if (!s->rows.answer || !s->rows.best)
		return diag_nomem(p->d);
	for (int i = 0; i < s->n; i++)
		TRY(answer_of(p->a, p->l, p->f->whole, s->output[i], p->options, &s->rows.answer[i],
			p->d));
	if (s->format == SINK_MASKS)
		return masks_open(p->a, s->path, s->rows.answer, &s->masks, p->d);
	if (s->format == SINK_CSV)
		TRY(answer_rows_check(&s->rows, p->d));
	return open_file(p, s);
}

static enum status make_none(struct sinks *p)
{
	size_t most = 0;
	for (int i = 0; i < p->l->model->noutput; i++)
		most = p->l->model->output[i].bytes > most ? p->l->model->output[i].bytes : most;
	p->none = ARENA_ARRAY(p->a, unsigned char, most);
	return p->none ? ST_OK : diag_nomem(p->d);
}

enum status sinks_open(struct sinks *p)
{
	int out = 0;
	for (int i = 0; i < p->n; i++)
		out += is_stdout(&p->sink[i]);
	if (out > 1 || (out && p->json && p->n > 1))
		return diag_fail(p->d, ST_USAGE, NULL, "-o FILE",
			"standard output has one table, or one document");
	TRY(make_none(p));
	for (int i = 0; i < p->n; i++) {
		struct sink *s = &p->sink[i];
		TRY(is_rows(s) || s->format == SINK_MASKS ? open_answers(p, s) : open_arrays(p, s));
	}
	return ST_OK;
}

/* --- A batch --- */

/* Of a sample. */
static size_t row_bytes(const struct sinks *p, int output)
{
	return p->l->model->output[output].bytes / (size_t)feed_evaluated(p->f);
}

/* Not a number; of whole numbers -1, of yes or no no. */
static void fill_none(int dtype, unsigned char *out, size_t bytes)
{
	const float f32 = NAN;
	const double f64 = (double)NAN;
	const int64_t i64 = -1;
	const size_t width = dtype == STINT_F32 ? 4 : dtype == STINT_BOOL ? 1 : 8;
	const void *one = dtype == STINT_F32   ? (const void *)&f32
			  : dtype == STINT_F64 ? (const void *)&f64
					       : (const void *)&i64;
	if (dtype == STINT_BOOL)
		memset(out, 0, bytes);
	else
		for (size_t i = 0; i < bytes; i += width)
			memcpy(out + i, one, width);
}

/* Runs of samples that are good, and no numbers for one that is not. */
static enum status put_arrays(struct sinks *p, const struct sink *s, int i, int64_t n)
{
	char message[256];
	const size_t row = row_bytes(p, s->output[i]);
	int rc = 0;
	for (int64_t r = 0, end; r < n && !rc; r = end) {
		const void *from = (const unsigned char *)s->y[i] + (size_t)r * row;
		for (end = r; end < n && !*p->f->why[end];)
			end++;
		if (end == r) {
			fill_none(p->l->model->output[s->output[i]].dtype, p->none, row);
			from = p->none;
			end++;
		}
		rc = array_stream_put(s->stream, i, from, (size_t)(end - r) * row, message);
	}
	return rc ? diag_fail(p->d, ST_IO, NULL, NULL, "%s", message) : ST_OK;
}

static enum status put_answers(struct sinks *p, struct sink *s, int64_t from, int64_t n)
{
	char path[4096];
	const struct dataset *files = files_of(p);
	for (int64_t r = 0; r < n; r++) {
		const char *why = p->f->why[r];
		const struct answered one = {
			.file = files ? path : NULL, .why = why, .sample = from + r, .y = s->y};
		if (files)
			(void)dataset_sample_file(files, from + r, path, sizeof path);
		if (s->format == SINK_MASKS && !*why)
			TRY(masks_put(&s->masks, s->rows.answer, files, from + r, s->y[0], p->d));
		else if (s->format == SINK_CSV)
			answer_rows_csv(&s->rows, &one, s->f);
		else if (s->format != SINK_MASKS) {
			fputs(s->format == SINK_JSON && from + r ? ",\n" : "", s->f);
			answer_rows_json(&s->rows, &one, s->f);
			fputs(s->format == SINK_JSONL ? "\n" : "", s->f);
		}
		for (int i = 0; i < s->n; i++)
			s->y[i] = (const unsigned char *)s->y[i] + row_bytes(p, s->output[i]);
	}
	if (s->f && ferror(s->f))
		return diag_fail(p->d, ST_IO, &(struct where){.file = s->path}, NULL,
			"cannot write: %s", strerror(errno));
	return ST_OK;
}

void sinks_tell_filled(const struct sinks *p)
{
	const char *why = NULL;
	for (int k = 0; k < p->n; k++)
		for (int i = 0; i < p->sink[k].n && !why; i++)
			why = p->l->model->output[p->sink[k].output[i]].whole_batch;
	feed_tell_filled(p->f, "answers", why, p->d);
}

enum status sinks_put(struct sinks *p, int64_t from, int64_t n)
{
	for (int k = 0; k < p->n; k++) {
		struct sink *s = &p->sink[k];
		for (int i = 0; i < s->n; i++) {
			if (!(s->y[i] = load_output(p->l, s->output[i])))
				return load_lost(p->l, "prediction", p->d);
			if (s->stream)
				TRY(put_arrays(p, s, i, n));
		}
		if (!s->stream)
			TRY(put_answers(p, s, from, n));
	}
	return ST_OK;
}

/* --- The end --- */

/* "y [10, 3]", or in JSON. */
static void tell_output(const struct sinks *p, int output)
{
	static const char *const type[] = {"float32", "float64", "int64", "bool"};
	char shape[200];
	const struct stint_output *o = &p->l->model->output[output];
	int64_t dim[SAFETENSORS_RANK];
	memcpy(dim, o->dim, (size_t)o->rank * sizeof *dim);
	dim[0] = p->f->samples * rows_of(p, output);
	dims_text(o->rank, dim, shape);
	if (!p->json) {
		safe_put(stdout, o->name);
		printf(" %s", shape);
		return;
	}
	fputs("{\"name\":", stdout);
	safe_json(stdout, o->name);
	printf(",\"type\":\"%s\",\"shape\":%s}", type[o->dtype], shape);
}

static void json_bad(const struct sinks *p, FILE *f)
{
	fprintf(f, "\"samples\":%" PRId64 ",\"bad\":", p->f->samples);
	bad_json(&p->f->tally->bad, f);
	fputs("}\n", f);
}

static void tell(const struct sinks *p)
{
	fputs(p->json ? "{\"files\":[" : "", stdout);
	for (int i = 0; i < p->n; i++) {
		const struct sink *s = &p->sink[i];
		if (p->json) {
			fputs(i ? ",{\"file\":" : "{\"file\":", stdout);
			safe_json(stdout, s->path);
			fputs(",\"outputs\":[", stdout);
		} else {
			safe_put(stdout, s->path);
			fputs(": ", stdout);
		}
		for (int k = 0; k < s->n; k++) {
			fputs(!k ? "" : p->json ? "," : ", ", stdout);
			tell_output(p, s->output[k]);
		}
		fputs(p->json ? "]}" : "\n", stdout);
	}
	if (p->json) {
		fputs("],", stdout);
		json_bad(p, stdout);
	}
}

static enum status end_stdout(struct sinks *p, struct sink *s)
{
	char part[1 << 14];
	size_t n;
	if (s->f == stdout)
		return ST_OK;
	rewind(s->f);
	while ((n = fread(part, 1, sizeof part, s->f)) > 0)
		if (fwrite(part, 1, n, stdout) < n)
			break;
	return ferror(s->f) ? diag_fail(p->d, ST_IO, NULL, NULL, "cannot read a temporary file")
			    : ST_OK;
}

static enum status end_one(struct sinks *p, struct sink *s)
{
	char message[256];
	if (s->format == SINK_MASKS)
		return masks_end(&s->masks, p->d);
	if (s->format == SINK_JSON) {
		fputs("],", s->f);
		json_bad(p, s->f);
	}
	if (s->f)
		return is_stdout(s) ? end_stdout(p, s) : file_end(&s->saving, p->d);
	return array_stream_end(s->stream, message)
		       ? diag_fail(p->d, ST_IO, NULL, NULL, "%s", message)
		       : ST_OK;
}

enum status sinks_end(struct sinks *p)
{
	bool free = true;
	for (int i = 0; i < p->n; i++) {
		TRY(end_one(p, &p->sink[i]));
		free &= !is_stdout(&p->sink[i]);
	}
	if (free)
		tell(p);
	return ST_OK;
}

void sinks_drop(struct sinks *p)
{
	for (int i = 0; i < p->n; i++) {
		struct sink *s = &p->sink[i];
		array_stream_close(s->stream);
		if (s->f && s->f != stdout && is_stdout(s))
			(void)fclose(s->f);
		file_drop(&s->saving);
		folder_drop(&s->masks);
	}
}

/* Where answers go: arrays, tables, objects, folders of masks, standard output. */
#ifndef STINT_CLI_SINKS_H
#define STINT_CLI_SINKS_H

#include "api/folder.h"
#include "cli/answer_rows.h"
#include "data/array_stream.h"

enum sink_format {
	SINK_NPY,
	SINK_SAFETENSORS,
	SINK_CSV,
	SINK_JSONL,
	SINK_JSON,
	SINK_MASKS,
	SINK_FORMATS
};

/* A file, and which outputs go into it. */
struct sink {
	const char *path; /* "-": standard output */
	enum sink_format format;
	int n;
	int *output;
	struct array_stream *stream;
	struct answer_rows rows;
	struct file_saving saving;
	FILE *f;        /* of rows */
	const void **y; /* [n] */
	struct folder masks;
};

struct sinks {
	struct arena *a;
	const struct loaded *l;
	const struct feed *f;
	struct answer_options *options;
	const char *format; /* --format; NULL: by the names' endings */
	bool json;          /* standard output has one document */
	int n;
	struct sink sink[ARGS_MAX];
	unsigned char *none; /* a row of no numbers */
	struct diag *d;
};

/* "[NAME=]FILE": one output, or all that have an axis of samples. */
enum status sinks_add(struct sinks *p, const char *text);
enum status sinks_open(struct sinks *p);
/* Warns of answers that depend on what the last batch is filled up with. */
void sinks_tell_filled(const struct sinks *p);
/* The first `n` samples of a batch, which are samples `from` on; f->why says which are bad. */
enum status sinks_put(struct sinks *p, int64_t from, int64_t n);
/* All get their names, and what was written is told, where standard output is free for that. */
enum status sinks_end(struct sinks *p);
/* What was not ended goes. */
void sinks_drop(struct sinks *p);

#endif

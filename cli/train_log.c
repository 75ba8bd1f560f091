#include "cli/train_log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status fails(const struct train_log *log)
{
	return diag_fail(log->diag, ST_IO, &(struct where){.file = log->path}, NULL,
		"cannot write: %s", strerror(errno));
}

/* A byte is written to a file, and taken back: opening it works on a full disk, too. */
enum status train_log_open(struct train_log *log, const char *path, bool append, struct diag *d)
{
	struct stat st;
	*log = (struct train_log){.path = path, .diag = d};
	if (!path)
		return ST_OK;
	log->file = fopen(path, append ? "a" : "w");
	if (!log->file || fstat(fileno(log->file), &st) != 0)
		return fails(log);
	const int fd = fileno(log->file);
	if (S_ISREG(st.st_mode) &&
		(pwrite(fd, "\n", 1, st.st_size) != 1 || ftruncate(fd, st.st_size) != 0))
		return fails(log);
	return ST_OK;
}

/* A number, or null where JSON has none. */
static void put_number(const struct train_log *log, const char *name, double v)
{
	fprintf(log->file, isfinite(v) ? ",\"%s\":%.9g" : ",\"%s\":null", name, v);
}

/* A disk that fills up does not end a training; it is told once, and by the exit code. */
static void end_line(struct train_log *log)
{
	fputs("}\n", log->file);
	if ((fflush(log->file) == 0 && !ferror(log->file)) || log->lost)
		return;
	log->lost = true;
	diag_warn(log->diag, &(struct where){.file = log->path}, NULL,
		"cannot write: %s; training goes on without it", strerror(errno));
}

void train_log_step(
	struct train_log *log, const struct checkpoint_place *at, double lr, double loss)
{
	if (!log->file)
		return;
	fprintf(log->file, "{\"step\":%" PRId64 ",\"epoch\":%" PRId64 ",\"lr\":%.9g", at->step,
		at->epoch, lr);
	put_number(log, "loss", loss);
	end_line(log);
}

void train_log_score(
	struct train_log *log, const struct checkpoint_place *at, const struct evaluation *e)
{
	if (!log->file)
		return;
	fprintf(log->file, "{\"epoch\":%" PRId64 ",\"eval_samples\":%" PRId64, at->epoch,
		e->samples);
	put_number(log, "eval_loss", e->loss);
	for (int i = 0; i < e->metrics.n; i++)
		if (e->metrics.item[i].which != METRIC_CONFUSION)
			put_number(log, e->metrics.item[i].label, metrics_value(&e->metrics, i));
	end_line(log);
}

enum status train_log_close(struct train_log *log, enum status st)
{
	const bool bad = log->file && fclose(log->file) != 0;
	log->file = NULL;
	if (st == ST_OK && log->lost)
		return diag_fail(log->diag, ST_IO, &(struct where){.file = log->path}, NULL,
			"lines of the log are missing");
	return st == ST_OK && bad ? fails(log) : st;
}

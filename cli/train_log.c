#include "cli/train_log.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/log_text.h"
#include "cli/whole_path.h"
#include "train/event_file.h"

struct log_sink {
	const char *path; /* of the file; while it is opened, the folder of event files */
	void (*put)(struct text *out, const struct log_record *r);
	FILE *file;
	bool lost; /* a line could not be written, and that was said */
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static enum status fails(const struct train_log *log, const char *path)
{
	return diag_fail(log->diag, ST_IO, &(struct where){.file = path}, NULL, "cannot write: %s",
		strerror(errno));
}

/* Frees `t`. A disk that fills up does not end a training; it is told once, and by the exit code.
 */
static void put(struct train_log *log, struct log_sink *s, struct text *t)
{
	if (t->failed)
		errno = ENOMEM;
	const bool written = !t->failed &&
			     (!t->len || fwrite(t->s, 1, t->len, s->file) == t->len) &&
			     fflush(s->file) == 0 && !ferror(s->file);
	if (!written && !s->lost)
		diag_warn(log->diag, &(struct where){.file = s->path}, NULL,
			"cannot write: %s; training goes on without it", strerror(errno));
	s->lost |= !written;
	text_free(t);
}

static void put_all(struct train_log *log, const struct log_record *r)
{
	for (int i = 0; i < log->n; i++) {
		struct text t = {0};
		log->sink[i].put(&t, r);
		put(log, &log->sink[i], &t);
	}
}

/* --- Opening --- */

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);
	return n >= m && !strcmp(s + n - m, end);
}

/* What is written, by the name. */
static void choose(struct log_sink *s, const char *text)
{
	static const char tensorboard[] = "tensorboard:";
	const size_t prefix = sizeof tensorboard - 1;
	struct stat st;
	s->path = text;
	s->put = ends_with(text, ".csv") ? log_csv : log_json;
	if (!strncmp(text, tensorboard, prefix))
		*s = (struct log_sink){.path = text + prefix, .put = log_events};
	else if (ends_with(text, "/") || (stat(text, &st) == 0 && S_ISDIR(st.st_mode)))
		s->put = log_events;
}

/* A byte is written to a file, and taken back: opening it works on a full disk, too. */
static enum status open_file(
	struct train_log *log, struct log_sink *s, const struct train_log_start *start)
{
	struct stat st;
	s->file = fopen(s->path, start->append ? "a" : "w");
	if (!s->file || fstat(fileno(s->file), &st) != 0)
		return fails(log, s->path);
	const int fd = fileno(s->file);
	if (S_ISREG(st.st_mode) &&
		(pwrite(fd, "\n", 1, st.st_size) != 1 || ftruncate(fd, st.st_size) != 0))
		return fails(log, s->path);
	return ST_OK;
}

/* A file that goes on must have the columns that are to come; *fresh: it has none yet. */
static enum status check_columns(struct train_log *log, struct arena *a, const char *path,
	const struct text *columns, bool *fresh)
{
	FILE *f = fopen(path, "r");
	char *have = arena_alloc(a, columns->len + 1, 1);
	const size_t n = f && have ? fread(have, 1, columns->len, f) : 0;
	if (f)
		fclose(f);
	*fresh = n == 0;
	if (!have)
		return diag_nomem(log->diag);
	if (*fresh || (n == columns->len && !memcmp(have, columns->s, n)))
		return ST_OK;
	return diag_fail(log->diag, ST_USAGE, &(struct where){.file = path},
		"name another file, or log the metrics that it has",
		"its columns are others than %.*s", (int)columns->len - 1, columns->s);
}

static enum status open_csv(struct train_log *log, struct arena *a, struct log_sink *s,
	const struct train_log_start *start)
{
	struct text columns = {0};
	bool fresh = true;
	log_csv_columns(&columns, log->m, log->e);
	enum status st = columns.failed ? diag_nomem(log->diag) : ST_OK;
	if (st == ST_OK && start->append)
		st = check_columns(log, a, s->path, &columns, &fresh);
	if (st == ST_OK)
		st = open_file(log, s, start);
	if (st == ST_OK && fresh)
		put(log, s, &columns);
	text_free(&columns);
	return st;
}

static const char event_prefix[] = "events.out.tfevents.";

/* TensorBoard would draw both runs as one. */
static enum status refuse_earlier(struct train_log *log, const char *folder)
{
	const struct dirent *e;
	bool found = false;
	DIR *dir = opendir(folder);
	while (dir && !found && (e = readdir(dir)))
		found = !strncmp(e->d_name, event_prefix, sizeof event_prefix - 1);
	if (dir)
		closedir(dir);
	return !found ? ST_OK
		      : diag_fail(log->diag, ST_USAGE, &(struct where){.file = folder},
				"go on with --resume, or name another folder",
				"holds event files of an earlier run");
}

/* A run that goes on gets a file of its own, as TensorBoard likes it: a killed one's last record
 * may be cut. */
static enum status open_events(struct train_log *log, struct arena *a, struct log_sink *s,
	const struct train_log_start *start)
{
	enum { TRIES = 1000 };
	struct text first = {0};
	char host[65] = "";
	const char *folder = s->path;
	const double time = now();
	(void)gethostname(host, sizeof host - 1);
	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		return fails(log, folder);
	if (!start->append)
		TRY(refuse_earlier(log, folder));
	for (int i = 0; i < TRIES && !s->file; i++) {
		s->path = arena_printf(a, "%s%s%s%010" PRId64 ".%s.%ld.%d", folder,
			ends_with(folder, "/") ? "" : "/", event_prefix, (int64_t)time, host,
			(long)getpid(), i);
		if (!s->path)
			return diag_nomem(log->diag);
		s->file = fopen(s->path, "wbx");
		if (!s->file && errno != EEXIST)
			break;
	}
	if (!s->file)
		return fails(log, folder);
	event_begin(&first, time);
	if (start->append)
		event_restart(&first, time, start->step + 1);
	put(log, s, &first);
	return s->lost ? fails(log, s->path) : ST_OK;
}

enum status train_log_open(
	struct train_log *log, struct arena *a, const struct train_log_start *start, struct diag *d)
{
	*log = (struct train_log){.m = start->m, .e = start->e, .diag = d};
	log->sink = ARENA_ARRAY(a, struct log_sink, start->to->n);
	if (!log->sink)
		return diag_nomem(d);
	for (int i = 0; i < start->to->n; i++) {
		struct log_sink *s = &log->sink[log->n++];
		choose(s, start->to->value[i]);
		s->path = whole_path(a, s->path);
		if (!s->path)
			return diag_nomem(d);
		TRY(s->put == log_events    ? open_events(log, a, s, start)
			: s->put == log_csv ? open_csv(log, a, s, start)
					    : open_file(log, s, start));
	}
	return ST_OK;
}

/* --- Lines --- */

void train_log_step(struct train_log *log, const struct checkpoint_place *at, double lr,
	double loss, const double *part)
{
	put_all(log, &(struct log_record){.what = LOG_STEP,
			     .at = at,
			     .m = log->m,
			     .lr = lr,
			     .loss = loss,
			     .part = part,
			     .e = log->e,
			     .time = now()});
}

void train_log_score(struct train_log *log, const struct checkpoint_place *at, bool within)
{
	put_all(log, &(struct log_record){.what = LOG_SCORE,
			     .within = within,
			     .at = at,
			     .m = log->m,
			     .e = log->e,
			     .time = now()});
}

void train_log_epoch(struct train_log *log, const struct checkpoint_place *at, double seconds,
	double data_seconds)
{
	put_all(log, &(struct log_record){.what = LOG_EPOCH,
			     .at = at,
			     .m = log->m,
			     .e = log->e,
			     .seconds = seconds,
			     .data_seconds = data_seconds,
			     .time = now()});
}

enum status train_log_close(struct train_log *log, enum status st)
{
	for (int i = 0; i < log->n; i++) {
		struct log_sink *s = &log->sink[i];
		const bool bad = s->file && fclose(s->file) != 0;
		s->file = NULL;
		if (st == ST_OK && s->lost)
			st = diag_fail(log->diag, ST_IO, &(struct where){.file = s->path}, NULL,
				"lines of the log are missing");
		else if (st == ST_OK && bad)
			st = fails(log, s->path);
	}
	log->n = 0;
	return st;
}

#include "cli/ranks.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/interrupt.h"

/* What DIR/stint_mpi.so has (runtime/stint_mpi.h). */
struct stint_ranks_part {
	int (*start)(int *rank, int *n, char message[256]);
	int (*init)(stint_step *s);
	void (*free)(stint_step *s);
	void (*patience)(stint_step *s, double seconds);
	int (*most)(stint_step *s, int64_t *value);
	int (*add)(stint_step *s, int64_t *x, size_t n);
	int (*merge)(stint_step *s, void *data, size_t bytes);
	int (*check)(stint_step *s);
	void (*fast)(stint_step *s, int fast);
	int (*measure)(double link[3], char message[256]);
	void (*end)(void);
	void (*abort)(int code);
};

enum { START_PATIENCE = 300 }; /* who starts late has to load its files first */

static int number_of(const char *name)
{
	const char *text = getenv(name);
	return text ? atoi(text) : 0;
}

enum status ranks_asked(bool *asked, struct diag *d)
{
	/* Open MPI; MPICH and its kin, also by Slurm's srun; srun with PMIx */
	*asked = number_of("OMPI_COMM_WORLD_SIZE") > 1 || number_of("PMI_SIZE") > 1 ||
		 (getenv("PMIX_RANK") && number_of("SLURM_STEP_NUM_TASKS") > 1);
	if (*asked || number_of("WORLD_SIZE") < 2 || !getenv("RANK"))
		return ST_OK;
	return diag_fail(d, ST_USAGE, NULL,
		"mpirun -n N stint train DIR ..., or srun, or --ranks N",
		"RANK and WORLD_SIZE are set, but no MPI has started this process");
}

static bool symbol(void *handle, const char *name, void *function)
{
	void *p = dlsym(handle, name);
	memcpy(function, &p, sizeof p);
	return p != NULL;
}

static enum status open_part(struct arena *a, const char *dir, struct ranks *r, struct diag *d)
{
	const char *path = arena_printf(a, "%s%s/stint_mpi.so", dir[0] == '/' ? "" : "./", dir);
	struct stint_ranks_part *p = ARENA_NEW(a, struct stint_ranks_part);
	const char *source = arena_printf(a, "%s/stint_mpi.c", dir);
	const char *hint = arena_printf(a, "`make -C %s stint_mpi.so` builds it, with mpicc", dir);
	if (!path || !p || !source || !hint)
		return diag_nomem(d);
	if (access(source, F_OK) && access(path, F_OK))
		return diag_fail(d, ST_USAGE, &(struct where){.file = dir},
			"compile it with --micro-batch, and for GPUs with --ranks N",
			"is a step of one process");
	/* Open MPI's own parts look for its names in what the program has opened. */
	r->handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!r->handle)
		return diag_fail(d, ST_IO, NULL, hint, "cannot load what knows MPI: %s", dlerror());
	r->part = p;
	if (symbol(r->handle, "stint_ranks_start", &p->start) &&
		symbol(r->handle, "stint_init_world", &p->init) &&
		symbol(r->handle, "stint_free_ranks", &p->free) &&
		symbol(r->handle, "stint_ranks_patience", &p->patience) &&
		symbol(r->handle, "stint_ranks_most", &p->most) &&
		symbol(r->handle, "stint_ranks_add", &p->add) &&
		symbol(r->handle, "stint_ranks_merge", &p->merge) &&
		symbol(r->handle, "stint_check_ranks", &p->check) &&
		symbol(r->handle, "stint_ranks_fast", &p->fast) &&
		symbol(r->handle, "stint_ranks_measure", &p->measure) &&
		symbol(r->handle, "stint_ranks_end", &p->end) &&
		symbol(r->handle, "stint_ranks_abort", &p->abort))
		return ST_OK;
	return diag_fail(d, ST_INVALID, &(struct where){.file = path}, "compile the model again",
		"is not of this stint");
}

static void errors_only(void *user, enum diag_level level, const struct where *w,
	const char *message, const char *hint)
{
	const struct ranks *r = user;
	char named[1024];
	snprintf(named, sizeof named, "rank %d: %s", r->rank, message);
	if (level == DIAG_ERROR && !r->agreed && r->told.put)
		r->told.put(r->told.user, level, w, named, hint);
}

/* The first rank speaks for all. */
static void be_quiet(struct ranks *r, struct diag *d)
{
	const int nowhere = open("/dev/null", O_WRONLY);
	if (nowhere >= 0) {
		fflush(stdout);
		(void)dup2(nowhere, STDOUT_FILENO);
		close(nowhere);
	}
	r->told = *d;
	d->put = errors_only;
	d->user = r;
}

enum status ranks_start(struct arena *a, const char *dir, struct ranks *r, struct diag *d)
{
	bool asked;
	char message[256];
	*r = (struct ranks){.n = 1, .patience = START_PATIENCE};
	TRY(ranks_asked(&asked, d));
	if (!asked)
		return ST_OK;
	TRY(open_part(a, dir, r, d));
	setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* whole lines, among those of others */
	if (r->part->start(&r->rank, &r->n, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	if (r->rank)
		be_quiet(r, d);
	return ST_OK;
}

/* Launchers bind ranks to processors: threads that share one are slow. */
static void warn_of_binding(const struct ranks *r, const struct loaded *l, struct diag *d)
{
	cpu_set_t set;
	if (r->rank || sched_getaffinity(0, sizeof set, &set) ||
		CPU_COUNT(&set) >= l->model->threads)
		return;
	diag_warn(d, NULL, "mpirun --bind-to none, or compile with --threads",
		"this rank may use %d processor%s, its step was compiled for %d threads",
		CPU_COUNT(&set), CPU_COUNT(&set) == 1 ? "" : "s", l->model->threads);
}

static enum status told(const struct loaded *l, int rc, struct diag *d)
{
	return rc ? load_fail(l, rc, "ranks", d) : ST_OK;
}

/* What ranks differ in, they all find: the first one tells it. */
static enum status told_by_all(struct ranks *r, const struct loaded *l, int rc, struct diag *d)
{
	r->agreed = rc == STINT_BAD_DATA;
	return told(l, rc, d);
}

enum status ranks_fit(
	struct arena *a, const char *dir, const struct stint_model *m, int64_t n, struct diag *d)
{
	if (m->disk && n > 1)
		return diag_fail(d, ST_USAGE, &(struct where){.file = dir},
			"compile without --offload disk",
			"several ranks do not train with weights in a file yet");
	if (m->gpu && !m->ranks && n > 1)
		return diag_fail(d, ST_USAGE, &(struct where){.file = dir},
			arena_printf(a, "compile with --ranks %" PRId64, n),
			"was compiled for one GPU, and these are %" PRId64 " ranks", n);
	if (!m->ranks || m->ranks == n)
		return ST_OK;
	const char *hint =
		m->ranks == 1
			? arena_printf(a, "train alone, or compile with --ranks %" PRId64, n)
			: arena_printf(a,
				  "`stint train %s ... --ranks %d`, or mpirun -n %d, or srun; or "
				  "compile it for others",
				  dir, m->ranks, m->ranks);
	return hint ? diag_fail(d, ST_USAGE, &(struct where){.file = dir}, hint,
			      "was compiled for %d rank%s, %s %" PRId64, m->ranks,
			      m->ranks > 1 ? "s" : "", n > 1 ? "these are" : "this is", n)
		    : diag_nomem(d);
}

enum status ranks_take(
	struct arena *a, const char *dir, struct ranks *r, const struct loaded *l, struct diag *d)
{
	r->agreed = true; /* all find the same, and the first one tells it */
	TRY(ranks_fit(a, dir, l->model, r->n, d));
	r->agreed = false;
	if (r->n == 1)
		return ST_OK;
	if (!load_on_gpu(l))
		warn_of_binding(r, l, d);
	TRY(told_by_all(r, l, r->part->init(l->step), d));
	r->part->patience(l->step, r->patience);
	return ST_OK;
}

enum status ranks_check(struct ranks *r, const struct loaded *l, struct diag *d)
{
	return r->n == 1 ? ST_OK : told_by_all(r, l, r->part->check(l->step), d);
}

enum status ranks_same(struct ranks *r, const struct loaded *l, double patience, struct diag *d)
{
	TRY(ranks_check(r, l, d));
	r->patience = patience;
	if (r->n > 1)
		r->part->patience(l->step, patience);
	return ST_OK;
}

void ranks_wait(const struct ranks *r, const struct loaded *l, double patience)
{
	if (r->n > 1)
		r->part->patience(l->step, patience > 0 ? patience : r->patience);
}

enum status ranks_most(
	const struct ranks *r, const struct loaded *l, int64_t *value, struct diag *d)
{
	return r->n == 1 ? ST_OK : told(l, r->part->most(l->step, value), d);
}

enum status ranks_reduce(const struct ranks *r, const struct loaded *l, bool fast, struct diag *d)
{
	int64_t any = fast;
	TRY(ranks_most(r, l, &any, d));
	if (any && !fast)
		return diag_fail(d, ST_USAGE, NULL, "start all ranks with the same options",
			"another rank has --reduce fast");
	if (r->n > 1)
		r->part->fast(l->step, fast);
	return ST_OK;
}

enum status ranks_add(
	const struct ranks *r, const struct loaded *l, int64_t *x, int64_t n, struct diag *d)
{
	return r->n == 1 ? ST_OK : told(l, r->part->add(l->step, x, (size_t)n), d);
}

enum status ranks_merge(
	const struct ranks *r, const struct loaded *l, void *data, int64_t bytes, struct diag *d)
{
	return r->n == 1 ? ST_OK : told(l, r->part->merge(l->step, data, (size_t)bytes), d);
}

enum status ranks_measure(const struct ranks *r, double link[3], struct diag *d)
{
	char message[256];
	return r->part->measure(link, message) ? diag_fail(d, ST_IO, NULL, NULL, "%s", message)
					       : ST_OK;
}

void ranks_end(struct ranks *r, const struct loaded *l, enum status st, struct diag *d)
{
	if (!r->handle || r->n == 1)
		return;
	if (r->rank) { /* r goes */
		d->put = r->told.put;
		d->user = r->told.user;
	}
	fflush(NULL);
	/* interrupted and diverged are all, at the same step */
	if (st != ST_OK && st != ST_INTERRUPTED && st != ST_DIVERGED && !r->agreed)
		r->part->abort((int)st);
	if (l->step && l->step->ranks)
		r->part->free(l->step);
	r->part->end();
}

/* --- Starting them --- */

/* Set for what --ranks has started. */
#define STARTED "STINT_RANKS_STARTED"

bool ranks_started(void)
{
	return getenv(STARTED) != NULL;
}

/* This command's words, and --resume; NULL: no memory. */
static char **own_words(struct arena *a, int64_t n, bool resume)
{
	enum { MOST = 1 << 20, FIRST = 3 };
	char *text = arena_alloc(a, MOST, 1);
	FILE *f = text ? fopen("/proc/self/cmdline", "r") : NULL;
	const size_t length = f ? fread(text, 1, MOST - 1, f) : 0;
	int words = 0;
	if (f)
		fclose(f);
	for (size_t i = 0; i < length; i++)
		words += text[i] == '\0';
	char **word = length ? ARENA_ARRAY(a, char *, words + FIRST + 2) : NULL;
	if (!word)
		return NULL;
	word[0] = "mpirun";
	word[1] = "-n";
	word[2] = arena_printf(a, "%" PRId64, n);
	for (int i = 0; i < words; i++, text += strlen(text) + 1)
		word[FIRST + i] = text;
	word[FIRST] = arena_printf(a, "/proc/%ld/exe", (long)getpid()); /* of this very stint */
	if (resume)
		word[FIRST + words] = "--resume";
	return word[2] && word[FIRST] ? word : NULL;
}

/* Open MPI's settings, which others pass over: more ranks than processors, threads wherever there
 * is room, time to save when a signal comes, and containers whose user is root. */
static bool set_environment(void)
{
	return !setenv(STARTED, "1", 1) && !setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0) &&
	       !setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0) &&
	       !setenv("OMPI_MCA_odls_base_sigkill_timeout", "60", 0) &&
	       !setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0) &&
	       !setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
}

/* What mpirun ended with as a status. */
static enum status launched(int status, struct diag *d)
{
	const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	if (code == 127)
		return diag_fail(d, ST_IO, NULL,
			"install an MPI: Debian's openmpi-bin, libopenmpi-dev",
			"cannot start mpirun");
	if ((code >= 0 && code <= ST_DIVERGED && code != ST_INTERNAL) || code == ST_INTERRUPTED)
		return (enum status)code; /* told by a rank */
	return diag_fail(d, ST_LOST, NULL, "its last lines, above, say which",
		"a rank ended before its time, and with it the others");
}

static enum status launch_once(char **word, struct diag *d)
{
	int status = 0;
	const pid_t pid = fork();
	if (pid == 0) {
		execvp(word[0], word);
		_exit(127);
	}
	if (pid < 0)
		return diag_fail(d, ST_IO, NULL, NULL, "cannot start mpirun: %s", strerror(errno));
	interrupt_listen();
	bool passed = false;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (interrupt_asked() && !passed)
			passed = kill(pid, SIGTERM) == 0;
		(void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	return launched(status, d);
}

enum status ranks_launch(struct arena *a, int64_t n, bool fixed, int64_t restart, struct diag *d)
{
	if (!set_environment())
		return diag_nomem(d);
	for (bool resume = false;; resume = true) {
		char **word = own_words(a, n, resume);
		if (!word)
			return diag_nomem(d);
		const enum status st = launch_once(word, d);
		if (st != ST_LOST || restart-- == 0 || n == 1)
			return st;
		n -= !fixed;
		diag_note(d, NULL, NULL,
			"going on from the last checkpoint with %" PRId64 " rank%s", n,
			n == 1 ? "" : "s");
	}
}

enum status ranks_launch_for(
	struct arena *a, const char *dir, int64_t n, int64_t restart, bool *done, struct diag *d)
{
	bool asked;
	*done = false;
	if (!n || ranks_started())
		return ST_OK;
	TRY(ranks_asked(&asked, d));
	if (asked)
		return ST_OK;
	if (n < 1 || n > 1 << 20)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--ranks wants 1 or more");
	struct loaded l;
	enum status st = load_model(a, dir, &l, d);
	const bool fixed = st == ST_OK && l.model->ranks;
	if (st == ST_OK)
		st = ranks_fit(a, dir, l.model, n, d);
	load_close(&l);
	*done = true;
	return st == ST_OK ? ranks_launch(a, n, fixed, restart, d) : st;
}

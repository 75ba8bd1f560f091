/* Launches: threads as fibers, warp by warp until none can go on, barriers, blocks one after the
 * other. */
#include "tests/gpu/shim/shim.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "tests/gpu/shim/parts.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(SANITIZED)
enum { STACK = 256 << 10, CATCH_FAULTS = 0 };
#else
enum { STACK = 128 << 10, CATCH_FAULTS = 1 };
#endif
enum { GUARD = 4096 };

/* Of the launch under way, for the signals' handler. */
static struct shim *running;

const char *shim_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

const char *shim_name_thread(const struct shim *s, int number, char out[static 80])
{
	const struct shim_index b = s->block, t = s->thread[number].index;
	snprintf(out, 80, "block (%u,%u,%u), thread (%u,%u,%u)", b.x, b.y, b.z, t.x, t.y, t.z);
	return out;
}

void shim_fail(struct shim *s, const struct shim_site *at, const char *fmt, ...)
{
	struct thread *t = s->current;
	char name[80];
	int n = 0;
	va_list ap;
	if (!s->failed) {
		if (at && at->line >= 0)
			n = snprintf(s->error, SHIM_TEXT, "%s:%d: ", shim_file(at->file), at->line);
		else if (at && at->file[0])
			n = snprintf(s->error, SHIM_TEXT, "%s: ", at->file);
		if (s->launch)
			n += snprintf(
				s->error + n, SHIM_TEXT - (size_t)n, "%s: ", s->launch->kernel);
		if (t)
			n += snprintf(s->error + n, SHIM_TEXT - (size_t)n,
				"%s: ", shim_name_thread(s, t->number, name));
		va_start(ap, fmt);
		vsnprintf(s->error + n, SHIM_TEXT - (size_t)n, fmt, ap);
		va_end(ap);
	}
	s->failed = true;
	if (t) /* for good: the stack is given up */
		fiber_switch(&t->fiber, &s->main, true);
}

void shim_yield(struct shim *s)
{
	struct thread *t = s->current;
	shim_settle(s);
	fiber_switch(&t->fiber, &s->main, false);
}

static void run_thread(void *arg)
{
	struct thread *t = arg;
	struct shim *s = t->shim;
	fiber_begin(&s->main);
	s->call(s->launch->args);
	shim_settle(s);
	t->state = DONE;
	if (t->ncopies)
		shim_fail(
			s, NULL, "it ended with %d asynchronous copies not waited for", t->ncopies);
	fiber_switch(&t->fiber, &s->main, true);
}

static void resume(struct shim *s, struct thread *t)
{
	s->current = t;
	s->here->thread = t->index;
	fiber_switch(&s->main, &t->fiber, false);
	s->current = NULL;
}

/* Runs a warp until none of its lanes can go on. Whether any did. */
static bool run_warp(struct shim *s, int warp)
{
	const int first = warp * WARP, left = s->nthreads - first, n = left < WARP ? left : WARP;
	bool any = false, some = true;
	while (some && !s->failed) {
		some = false;
		for (int i = 0; i < n && !s->failed; i++) {
			const int lane = s->launch->order == SHIM_FORWARD ? i : n - 1 - i;
			if (s->thread[first + lane].state != READY)
				continue;
			resume(s, &s->thread[first + lane]);
			some = any = true;
		}
	}
	return any;
}

static int count_state(const struct shim *s, enum shim_state state)
{
	int n = 0;
	for (int i = 0; i < s->nthreads; i++)
		n += s->thread[i].state == state;
	return n;
}

static void start_threads(struct shim *s)
{
	const struct shim_index size = s->here->block_size;
	for (int i = 0; i < s->nthreads; i++) {
		struct thread *t = &s->thread[i];
		const unsigned k = (unsigned)i;
		t->shim = s;
		t->number = i;
		t->index = (struct shim_index){
			k % size.x, k / size.x % size.y, k / size.x / size.y};
		t->state = READY;
		t->ncopies = 0;
		t->groups = 0;
		memset(t->seen, 0, sizeof t->seen);
		t->seen[i % WARP] = 1;
		fiber_make(&t->fiber, s->stacks + (size_t)i * s->stack_bytes + GUARD,
			s->stack_bytes - GUARD, run_thread, t);
	}
}

static void run_block(struct shim *s)
{
	const int warps = (s->nthreads + WARP - 1) / WARP;
	s->serial++;
	s->epoch = 0;
	s->here->block = s->block;
	shim_poison(s);
	start_threads(s);
	while (!s->failed && count_state(s, DONE) < s->nthreads) {
		bool any = false;
		for (int i = 0; i < warps && !s->failed; i++)
			any |= run_warp(s, s->launch->order == SHIM_FORWARD ? i : warps - 1 - i);
		if (s->failed)
			return;
		if (count_state(s, IN_BLOCK) == s->nthreads)
			shim_barrier_open(s);
		else if (!any)
			shim_deadlock(s);
	}
}

static void run_blocks(struct shim *s)
{
	const struct shim_index grid = s->here->grid_size;
	const unsigned long n = (unsigned long)grid.x * grid.y * grid.z;
	for (unsigned long i = 0; i < n && !s->failed; i++) {
		const unsigned long k = s->launch->order == SHIM_FORWARD ? i : n - 1 - i;
		s->block = (struct shim_index){(unsigned)(k % grid.x),
			(unsigned)(k / grid.x % grid.y), (unsigned)(k / grid.x / grid.y)};
		run_block(s);
	}
}

/* --- Signals: a kernel that goes astray, or on and on --- */

static void on_signal(int number, siginfo_t *info, void *context)
{
	struct shim *s = running;
	(void)context;
	if (!s || !s->current) {
		if (number != SIGALRM) {
			signal(number, SIG_DFL);
			raise(number);
		}
		return;
	}
	if (number == SIGALRM)
		shim_fail(s, NULL, "stopped after %d seconds",
			s->launch->seconds ? s->launch->seconds : 60);
	else if (number == SIGSEGV || number == SIGBUS)
		shim_fail(s, NULL, "an access to %p: no memory, or a full stack", info->si_addr);
	else
		shim_fail(s, NULL, number == SIGFPE ? "a quotient that does not exist" : "a trap");
}

static const int caught[] = {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { CAUGHT = sizeof caught / sizeof *caught, SIGNAL_STACK = 64 << 10 };
struct signals {
	struct sigaction before[CAUGHT];
	stack_t stack, stack_before;
};

static bool signals_take(struct signals *g, const struct shim *s)
{
	struct sigaction action = {
		.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	g->stack = (stack_t){.ss_sp = malloc(SIGNAL_STACK), .ss_size = SIGNAL_STACK};
	if (!g->stack.ss_sp)
		return false;
	for (int i = 0; i < (CATCH_FAULTS ? CAUGHT : 0); i++)
		sigaction(caught[i], &action, &g->before[i]);
	if (CATCH_FAULTS) {
		const struct itimerval timer = {
			.it_value.tv_sec = s->launch->seconds ? s->launch->seconds : 60,
			.it_interval.tv_sec = 1};
		sigaltstack(&g->stack, &g->stack_before);
		setitimer(ITIMER_REAL, &timer, NULL);
	}
	return true;
}

static void signals_give(struct signals *g)
{
	if (CATCH_FAULTS) {
		setitimer(ITIMER_REAL, &(struct itimerval){{0}, {0}}, NULL);
		for (int i = 0; i < CAUGHT; i++)
			sigaction(caught[i], &g->before[i], NULL);
		sigaltstack(&g->stack_before, NULL);
	}
	free(g->stack.ss_sp);
}

/* --- Opening and launching --- */

static bool make_threads(struct shim *s)
{
	s->stack_bytes = STACK;
	s->thread = calloc(MAX_THREADS, sizeof *s->thread);
	s->stacks = mmap(NULL, MAX_THREADS * s->stack_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!s->thread || s->stacks == MAP_FAILED)
		return false;
	for (size_t i = 0; i < MAX_THREADS; i++)
		mprotect(s->stacks + i * s->stack_bytes, GUARD, PROT_NONE);
	return true;
}

static void *dynamic_memory(struct shim *s)
{
	if (!s->launch->dynamic)
		shim_fail(s, NULL, "DYNAMIC_SHARED, and the launch gives none");
	return s->dynamic;
}

static void report(struct shim *s, struct shim_site at, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	shim_fail(s, &at, "%s", text);
}

struct shim *shim_open(const char *library, char error[static SHIM_TEXT])
{
	struct shim *s = calloc(1, sizeof *s);
	const int *checked;
	if (!s || !make_threads(s)) {
		snprintf(error, SHIM_TEXT, "out of memory");
		free(s);
		return NULL;
	}
	if (!library_open(&s->library, library, error)) {
		shim_close(s);
		return NULL;
	}
	s->hooks = library_symbol(&s->library, "", "shim_hooks");
	s->here = library_symbol(&s->library, "", "shim_here");
	checked = library_symbol(&s->library, "", "shim_checked");
	if (!s->hooks || !s->here || !checked) {
		snprintf(error, SHIM_TEXT, "%s: not made by build.sh", library);
		shim_close(s);
		return NULL;
	}
	s->checked = *checked;
	*s->hooks = (struct shim_hooks){s, shim_meet, shim_barrier, shim_copy_start,
		shim_copy_commit, shim_copy_wait, dynamic_memory, shim_access, report};
	return s;
}

void shim_close(struct shim *s)
{
	if (!s)
		return;
	for (int i = 0; s->thread && i < MAX_THREADS; i++)
		free(s->thread[i].copies);
	for (size_t i = 0; i < s->cappages; i++)
		free(s->page[i].byte);
	free(s->page);
	if (s->stacks && s->stacks != MAP_FAILED)
		munmap(s->stacks, MAX_THREADS * s->stack_bytes);
	free(s->thread);
	library_close(&s->library);
	free(s);
}

bool shim_checks(const struct shim *s)
{
	return s->checked;
}

static struct shim_index three(const unsigned n[3])
{
	return (struct shim_index){n[0] ? n[0] : 1, n[1] ? n[1] : 1, n[2] ? n[2] : 1};
}

static bool prepare(struct shim *s, const struct shim_launch *l)
{
	const int *most = library_symbol(&s->library, "shim_threads_", l->kernel);
	void *call = library_symbol(&s->library, "shim_call_", l->kernel);
	const struct shim_index b = three(l->block);
	s->here->block_size = b;
	s->here->grid_size = three(l->grid);
	if (!call || !most) {
		shim_fail(s, NULL, "no such kernel");
		return false;
	}
	memcpy(&s->call, &call, sizeof call);
	if (s->call(NULL) != l->nargs) {
		shim_fail(s, NULL, "%d arguments, it takes %d", l->nargs, s->call(NULL));
		return false;
	}
	if ((unsigned long)b.x * b.y * b.z > (unsigned long)*most || *most > MAX_THREADS) {
		shim_fail(s, NULL, "%ux%ux%u threads, its __launch_bounds__ are %d", b.x, b.y, b.z,
			*most);
		return false;
	}
	s->nthreads = (int)(b.x * b.y * b.z);
	return true;
}

const char *shim_launch(struct shim *s, const struct shim_launch *l)
{
	struct signals signals;
	s->failed = false;
	s->error[0] = '\0';
	s->launch = l;
	s->last_range = NULL;
	s->store.at = NULL;
	s->first_serial = s->serial + 1;
	if (!prepare(s, l))
		goto done;
	if (!shim_memory_new(s) || !signals_take(&signals, s)) {
		shim_fail(s, NULL, "out of memory");
		goto free;
	}
	running = s;
	run_blocks(s);
	running = NULL;
	signals_give(&signals);
free:
	shim_memory_free(s);
done:
	s->launch = NULL;
	return s->failed ? s->error : NULL;
}

#include "cli/make.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/interrupt.h"

/* In a group of its own, so that all that make started can be ended. */
static void become_make(const char *work, const char *dir, const char *log)
{
	enum { MOST = 8 }; /* sources of a step are few, and step.c is most of the work */
	char jobs[16];
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	snprintf(jobs, sizeof jobs, "-j%d", cores < 1 ? 1 : cores > MOST ? MOST : (int)cores);
	signal(SIGPIPE, SIG_DFL);
	const int in = open("/dev/null", O_RDONLY);
	const int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (setenv("STINT_PLACE", dir, 1) == 0 && setpgid(0, 0) == 0 && in >= 0 && out >= 0 &&
		dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
		dup2(out, STDERR_FILENO) >= 0)
		execlp("make", "make", "-s", jobs, "-C", work, "step.so", (char *)NULL);
	_exit(127);
}

static void pause_ms(long ms)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Ends make and all that it started, which may write until it is gone: what loses its parent
 * becomes our child (see below). The compiler removes its own files at SIGTERM. */
static void end_group(pid_t pid)
{
	enum { PATIENCE = 400 };
	pid_t left = 0;
	(void)kill(-pid, SIGTERM);
	for (int i = 0; i < PATIENCE && left >= 0; i++) {
		left = waitpid(-pid, NULL, WNOHANG);
		if (left == 0)
			pause_ms(5);
	}
	(void)kill(-pid, SIGKILL);
	while (left >= 0)
		left = waitpid(-pid, NULL, 0);
}

/* The first lines of what make said, as notes. */
static void tell_log(const char *log, const char *dir, struct diag *d)
{
	enum { LINES = 10 };
	char line[512];
	FILE *f = fopen(log, "r");
	for (int i = 0; f && i < LINES && fgets(line, sizeof line, f); i++) {
		line[strcspn(line, "\n")] = '\0';
		diag_note(d, &(struct where){.file = dir}, NULL, "%s", line);
	}
	if (f)
		fclose(f);
}

enum status make_step(struct arena *a, const char *work, const char *dir, struct diag *d)
{
	int status = 0;
	const char *log = arena_printf(a, "%s/build.log", work);
	if (!log)
		return diag_nomem(d);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	const pid_t pid = fork();
	if (pid == 0)
		become_make(work, dir, log);
	if (pid > 0)
		(void)setpgid(pid, pid); /* here too: whoever is first */
	pid_t ended = pid > 0 ? 0 : -1;
	while (ended == 0 && !interrupt_asked()) {
		ended = waitpid(pid, &status, WNOHANG);
		if (ended == 0)
			pause_ms(5);
	}
	if (ended == 0) {
		end_group(pid);
		return ST_INTERRUPTED;
	}
	if (ended != pid)
		return diag_fail(d, ST_IO, NULL, NULL, "cannot start make: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		unlink(log);
		return ST_OK;
	}
	tell_log(log, dir, d);
	return diag_fail(d, ST_IO, &(struct where){.file = dir},
		"install make and a C compiler, or pass --no-build and see what `make` says there",
		"the step did not compile");
}

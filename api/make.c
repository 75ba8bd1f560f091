#include "api/make.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/processors.h"

extern char **environ;

/* STINT_PLACE in front of the environment: of a program with threads, a child may not call setenv.
 */
static char **environment_with(struct arena *a, const char *dir)
{
	int n = 0;
	while (environ[n])
		n++;
	char **env = ARENA_ARRAY(a, char *, n + 2);
	if (!env || !(env[0] = arena_printf(a, "STINT_PLACE=%s", dir)))
		return NULL;
	memcpy(env + 1, environ, (size_t)n * sizeof *env);
	return env;
}

/* In a group of its own, so that all that make started can be ended. An error number. */
static int start_make(const struct make_target *what, const char *log, char **env, pid_t *pid)
{
	enum { MOST = 8 }; /* sources of a step are few, and step.c is most of the work */
	char jobs[16];
	snprintf(jobs, sizeof jobs, "-j%d", processors(MOST));
	char *const argv[] = {"make", "-s", jobs, "-C", (char *)what->work, "-f",
		(char *)what->makefile, (char *)what->target, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGPIPE);
	if (posix_spawn_file_actions_init(&files) != 0)
		return ENOMEM;
	if (posix_spawnattr_init(&how) != 0) {
		posix_spawn_file_actions_destroy(&files);
		return ENOMEM;
	}
	int rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!rc)
		rc = posix_spawn_file_actions_addopen(
			&files, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
	(void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawnattr_setpgroup(&how, 0);
	(void)posix_spawnattr_setsigdefault(&how, &signals);
	if (!rc)
		rc = posix_spawnp(pid, "make", &files, &how, argv, env);
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	return rc;
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

/* How many objects there are. */
static void tell_objects(const struct make_target *what, const struct onlooker *onlooker)
{
	char path[2048];
	int n = 0;
	snprintf(path, sizeof path, "%s/%s", what->work, what->objects);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
		const size_t len = strlen(e->d_name);
		n += len > 2 && !strcmp(e->d_name + len - 2, ".o");
	}
	if (dir)
		closedir(dir);
	onlooker_far(onlooker, -1, "%d of %d files", n, what->nobject);
}

/* Waits for make, or for `onlooker`: -1 and errno, 0: ended by it. */
static pid_t wait_for(
	pid_t pid, int *status, const struct make_target *what, struct onlooker *onlooker)
{
	enum { TELL = 50, MS = 5 };
	pid_t ended = 0;
	for (int i = 0; ended == 0 && !onlooker_stops(onlooker); i++) {
		if (i % TELL == 0 && what->nobject)
			tell_objects(what, onlooker);
		ended = waitpid(pid, status, WNOHANG);
		if (ended == 0)
			pause_ms(MS);
	}
	if (ended == 0)
		end_group(pid);
	return ended;
}

enum status make_target(
	struct arena *a, const struct make_target *what, struct onlooker *onlooker, struct diag *d)
{
	const char *dir = what->dir;
	int status = 0, reaper = 0;
	pid_t pid;
	const char *log = arena_printf(a, "%s/build.log", what->work);
	char **env = environment_with(a, dir);
	if (!log || !env)
		return diag_nomem(d);
	const int rc = start_make(what, log, env, &pid);
	if (rc)
		return diag_fail(d, ST_IO, NULL,
			"install make and a C compiler, or pass --no-build",
			"cannot start make: %s", strerror(rc));
	(void)prctl(PR_GET_CHILD_SUBREAPER, &reaper);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	const pid_t ended = wait_for(pid, &status, what, onlooker);
	(void)prctl(PR_SET_CHILD_SUBREAPER, reaper);
	if (ended == 0)
		return ST_INTERRUPTED;
	if (ended != pid)
		return diag_fail(d, ST_IO, NULL, NULL, "cannot wait for make: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		unlink(log);
		return ST_OK;
	}
	tell_log(log, dir, d);
	return diag_fail(d, ST_IO, &(struct where){.file = dir},
		"install make and a C compiler, or pass --no-build and see what `make` says there",
		"the step did not compile");
}

enum status make_step(struct arena *a, const char *work, const char *dir, struct onlooker *onlooker,
	struct diag *d)
{
	return make_target(a,
		&(struct make_target){
			.work = work, .dir = dir, .makefile = "Makefile", .target = "step.so"},
		onlooker, d);
}

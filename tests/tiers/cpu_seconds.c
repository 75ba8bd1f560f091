/*
 * Runs a test, and says how much processor time it took: its own and that of every process that it
 * started.
 *
 *   cpu_seconds NAME COMMAND...
 *
 * Where STINT_SECONDS names a file, "NAME SECONDS" is added to it as one line, user and system time
 * together. The end is the command's, by signal where that was its end. Without STINT_SECONDS
 * nothing stands between ctest and the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

/* One write, so that lines of tests that end at the same time do not mix. */
static void note(const char *path, const char *name)
{
	struct rusage used;
	getrusage(RUSAGE_CHILDREN, &used);
	char line[256];
	int n = snprintf(line, sizeof line, "%s %.2f\n", name,
		seconds_of(&used.ru_utime) + seconds_of(&used.ru_stime));
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (n <= 0 || (size_t)n >= sizeof line || fd < 0 || write(fd, line, (size_t)n) != n)
		fprintf(stderr, "cpu_seconds: cannot write to %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static int run(char **command)
{
	execvp(command[0], command);
	fprintf(stderr, "cpu_seconds: cannot run %s: %s\n", command[0], strerror(errno));
	return 127;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: cpu_seconds NAME COMMAND...\n");
		return 2;
	}
	const char *path = getenv("STINT_SECONDS");
	if (!path || !*path)
		return run(argv + 2);
	/* What a test's processes leave behind (mpirun's, a browser's) is ours, and counts as soon
	 * as it ends. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t child = fork();
	if (child < 0) {
		fprintf(stderr, "cpu_seconds: cannot fork: %s\n", strerror(errno));
		return 127;
	}
	if (child == 0)
		return run(argv + 2);
	/* Ctrl-C reaches the test too, whose end is then ours. */
	signal(SIGINT, SIG_IGN);
	int status = 0;
	for (;;) {
		int one;
		pid_t ended = wait(&one);
		if (ended == child) {
			status = one;
			break;
		}
		if (ended < 0 && errno != EINTR)
			return 127;
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	note(path, argv[1]);
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

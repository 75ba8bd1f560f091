#include "cli/busy.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/clock.h"

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static double own_seconds(void)
{
	struct rusage self, done;
	if (getrusage(RUSAGE_SELF, &self) != 0 || getrusage(RUSAGE_CHILDREN, &done) != 0)
		return 0;
	return seconds_of(self.ru_utime) + seconds_of(self.ru_stime) + seconds_of(done.ru_utime) +
	       seconds_of(done.ru_stime);
}

/* proc(5): user, nice, system, idle, iowait, irq, softirq, steal. Negative: not to be read. */
static double all_seconds(void)
{
	enum { IDLE = 3, WAITING = 4, FIELDS = 8 };
	unsigned long long ticks[FIELDS] = {0};
	FILE *f = fopen("/proc/stat", "re");
	const int n = f ? fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0],
				  &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6],
				  &ticks[7])
			: 0;
	double sum = 0;
	if (f)
		(void)fclose(f);
	for (int i = 0; i < n; i++)
		if (i != IDLE && i != WAITING)
			sum += (double)ticks[i];
	return n > WAITING ? sum / (double)sysconf(_SC_CLK_TCK) : -1;
}

void busy_begin(struct busy *b)
{
	*b = (struct busy){clock_seconds(), all_seconds(), own_seconds()};
}

double busy_others(const struct busy *b)
{
	static const double least = 0.2; /* seconds: the kernel counts in hundredths */
	const double took = clock_seconds() - b->at, all = all_seconds();
	if (all < 0 || b->all < 0 || took < least)
		return -1;
	const double others = (all - b->all - (own_seconds() - b->own)) / took;
	const double most = (double)sysconf(_SC_NPROCESSORS_ONLN);
	return others < 0 ? 0 : others > most ? most : others;
}

const char *busy_words(double others, char buf[static 160])
{
	static const double quiet = 0.1; /* what a machine does by itself */
	*buf = '\0';
	if (others >= 0)
		snprintf(buf, 160, "other programs kept %.2f of %ld processors busy meanwhile%s",
			others, sysconf(_SC_NPROCESSORS_ONLN),
			others > quiet ? ": an idle machine is faster" : "");
	return buf;
}

void busy_json(double others)
{
	if (others >= 0)
		printf(",\"others_busy\":%.3f,\"processors\":%ld", others,
			sysconf(_SC_NPROCESSORS_ONLN));
}

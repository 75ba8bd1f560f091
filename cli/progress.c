#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { WIDTH = 30, LINES = 10 };

static double seconds_since(const struct timespec *t)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - t->tv_sec) + (double)(now.tv_nsec - t->tv_nsec) / 1e9;
}

void progress_start(struct progress *p, const char *label, int64_t total)
{
	*p = (struct progress){.label = label, .total = total, .terminal = isatty(STDERR_FILENO)};
	clock_gettime(CLOCK_MONOTONIC, &p->start);
	p->shown = p->start;
}

double progress_seconds(const struct progress *p)
{
	return seconds_since(&p->start);
}

static void show_bar(struct progress *p, double loss)
{
	int full = (int)(p->done * WIDTH / p->total);
	double spent = seconds_since(&p->start),
	       left = spent / (double)p->done * (double)(p->total - p->done);
	fprintf(stderr, "\r%s [", p->label);
	for (int i = 0; i < WIDTH; i++)
		fputc(i < full ? '#' : '.', stderr);
	fprintf(stderr, "] %" PRId64 "/%" PRId64 "  loss %.4f  %.1f ms/step  %.0f s left ", p->done,
		p->total, loss, 1e3 * spent / (double)p->done, left);
	fputs("\033[K", stderr);
	fflush(stderr);
}

void progress_step(struct progress *p, double loss)
{
	p->done++;
	if (p->terminal) {
		if (seconds_since(&p->shown) < 0.1 && p->done < p->total)
			return;
		clock_gettime(CLOCK_MONOTONIC, &p->shown);
		show_bar(p, loss);
	} else if (p->done * LINES / p->total > p->reported) {
		p->reported = p->done * LINES / p->total;
		fprintf(stderr, "%s  step %" PRId64 "/%" PRId64 "  loss %.4f  %.1f ms/step\n",
			p->label, p->done, p->total, loss,
			1e3 * seconds_since(&p->start) / (double)p->done);
	}
}

void progress_end(struct progress *p)
{
	if (p->terminal) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
}

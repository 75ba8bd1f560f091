#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

enum { SIGNALS = 4 };
static const int number[SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

/* Global, because a handler has no other way. */
static volatile sig_atomic_t seen;
static struct sigaction before[SIGNALS];

static void note(int signal)
{
	(void)signal;
	seen = 1;
}

void interrupt_hold(void)
{
	const struct sigaction action = {.sa_handler = note};
	seen = 0;
	for (int i = 0; i < SIGNALS; i++) {
		sigaction(number[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN) /* as nohup wants it */
			sigaction(number[i], &action, NULL);
	}
}

bool interrupt_seen(void)
{
	return seen != 0;
}

void interrupt_release(void)
{
	for (int i = 0; i < SIGNALS; i++)
		sigaction(number[i], &before[i], NULL);
}

#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

/* The signal that came, and whether a second one waits; the one piece of global state, because a
 * handler has no other way. */
static volatile sig_atomic_t asked, held;

static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
enum { HANDLED = sizeof handled / sizeof *handled };
static struct sigaction before[HANDLED];

/* A closing terminal's SIGHUP and SIGTERM come in either order: two threads may handle them. */
static void on_signal(int number)
{
	if (asked && number == SIGHUP)
		return;
	if (asked && asked != SIGHUP && !held) { /* delivered once this handler returns */
		signal(number, SIG_DFL);
		raise(number);
	}
	asked = number;
}

void interrupt_listen(void)
{
	struct sigaction now, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool interrupt_asked(void)
{
	return asked != 0;
}

const char *interrupt_name(void)
{
	return asked == SIGINT ? "SIGINT" : asked == SIGTERM ? "SIGTERM" : "SIGHUP";
}

void interrupt_hold(void)
{
	for (int i = 0; i < HANDLED; i++)
		sigaction(handled[i], NULL, &before[i]);
	asked = 0;
	held = 1;
	interrupt_listen();
}

void interrupt_take_int(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigemptyset(&action.sa_mask);
	for (int i = 0; i < HANDLED; i++)
		sigaction(handled[i], NULL, &before[i]);
	asked = 0;
	if (before[0].sa_handler != SIG_IGN) /* handled[0] is SIGINT */
		sigaction(SIGINT, &action, NULL);
}

void interrupt_release(void)
{
	for (int i = 0; i < HANDLED; i++)
		sigaction(handled[i], &before[i], NULL);
	held = 0;
}

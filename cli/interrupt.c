#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

/* The signal that came; the one piece of global state, because a handler has no other way. */
static volatile sig_atomic_t asked;

static void on_signal(int number)
{
	if (asked && number != SIGHUP) { /* delivered once this handler returns */
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

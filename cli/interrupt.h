/* Signals that end a program wait while something half-written has to go first. */
#ifndef STINT_CLI_INTERRUPT_H
#define STINT_CLI_INTERRUPT_H

#include <stdbool.h>

/* From here to interrupt_release SIGINT, SIGTERM, SIGHUP and SIGPIPE are noted, where they are not
 * ignored already; calls that wait return EINTR then. Not nested. */
void interrupt_hold(void);
bool interrupt_seen(void);
void interrupt_release(void);

#endif

/* Being asked to stop: SIGINT, SIGTERM and SIGHUP, for a command that saves first, or first removes
 * what is half-written. */
#ifndef STINT_CLI_INTERRUPT_H
#define STINT_CLI_INTERRUPT_H

#include <stdbool.h>

/* From now on the first of them is noted, and a second SIGINT or SIGTERM ends the program at once.
 * A SIGHUP is not counted, before or after: a terminal that closes sends two. SIGHUP ignored from
 * the start, as by nohup, stays so. A reader of our output that goes away does not end the program
 * either. */
void interrupt_listen(void);
bool interrupt_asked(void);
/* "SIGTERM" */
const char *interrupt_name(void);
/* The same for a while, in which a second signal waits, too: what has to be done is short. */
void interrupt_hold(void);
/* SIGINT alone, for a while: the first is noted, and a second one ends the program at once. */
void interrupt_take_int(void);
/* As it was before either. */
void interrupt_release(void);

#endif

/* The time that passes, whatever the calendar says. */
#ifndef STINT_CLI_CLOCK_H
#define STINT_CLI_CLOCK_H

/* Seconds since some moment of the machine's. */
double clock_seconds(void);

#endif

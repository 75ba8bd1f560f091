/* How wide the terminal is. */
#ifndef STINT_API_TERMINAL_H
#define STINT_API_TERMINAL_H

/* Columns of the terminal that `fd` is; where it does not tell, as COLUMNS says, or 80. 0: `fd` is
 * no terminal. */
int terminal_columns(int fd);

#endif

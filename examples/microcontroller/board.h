/* SPDX-License-Identifier: MIT-0 */
/* What main.c wants of the machine it runs on: board.c, or host.c for the same program on a
 * computer. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

void board_print(const char *text);
void board_exit(int status);
/* Instructions since the program began, where somebody counts them; else 0. */
uint64_t board_instructions(void);
/* The most bytes of stack that were in use so far; else 0. */
uint32_t board_stack(void);

#endif

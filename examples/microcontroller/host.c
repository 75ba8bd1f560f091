/* SPDX-License-Identifier: MIT-0 */
/* The same program on a computer, for comparison. */
#include "board.h"

#include <stdio.h>
#include <stdlib.h>

void board_print(const char *text)
{
	fputs(text, stdout);
}

void board_exit(int status)
{
	exit(status);
}

uint64_t board_instructions(void)
{
	return 0;
}

uint32_t board_stack(void)
{
	return 0;
}

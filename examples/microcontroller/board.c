/* SPDX-License-Identifier: MIT-0 */
/* A Cortex-M4 or -M7 from reset to main, on the boards mps2-an386 and mps2-an500 as QEMU emulates
 * them. All that a board of your own needs differently is in here and in board.ld. */
#include "board.h"

/* Of board.ld: only their addresses mean anything. */
extern uint32_t data_from[], data_begin[], data_end[], bss_begin[], bss_end[], stack_begin[],
	stack_end[];

int main(void);
void reset(void);
void fault(void);

/* --- Reset --- */

enum { STACK_PAINT = 0x5ac5ac5a };

__attribute__((section(".vectors"), used)) static const struct {
	uint32_t *stack;
	void (*handler[15])(void);
} vectors = {stack_end, {reset, fault, fault, fault, fault, fault}};

static volatile uint32_t *reg(uint32_t address)
{
	return (volatile uint32_t *)(uintptr_t)address;
}

/* A timer of 25 MHz that counts down from 2^32 - 1. */
enum { TIMER = 0x40000000, TIMER_CTRL = TIMER, TIMER_VALUE = TIMER + 4, TIMER_RELOAD = TIMER + 8 };

/* The stack below the caller's, as far as nothing lies there yet. */
static void paint_stack(void)
{
	volatile uint32_t *const here = __builtin_frame_address(0);
	for (volatile uint32_t *p = stack_begin; (uintptr_t)p + 64 < (uintptr_t)here; p++)
		*p = STACK_PAINT;
}

__attribute__((noreturn)) void reset(void)
{
	*reg(0xe000ed88) |= 0xf << 20; /* CPACR: the floating-point unit */
	__asm volatile("dsb\n\tisb");
	const uint32_t *from = data_from;
	for (uint32_t *p = data_begin; p < data_end; p++)
		*p = *from++;
	for (uint32_t *p = bss_begin; p < bss_end; p++)
		*p = 0;
	paint_stack();
	*reg(TIMER_RELOAD) = *reg(TIMER_VALUE) = 0xffffffff;
	*reg(TIMER_CTRL) = 1;
	board_exit(main());
	for (;;)
		;
}

/* --- What main.c wants --- */

/* The debugger does it: an emulator, or the probe at the board. */
static void semihost(int call, const void *argument)
{
	register int r0 __asm("r0") = call;
	register const void *r1 __asm("r1") = argument;
	__asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void board_print(const char *text)
{
	semihost(0x04, text); /* SYS_WRITE0 */
}

void board_exit(int status)
{
	const uint32_t how[2] = {0x20026, (uint32_t)status}; /* ADP_Stopped_ApplicationExit */
	semihost(0x20, how);                                 /* SYS_EXIT_EXTENDED */
}

void fault(void)
{
	board_print("fault\n");
	board_exit(3);
}

/* QEMU's -icount shift=0 lets an instruction take one nanosecond, so that a tick is 40. */
uint64_t board_instructions(void)
{
	return (uint64_t)(0xffffffff - *reg(TIMER_VALUE)) * 40;
}

uint32_t board_stack(void)
{
	const uint32_t *p = stack_begin;
	while (p < stack_end && *p == STACK_PAINT)
		p++;
	return (uint32_t)(stack_end - p) * 4;
}

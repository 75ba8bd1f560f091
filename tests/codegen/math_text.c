/* math_text FILE: the loops of math_loops.c as C, for math_bits.sh. */
#include "tests/codegen/math_loops.h"

int main(int argc, char **argv)
{
	return argc != 2 || !math_loops_write(argv[1]);
}

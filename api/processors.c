#include "api/processors.h"

#include <unistd.h>

int processors(int most)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : n > most ? most : (int)n;
}

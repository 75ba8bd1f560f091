#include "api/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

int terminal_columns(int fd)
{
	enum { USUAL = 80, LEAST = 20, MOST = 1000 };
	struct winsize size = {0};
	if (!isatty(fd))
		return 0;
	const char *said = getenv("COLUMNS");
	long n = ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
	if (n == 0 && said)
		n = strtol(said, NULL, 10);
	return n <= 0 ? USUAL : n < LEAST ? LEAST : n > MOST ? MOST : (int)n;
}

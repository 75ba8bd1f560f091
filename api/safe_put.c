#include "api/safe_put.h"

void safe_put(FILE *f, const char *s)
{
	char shown[SAFE_MAX];
	int columns;
	while (*s) {
		s += safe_char(s, shown, &columns);
		fputs(shown, f);
	}
}

void safe_json(FILE *f, const char *s)
{
	char shown[SAFE_MAX];
	int columns;
	fputc('"', f);
	while (*s) {
		size_t n = safe_char(s, shown, &columns);
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if (columns == 1)
			fputs(shown, f);
		else
			fprintf(f, "\\u%04x", (unsigned char)*s);
		s += n;
	}
	fputc('"', f);
}

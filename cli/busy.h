/* How much of the machine other programs take while something is measured. */
#ifndef STINT_CLI_BUSY_H
#define STINT_CLI_BUSY_H

struct busy {
	double at, all, own; /* seconds: the clock; of all processors' time; of this process's */
};

void busy_begin(struct busy *b);
/* How many processors others have used since, on average; negative: not known, as of less than a
 * fifth of a second. */
double busy_others(const struct busy *b);
/* What it means, in words, "" where it is not known; into buf, returns buf. To standard output, as
 * members of an object. */
const char *busy_words(double others, char buf[static 160]);
void busy_json(double others);

#endif

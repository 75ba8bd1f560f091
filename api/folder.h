/* DIR as a whole: written beside, then put in its place, or nothing. */
#ifndef STINT_API_FOLDER_H
#define STINT_API_FOLDER_H

#include "base/base.h"

/* Of a step for several lengths (api/length_folders.h). */
#define LENGTHS_FILE "lengths.json"
#define LENGTH_FOLDER "length-" /* and the length */

struct folder {
	struct arena *arena;
	const char *dir;  /* as given, without slashes at its end */
	const char *work; /* where it is written; NULL: nothing is */
	const char *path; /* DIR's own, from the root, once work is made */
	bool exists;      /* DIR does; `work` is inside then, on the same file system in any case */
	bool ours;        /* what is in it was written by stint */
};

/* Whether DIR may be written: it is not there, or empty, or stint's own, or `force`. ST_USAGE names
 * what is in the way, ST_IO what could not be written. Changes nothing. */
enum status folder_check(
	struct arena *a, const char *dir, bool force, struct folder *f, struct diag *d);
/* Makes f->work, empty. */
enum status folder_begin(struct folder *f, struct diag *d);
/* What was written takes its place, and with it what stint wrote there before goes; other files
 * stay. On failure DIR is as it was. */
enum status folder_place(struct folder *f, struct diag *d);
/* Removes f->work with all that is in it. */
void folder_drop(struct folder *f);

#endif

/* A plan and its problem, from files. */
#ifndef STINT_API_SHOWN_H
#define STINT_API_SHOWN_H

#include "api/report.h"

struct shown {
	struct problem *problem;
	struct plan *plan;
	enum report_place place; /* what the folder that the plan lies in was compiled for */
};

/* A feasible plan has passed plan_check. */
enum status shown_read(
	struct arena *a, const char *graph, const char *plan, struct shown *out, struct diag *d);
/* The path of file `name` beside `path`; NULL: no memory. */
char *shown_beside(struct arena *a, const char *path, const char *name);

#endif

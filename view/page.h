/* The parts of the page. */
#ifndef STINT_VIEW_PAGE_H
#define STINT_VIEW_PAGE_H

#include "base/embedded_file.h"
#include "view/view.h"

/* The page's own files, inside the binary: page.html, page.css, the scripts; ended by a NULL name.
 */
const struct embedded_file *page_files(void);

/* One of them; NULL: there is none of this name. */
const struct embedded_file *page_file(const char *name, size_t len);

/* Everything that the page shows, as one JSON object of columns. Holds no <, > or &, so that it may
 * stand within the page. `keep_all` may be NULL. */
enum status page_data(struct text *out, struct arena *a, const struct problem *p,
	const struct plan *plan, const struct plan *keep_all, struct diag *d);

/* A plan among the frontier's points. */
struct frontier_mark {
	int64_t budget; /* bytes */
	double cost;
};
/* The frontier's drawing; `mark` may be NULL. */
enum status frontier_draw(struct text *out, const struct view_frontier *f,
	const struct frontier_mark *mark, struct diag *d);

/* A page without a script from its first line to its heading: `kind` is what it is about, `more`
 * the style file besides page.css. The header is left open, for facts. */
enum status page_head(
	struct text *out, const char *title, const char *kind, const char *more, struct diag *d);

/* Between the lines of an axis: 1, 2 or 5 times a power of ten, the least that gives at most `most`
 * parts. */
double page_tick(double span, int most);

/* The curves `name` of several runs (and, dashed, `also`, where it is not NULL) over the steps;
 * `wide`: as wide as two. */
void curves_draw(struct text *out, const struct view_run *run, int n, const char *name,
	const char *also, bool wide);

/* The picture of the timed kernels: operations a second over operations a byte, log by log. A dot
 * links to "#kI", I the kernel's index. */
void roofline_draw(struct text *out, const struct view_bench *b);

#endif

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

/* The picture of the timed kernels: operations a second over operations a byte, log by log. A dot
 * links to "#kI", I the kernel's index. */
void roofline_draw(struct text *out, const struct view_bench *b);

#endif

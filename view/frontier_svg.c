#include "view/page.h"

enum status frontier_draw(struct text *out, const struct view_frontier *f,
	const struct frontier_mark *mark, struct diag *d)
{
	(void)mark;
	return view_frontier_svg(out, f, d);
}

enum status view_frontier_svg(struct text *out, const struct view_frontier *f, struct diag *d)
{
	text_add(out, "<svg xmlns=\"http://www.w3.org/2000/svg\"><title>%d points</title></svg>\n",
		f->npoint);
	return out->failed ? diag_nomem(d) : ST_OK;
}

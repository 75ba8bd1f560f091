/* The page about a step's times: page.css and bench.css, the roofline, a table. */
#include <math.h>

#include "base/safe.h"
#include "view/page.h"

static enum status put_head(struct text *t, const struct view_bench *b, struct diag *d)
{
	TRY(page_head(t, b->name, "kernels of a step", "bench.css", d));
	for (int i = 0; i < b->nfact; i++) {
		text_puts(t, "<p class=\"facts\">");
		text_html(t, b->fact[i]);
		text_puts(t, "</p>\n");
	}
	text_puts(t, "</div></header>\n<main>\n");
	return ST_OK;
}

static void put_picture(struct text *t, const struct view_bench *b)
{
	text_puts(t,
		"<section class=\"panel plot\"><div class=\"row\"><h2>Under the roofline</h2>"
		"<p class=\"note\">A dot is a kernel, as large as its share of the step, where it "
		"runs among the others; the mark above or below it, where it runs alone. Dashed: "
		"what caches give.</p></div>\n");
	roofline_draw(t, b);
	text_puts(t, "<ul class=\"legend\">");
	for (int i = 0; i < 3; i++)
		text_add(t, "<li><span class=\"swatch i%d\"></span>%s</li>", i, phase_name[i]);
	text_puts(t, "</ul>\n</section>\n");
}

/* What the table has columns for besides. */
struct known {
	bool alone, predicted;
};

static void put_number(struct text *t, bool known, int digits, double x)
{
	if (known && isfinite(x))
		text_add(t, "<td>%.*f</td>", digits, x);
	else
		text_puts(t, "<td>–</td>");
}

static void put_cells(
	struct text *t, const struct view_kernel *k, double all, const struct known *has)
{
	text_add(t, "<td>%d</td><td>%.4f</td>", k->calls, k->ms);
	text_add(t,
		"<td><span class=\"bar\"><i class=\"i%d\" style=\"width:%.1f%%\"></i></span>%.1f "
		"%%</td>",
		k->phase, all > 0 ? 100 * k->ms / all : 0, all > 0 ? 100 * k->ms / all : 0);
	if (has->alone)
		put_number(t, k->alone_ms > 0, 4, k->alone_ms);
	put_number(t, k->ms > 0, 2, k->flops / k->ms / 1e6);
	put_number(t, k->ms > 0, 2, k->bytes / k->ms / 1e6);
	put_number(t, k->ms > 0, 0, 100 * k->roof_ms / k->ms);
	if (has->predicted)
		put_number(t, k->predicted_ms >= 0, 4, k->predicted_ms);
}

static void put_table(struct text *t, const struct view_bench *b)
{
	struct view_kernel sum = {.words = "all"};
	struct known has = {false, false};
	for (int i = 0; i < b->nkernel; i++) {
		const struct view_kernel *k = &b->kernel[i];
		has.alone |= k->alone_ms > 0;
		has.predicted |= k->predicted_ms >= 0;
		sum.calls += k->calls;
		sum.ms += k->ms;
		sum.alone_ms += k->alone_ms;
		sum.flops += k->flops;
		sum.bytes += k->bytes;
		sum.roof_ms += k->roof_ms;
		sum.predicted_ms += k->predicted_ms;
	}
	text_add(t,
		"<section class=\"panel wide\"><h2>Kernels</h2>\n<table class=\"times\">"
		"<thead><tr><th>kernel</th><th>calls</th><th>ms</th><th>share</th>%s"
		"<th>GFLOP/s</th><th>GB/s</th><th>roof %%</th>%s</tr></thead>\n<tbody>\n",
		has.alone ? "<th>alone</th>" : "", has.predicted ? "<th>predicted</th>" : "");
	for (int i = 0; i < b->nkernel; i++) {
		text_add(t, "<tr id=\"k%d\"><td>", i);
		text_html(t, b->kernel[i].words);
		text_puts(t, "</td>");
		put_cells(t, &b->kernel[i], sum.ms, &has);
		text_puts(t, "</tr>\n");
	}
	text_puts(t, "</tbody>\n<tfoot><tr><td>all</td>");
	put_cells(t, &sum, sum.ms, &has);
	text_puts(t, "</tr></tfoot></table>\n</section>\n");
}

enum status view_bench_html(struct text *out, const struct view_bench *b, struct diag *d)
{
	TRY(put_head(out, b, d));
	put_picture(out, b);
	put_table(out, b);
	text_puts(out, "</main>\n</body>\n</html>\n");
	return out->failed ? diag_nomem(d) : ST_OK;
}

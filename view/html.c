/* The page about a plan: page.html with each {{name}} in it replaced. */
#include "base/safe.h"
#include "view/page.h"

#include <string.h>

struct page {
	struct arena *a;
	const struct problem *p;
	const struct plan *plan, *keep_all;
	const struct view_frontier *frontier;
	struct diag *d;
};

const struct embedded_file *page_file(const char *name, size_t len)
{
	for (const struct embedded_file *f = page_files(); f->name; f++)
		if (strlen(f->name) == len && !memcmp(f->name, name, len))
			return f;
	return NULL;
}

static bool is(const char *name, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(name, word, len);
}

static enum status put_part(struct text *out, const struct page *g, const char *name, size_t len)
{
	const struct embedded_file *f = page_file(name, len);
	if (f) {
		text_write(out, f->text, f->len);
		return ST_OK;
	}
	if (is(name, len, "title")) {
		text_html(out, g->p->name);
		return ST_OK;
	}
	if (is(name, len, "data"))
		return page_data(out, g->a, g->p, g->plan, g->keep_all, g->d);
	if (is(name, len, "frontier")) {
		struct frontier_mark here = {g->plan->budget_bytes, g->plan->cost_total};
		if (here.budget == INT64_MAX)
			here.budget = g->plan->arena_bytes;
		return g->frontier ? frontier_draw(out, g->frontier, &here, g->d) : ST_OK;
	}
	return diag_fail(
		g->d, ST_INTERNAL, NULL, NULL, "no part {{%.*s}} of the page", (int)len, name);
}

enum status view_html(struct text *out, struct arena *a, const struct problem *p,
	const struct plan *plan, const struct plan *keep_all, const struct view_frontier *frontier,
	struct diag *d)
{
	struct page g = {a, p, plan, keep_all, frontier, d};
	const struct embedded_file *page = page_file("page.html", 9);
	if (!page)
		return diag_fail(d, ST_INTERNAL, NULL, NULL, "the page's frame is missing");
	const char *at = page->text;
	for (const char *open; (open = strstr(at, "{{"));) {
		const char *close = strstr(open, "}}");
		if (!close)
			break;
		text_write(out, at, (size_t)(open - at));
		TRY(put_part(out, &g, open + 2, (size_t)(close - open - 2)));
		at = close + 2;
	}
	text_puts(out, at);
	return out->failed ? diag_nomem(d) : ST_OK;
}

/* --- Pages without a script --- */

static enum status put_file(struct text *out, const char *name, struct diag *d)
{
	const struct embedded_file *f = page_file(name, strlen(name));
	if (!f)
		return diag_fail(d, ST_INTERNAL, NULL, NULL, "the page's %s is missing", name);
	text_write(out, f->text, f->len);
	return ST_OK;
}

enum status page_head(
	struct text *out, const char *title, const char *kind, const char *more, struct diag *d)
{
	text_puts(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		       "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action "
		       "'none'\">\n"
		       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		       "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
	text_html(out, title);
	text_add(out, " · %s</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n", kind);
	TRY(put_file(out, "page.css", d));
	TRY(put_file(out, more, d));
	text_add(out,
		"</style>\n</head>\n<body>\n<header class=\"top\"><div class=\"headline\">"
		"<p class=\"eyebrow\">%s</p>\n<h1>",
		kind);
	text_html(out, title);
	text_puts(out, "</h1>\n");
	return ST_OK;
}

/* stint bench --html FILE. */
#include "cli/bench.h"
#include "view/view.h"

enum status bench_html(const struct bench *b, const char *path, struct diag *d)
{
	const char *fact[BENCH_FACTS];
	struct view_level level[ROOF_LEVELS];
	struct view_kernel *kernel = ARENA_ARRAY(b->arena, struct view_kernel, b->nkernel);
	if (!kernel)
		return diag_nomem(d);
	TRY(bench_facts(b, fact, d));
	for (int i = 0; i < b->roof.nlevel; i++)
		level[i] = (struct view_level){
			b->roof.level[i].bytes, b->roof.level[i].bytes_us / 1e3};
	for (int i = 0; i < b->nkernel; i++) {
		const struct bench_kernel *k = &b->kernel[i];
		kernel[i] = (struct view_kernel){.words = bench_words(b->arena, k),
			.calls = k->calls,
			.phase = k->phase,
			.ms = k->us / 1e3,
			.alone_ms = k->alone_us / 1e3,
			.flops = k->flops,
			.bytes = k->bytes,
			.roof_ms = k->roof_us / 1e3,
			.predicted_ms = b->t.plan ? k->predicted_us / 1e3 : -1};
	}
	const struct view_bench v = {.name = b->l.model->name,
		.nfact = BENCH_FACTS,
		.fact = fact,
		.gflops = b->roof.flops_us / 1e3,
		.nlevel = b->roof.nlevel,
		.level = level,
		.nkernel = b->nkernel,
		.kernel = kernel};
	struct text page = {0};
	enum status st = view_bench_html(&page, &v, d);
	if (st == ST_OK)
		st = text_save(&page, path, d);
	text_free(&page);
	return st;
}

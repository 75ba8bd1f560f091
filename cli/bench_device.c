/* What `stint bench` says of a GPU's step that it does not of others: the device, and its memory
 * item by item. */
#include <inttypes.h>
#include <stdio.h>

#include "api/report.h"
#include "api/safe_put.h"
#include "cli/bench.h"

static const char steps[] = "steps"; /* whatever the steps have taken, the first too */

void bench_opened(struct text *t, const struct stint_device_memory *m)
{
	double all = 0;
	const char *before = ":";
	for (int i = 0; i < m->nitem; i++)
		all += m->item[i].what == steps ? 0 : m->item[i].ms;
	text_add(t, "%.0f ms", all);
	for (int i = 0; i < m->nitem; i++) {
		if (m->item[i].what == steps || m->item[i].ms < 0.5)
			continue;
		text_add(t, "%s %s %.0f", before, m->item[i].what, m->item[i].ms);
		before = ",";
	}
}

enum status bench_device_memory(struct bench *b, struct diag *d)
{
	const struct loaded *l = &b->l;
	struct bench_memory *m = &b->memory;
	const int rc = l->step->device->memory(l->step, steps, &m->device);
	if (rc)
		return load_fail(l, rc, "bench", d);
	*m = (struct bench_memory){.arena_resident = -1, .peak = -1, .device = m->device};
	for (int i = 0; i < m->device.nitem; i++) {
		m->outside += m->device.item[i].bytes;
		if (m->device.item[i].what == steps)
			m->grown = m->device.item[i].bytes;
	}
	for (int i = 0; i < l->model->nlib; i++) {
		const int64_t bytes = (int64_t)l->model->lib[i].workspace;
		m->workspace = bytes > m->workspace ? bytes : m->workspace;
	}
	return ST_OK;
}

const char *bench_device_fact_memory(const struct bench *b)
{
	const struct bench_memory *m = &b->memory;
	char x[24], y[24];
	struct text t = {0};
	text_add(&t, "memory: arena %s, of which workspaces of libraries take %s at most; outside ",
		bytes_human((int64_t)b->l.model->arena_bytes, x), bytes_human(m->workspace, y));
	text_add(&t, "%s, about %s expected:", bytes_human(m->outside, x),
		bytes_human(REPORT_OUTSIDE_GPU_BYTES, y));
	const char *before = "";
	for (int i = 0; i < m->device.nitem; i++) {
		if (!m->device.item[i].bytes)
			continue;
		text_add(&t, "%s %s %s", before, m->device.item[i].what,
			bytes_human(m->device.item[i].bytes, x));
		before = ",";
	}
	text_add(&t, "; %s of the device's %s in use by all programs; opening took ",
		bytes_human(m->device.used, x), bytes_human(m->device.total, y));
	bench_opened(&t, &m->device);
	const char *s = t.failed ? NULL : arena_strdup(b->arena, t.s);
	text_free(&t);
	return s;
}

const char *bench_device_fact_machine(const struct bench *b)
{
	const struct roof *r = &b->roof;
	struct text t = {0};
	text_add(&t, "device: %s, measured: %.4g TFLOP/s in products of %lld", r->device,
		r->flops_us / 1e6, r->product);
	roof_bandwidths(r, &t);
	const char *s = t.failed ? NULL : arena_strdup(b->arena, t.s);
	text_free(&t);
	return s;
}

void bench_device_json(const struct bench *b)
{
	const struct bench_memory *m = &b->memory;
	const struct roof *r = &b->roof;
	printf(",\"memory\":{\"arena_bytes\":%zu,\"workspace_bytes\":%" PRId64
	       ",\"outside_bytes\":%" PRId64 ",\"outside_planned\":%" PRId64 ",\"outside\":[",
		b->l.model->arena_bytes, m->workspace, m->outside, REPORT_OUTSIDE_GPU_BYTES);
	for (int i = 0; i < m->device.nitem; i++)
		printf("%s{\"what\":\"%s\",\"bytes\":%" PRId64 "}", i ? "," : "",
			m->device.item[i].what, m->device.item[i].bytes);
	printf("],\"opening\":[");
	for (int i = 0, n = 0; i < m->device.nitem; i++)
		if (m->device.item[i].what != steps)
			printf("%s{\"what\":\"%s\",\"ms\":%.3f}", n++ ? "," : "",
				m->device.item[i].what, m->device.item[i].ms);
	printf("],\"grown_bytes\":%" PRId64 ",\"device_used\":%" PRId64 ",\"device_bytes\":%" PRId64
	       "},\"machine\":{\"device\":",
		m->grown, m->device.used, m->device.total);
	safe_json(stdout, r->device);
	printf(",\"gflops\":%.6g,\"product\":%lld", r->flops_us / 1e3, r->product);
	roof_bandwidths_json(r);
	printf("}");
}

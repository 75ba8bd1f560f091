#include "api/offload.h"

#include <string.h>

#include "planner/problem/transfer.h"

/* What a step's file is planned to give and take, where nobody says: a solid-state disk's that
 * hangs on SATA. A rate is bytes a second. */
static const int64_t DISK_RATE = 500000000;

static enum status not_so(const char *what, const char *text, struct diag *d)
{
	return diag_fail(d, ST_USAGE, NULL, "`--help` shows how", "%s '%s'", what, text);
}

static enum status take_size(
	struct arena *a, const char *text, size_t length, int64_t *size, struct diag *d)
{
	const char *one = arena_strndup(a, text, length);
	struct plan_budget b;
	if (!one)
		return diag_nomem(d);
	TRY(plan_budget_parse(one, &b, d));
	if (b.kind != BUDGET_BYTES || b.bytes < 1)
		return not_so("--offload wants bytes, 1 or more, not", one, d);
	*size = b.bytes;
	return ST_OK;
}

/* `n` sizes, "A:B": those that are given. */
static enum status take_sizes(
	struct arena *a, const char *text, int n, int64_t *const *size, struct diag *d)
{
	const char *p = *text == ':' ? text + 1 : text;
	for (int i = 0; *text && i <= n; i++) {
		const size_t length = strcspn(p, ":");
		if (i == n)
			return not_so("--offload: there is nothing to say behind a size:", text, d);
		TRY(take_size(a, p, length, size[i], d));
		if (!p[length])
			return ST_OK;
		p += length + 1;
	}
	return ST_OK;
}

/* RATE: "500MB", or "2GB/500MB" where the disk gives and takes otherwise. *text: what follows. */
static enum status take_rates(
	struct arena *a, const char **text, struct disk_options *disk, struct diag *d)
{
	int64_t reads = DISK_RATE, writes = DISK_RATE;
	if (**text == ':') {
		const char *p = *text + 1;
		const size_t all = strcspn(p, ":"), first = strcspn(p, ":/");
		TRY(take_size(a, p, first, &reads, d));
		writes = reads;
		if (p[first] == '/')
			TRY(take_size(a, p + first + 1, all - first - 1, &writes, d));
		*text = p + all;
	}
	disk->reads = (double)reads / 1e6;
	disk->writes = (double)writes / 1e6;
	return ST_OK;
}

static enum status take_disk(
	struct arena *a, const char *text, struct compile_options *c, struct diag *d)
{
	const size_t length = strcspn(text, ":");
	c->disk = (struct disk_options){
		.folder = arena_strndup(a, text, length), .least = TRANSFER_BYTES};
	if (!c->disk.folder)
		return diag_nomem(d);
	if (length == 0)
		return not_so("--offload disk:FOLDER wants a folder, not", text, d);
	text += length;
	TRY(take_rates(a, &text, &c->disk, d));
	return take_sizes(a, text, 1, (int64_t *const[]){&c->disk.least}, d);
}

enum status offload_take(struct arena *a, const char *text, struct options *o, struct diag *d)
{
	const size_t length = strcspn(text, ":");
	o->offload = text;
	o->compile.offload_least = 0;
	o->compile.disk = (struct disk_options){0};
	if (length == 4 && !strncmp(text, "disk", 4))
		return take_disk(a, text[4] ? text + 5 : text + 4, &o->compile, d);
	if (length != 4 || strncmp(text, "host", 4) != 0)
		return not_so("--offload is host, host:SIZE or disk:FOLDER, not", text, d);
	o->compile.offload_least = TRANSFER_BYTES;
	return take_sizes(a, text + 4, 1, (int64_t *const[]){&o->compile.offload_least}, d);
}

static enum status check_disk(const struct compile_options *c, struct diag *d)
{
	const char *other = c->target == TARGET_CUDA ? "target cuda"
			    : c->bare                ? "bare"
			    : c->cross               ? "cross"
			    : c->ranks               ? "ranks"
			    : c->graph               ? "graph"
						     : NULL;
	return other ? diag_fail(d, ST_USAGE, NULL, NULL,
			       "--offload disk does not go with --%s yet", other)
		     : ST_OK;
}

enum status offload_check(struct options *o, struct diag *d)
{
	if (!o->offload)
		return ST_OK;
	if (o->compile.disk.folder)
		return check_disk(&o->compile, d);
	if (o->compile.target != TARGET_CUDA)
		return diag_fail(d, ST_USAGE, NULL, "add --target cuda",
			"--offload host: a step of --target c works in the host's memory already");
	if (o->compile.keep_all || o->compile.segments)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--offload host: --%s says what is held already",
			o->compile.keep_all ? "keep-all" : "segments");
	return ST_OK;
}

#include "api/links.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "runtime/stint_links.h"

/* --- Writing --- */

enum status links_find(struct pipeline *p, struct weight_links *out)
{
	const struct graph_problem *gp = pipeline_problem_shown(p);
	*out = (struct weight_links){0};
	const struct import_options *import = &p->o->import;
	if (!p->o->link_weights)
		return ST_OK;
	out->item = ARENA_ARRAY(p->arena, struct weight_link, gp->problem->ntensor);
	if (!out->item)
		return diag_nomem(p->diag);
	for (int i = 0; i < gp->problem->ntensor; i++) {
		const struct tensor *t = gp->tensor[i];
		struct weight_link l = {.step = gp->problem->tensor[i].name, .data = t->data};
		if (t->role != TR_CONSTANT || t->dtype != DT_F32 || !t->data || t->maker ||
			t->piece_of)
			continue;
		l.bytes = (size_t)tensor_bytes(t);
		if (!l.bytes || !arena_mapped(p->arena, t->data, l.bytes, &l.path, &l.offset))
			continue;
		l.model = pipeline_name(p, t);
		if (l.model)
			out->item[out->n++] = l;
	}
	if (!out->n)
		diag_warn(p->diag, &(struct where){.file = p->o->model},
			p->o->frozen_precision != FROZEN_FP32
				? "--frozen-precision rounds weights, and keeps them in DIR"
			: import->freeze_pattern || import->train_pattern || p->o->lora
				? "onnx.save_model(..., save_as_external_data=True) writes "
				  "external data"
				: "--freeze PATTERN freezes; onnx.save_model(..., "
				  "save_as_external_data=True) writes external data",
			"--link-weights: no frozen weight lies in external data as the step reads "
			"it");
	return ST_OK;
}

const struct weight_link *links_of(const struct weight_links *links, const char *step)
{
	for (int i = 0; i < links->n; i++)
		if (!strcmp(links->item[i].step, step))
			return &links->item[i];
	return NULL;
}

bool links_name(const struct weight_links *links, const char *name)
{
	for (int i = 0; i < links->n; i++)
		if (!strcmp(links->item[i].model, name))
			return true;
	return false;
}

static void sum_of(const void *data, size_t bytes, char text[2 * STINT_SHA + 1])
{
	unsigned char sum[STINT_SHA];
	struct stint_sha s;
	stint_sha_start(&s);
	stint_sha_add(&s, data, bytes);
	stint_sha_end(&s, sum);
	stint_sha_text(sum, text);
}

enum status links_notes(struct arena *a, const struct weight_links *links,
	struct safetensors_note **out, struct diag *d)
{
	*out = ARENA_ARRAY(a, struct safetensors_note, links->n);
	if (!*out)
		return diag_nomem(d);
	for (int i = 0; i < links->n; i++) {
		const struct weight_link *l = &links->item[i];
		char sum[2 * STINT_SHA + 1];
		sum_of(l->data, l->bytes, sum);
		(*out)[i].key = arena_printf(a, STINT_LINK "%s", l->step);
		(*out)[i].value = arena_printf(a, "%s %zu %zu %zu %s %s", sum, l->offset, l->bytes,
			strlen(l->model), l->model, l->path);
		if (!(*out)[i].key || !(*out)[i].value)
			return diag_nomem(d);
	}
	return ST_OK;
}

/* --- Reading --- */

static enum status read_one(struct arena *a, const char *path, const char *note, bool values,
	struct linked_value *out, struct diag *d)
{
	static const char hint[] = "put the model's files back where they were, or compile again";
	const struct where w = {.file = path};
	char message[SAFETENSORS_MESSAGE];
	struct stint_link l;
	struct stint_sha sum;
	if (stint_link_parse(note, &l))
		return diag_fail(d, ST_INVALID, &w, NULL, "a link in it cannot be read");
	const int fd = stint_link_open(&l, message);
	if (fd < 0)
		return diag_fail(d, ST_IO, &w, hint, "%s", message);
	const unsigned char *data = values ? arena_map(a, fd, l.offset + l.bytes, l.path) : NULL;
	const int why = errno;
	close(fd);
	if (!values)
		return ST_OK;
	if (!data)
		return diag_fail(d, ST_IO, &w, NULL, "cannot map %s: %s", l.path, strerror(why));
	*out = (struct linked_value){arena_strndup(a, l.name, l.length), data + l.offset, l.bytes};
	if (!out->name)
		return diag_nomem(d);
	stint_sha_start(&sum);
	stint_sha_add(&sum, out->data, out->bytes);
	return stint_link_check(&l, &sum, message)
		       ? diag_fail(d, ST_INVALID, &w, hint, "%s", message)
		       : ST_OK;
}

bool links_any(const char *path)
{
	struct safetensors *f;
	const char *key, *value;
	char message[SAFETENSORS_MESSAGE];
	bool any = false;
	if (safetensors_open_header(&f, path, message))
		return false;
	for (int i = 0; !any && safetensors_note_at(f, i, &key, &value); i++)
		any = strncmp(key, STINT_LINK, sizeof STINT_LINK - 1) == 0;
	safetensors_close(f);
	return any;
}

enum status links_read(
	struct arena *a, const char *path, bool values, struct linked_values *out, struct diag *d)
{
	struct safetensors *f;
	const char *key, *value;
	char message[SAFETENSORS_MESSAGE];
	enum status worst = ST_OK;
	int n = 0;
	*out = (struct linked_values){0};
	if (safetensors_open_header(&f, path, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	while (safetensors_note_at(f, n, &key, &value))
		n++;
	out->item = ARENA_ARRAY(a, struct linked_value, n);
	if (!out->item)
		worst = diag_nomem(d);
	for (int i = 0; out->item && i < n && safetensors_note_at(f, i, &key, &value); i++) {
		if (strncmp(key, STINT_LINK, sizeof STINT_LINK - 1) != 0)
			continue;
		const enum status st = read_one(a, path, value, values, &out->item[out->n], d);
		out->n += st == ST_OK && values;
		worst = worst ? worst : st;
	}
	safetensors_close(f);
	return worst;
}

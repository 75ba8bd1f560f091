#include "cli/training_note.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/checkpoint.h"
#include "runtime/safetensors.h"

void note_put(struct text *note, const char *name, const char *value)
{
	text_add(note, "%s ", name);
	for (const char *p = value; *p; p++)
		if (*p < ' ' || *p > '~' || *p == '%')
			text_add(note, "%%%02x", (unsigned char)*p);
		else
			text_write(note, p, 1);
	text_puts(note, "\n");
}

const char *note_find(const char *note, const char *name, size_t len, size_t *n)
{
	for (const char *p = note; p && *p;) {
		const size_t line = strcspn(p, "\n");
		if (line > len && !memcmp(p, name, len) && p[len] == ' ') {
			*n = line - len - 1;
			return p + len + 1;
		}
		p += line + (p[line] == '\n');
	}
	return NULL;
}

/* The value of a line as it was put; NULL: there is none, or (*nomem) no memory. */
static char *value_of(struct arena *a, const char *note, const char *name, bool *nomem)
{
	size_t n, used = 0;
	const char *spelled = note_find(note, name, strlen(name), &n);
	char *value = spelled ? ARENA_ARRAY(a, char, n + 1) : NULL;
	*nomem |= spelled && !value;
	for (size_t i = 0; value && i < n; i++) {
		if (spelled[i] == '%' && n - i > 2) {
			const char two[3] = {spelled[i + 1], spelled[i + 2], '\0'};
			value[used++] = (char)strtol(two, NULL, 16);
			i += 2;
		} else {
			value[used++] = spelled[i];
		}
	}
	return value;
}

/* The note of a file, in the arena; *note NULL: it has none. */
static enum status read_note(struct arena *a, const char *path, const char **note, struct diag *d)
{
	struct safetensors *file;
	char message[SAFETENSORS_MESSAGE];
	*note = NULL;
	if (safetensors_open_header(&file, path, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	const char *text = safetensors_note(file, "training");
	*note = text ? arena_strdup(a, text) : NULL;
	const bool nomem = text && !*note;
	safetensors_close(file);
	return nomem ? diag_nomem(d) : ST_OK;
}

/* A setting of theirs, where none was given; told where another was. */
static enum status take(struct arena *a, const char *path, const char *note, const char *name,
	const char *usual, char **given, struct diag *d)
{
	bool nomem = false;
	const char *was = value_of(a, note, name, &nomem);
	const struct where w = {.file = path};
	if (nomem)
		return diag_nomem(d);
	if (!was || !strcmp(was, *given ? *given : usual))
		return ST_OK;
	if (*given) {
		diag_warn(d, &w, NULL, "was trained with %s %s, and is asked with %s %s", name, was,
			name, *given);
		return ST_OK;
	}
	diag_note(d, &w, NULL, "%s %s, as in training", name, was);
	*given = strdup(was);
	return *given ? ST_OK : diag_nomem(d);
}

enum status note_take_data(
	struct arena *a, const char *path, struct data_options *o, struct diag *d)
{
	const char *note = NULL;
	bool nomem = false;
	if (path)
		TRY(read_note(a, path, &note, d));
	if (!note)
		return ST_OK;
	TRY(take(a, path, note, "--scale", "1", &o->scale, d));
	TRY(take(a, path, note, "--shift", "0", &o->shift, d));
	o->classes = value_of(a, note, "classes", &nomem);
	const char *resize = value_of(a, note, "--resize", &nomem),
		   *crop = value_of(a, note, "--crop", &nomem);
	o->trained = arena_strdup(a, path);
	if (resize && crop) {
		o->trained_resize = atoi(resize);
		o->trained_crop = atoi(crop);
	}
	return nomem || !o->trained ? diag_nomem(d) : ST_OK;
}

enum status note_of_model(
	struct arena *a, const char *path, struct export_note out[MODEL_NOTES], struct diag *d)
{
	static const struct {
		const char *name, *key, *usual;
	} told[MODEL_NOTES - 1] = {{"classes", "stint.classes", ""},
		{"--scale", "stint.scale", "1"}, {"--shift", "stint.shift", "0"},
		{"--resize", "stint.resize", ""}, {"--crop", "stint.crop", ""}};
	const char *note;
	bool nomem = false;
	int n = 0;
	TRY(read_note(a, path, &note, d));
	for (int i = 0; note && i < MODEL_NOTES - 1; i++) {
		const char *value = value_of(a, note, told[i].name, &nomem);
		if (value && strcmp(value, told[i].usual) != 0)
			out[n++] = (struct export_note){told[i].key, value};
	}
	out[n] = (struct export_note){NULL, NULL};
	return nomem ? diag_nomem(d) : ST_OK;
}

enum status note_classes(struct arena *a, const char *folder, const char **classes, struct diag *d)
{
	char newest[512] = "", message[256];
	const char *note = NULL;
	bool nomem = false;
	*classes = NULL;
	if (checkpoint_newest(folder, newest, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	if (*newest)
		TRY(read_note(a, newest, &note, d));
	if (note)
		*classes = value_of(a, note, "classes", &nomem);
	return nomem ? diag_nomem(d) : ST_OK;
}

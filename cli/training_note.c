#include "cli/training_note.h"

#include <stdlib.h>
#include <string.h>

#include "cli/class_names.h"
#include "data/name_list.h"
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

char *note_value(struct arena *a, const char *note, const char *name, bool *nomem)
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
	const char *was = note_value(a, note, name, &nomem);
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
	o->note = note;
	o->classes = note_value(a, note, "classes", &nomem);
	const char *resize = note_value(a, note, "--resize", &nomem),
		   *crop = note_value(a, note, "--crop", &nomem);
	o->trained = arena_strdup(a, path);
	if (resize && crop) {
		o->trained_resize = atoi(resize);
		o->trained_crop = atoi(crop);
	}
	return nomem || !o->trained ? diag_nomem(d) : ST_OK;
}

/* Notes that grow. */
struct notes {
	struct arena *a;
	struct export_note *item;
	int n;
	bool nomem;
};

static void add_note(struct notes *all, const char *key, const char *value)
{
	struct export_note *item = ARENA_ARRAY(all->a, struct export_note, all->n + 2);
	all->nomem |= !item || !key;
	if (all->nomem)
		return;
	for (int i = 0; i < all->n; i++)
		item[i] = all->item[i];
	item[all->n++] = (struct export_note){key, value};
	all->item = item;
}

/* A line "columns.N": the tensor, its columns. */
static enum status add_columns(struct notes *all, const char *line, struct diag *d)
{
	struct class_names name, item;
	struct name_list names = {0};
	bool nomem = false;
	enum status st = class_names_split(all->a, line, &name, d);
	for (int64_t i = 1; st == ST_OK && i < name.n; i++) {
		st = class_names_split(all->a, name.name[i], &item, d);
		if (st != ST_OK)
			break;
		const char *words = dataset_class_next(name.name[i], NULL, NULL);
		nomem |= name_list_add(&names, item.name[0]) != 0;
		if (words)
			add_note(all, arena_printf(all->a, "stint.words.%s", item.name[0]), words);
	}
	const char *kept = nomem || !names.text ? NULL : arena_strdup(all->a, names.text);
	name_list_free(&names);
	if (st != ST_OK || !kept)
		return st != ST_OK ? st : diag_nomem(d);
	add_note(all, arena_printf(all->a, "stint.columns.%s", name.name[0]), kept);
	return ST_OK;
}

enum status note_of_model(
	struct arena *a, const char *path, struct export_note **out, struct diag *d)
{
	static const struct {
		const char *name, *key, *usual;
	} told[] = {{"classes", "stint.classes", ""}, {"--scale", "stint.scale", "1"},
		{"--shift", "stint.shift", "0"}, {"--resize", "stint.resize", ""},
		{"--crop", "stint.crop", ""}, {"colours", "stint.colours", ""}};
	const char *note, *value;
	struct notes all = {.a = a};
	TRY(read_note(a, path, &note, d));
	for (size_t i = 0; note && i < sizeof told / sizeof *told; i++)
		if ((value = note_value(a, note, told[i].name, &all.nomem)) &&
			strcmp(value, told[i].usual) != 0)
			add_note(&all, told[i].key, value);
	for (int i = 0; note && !all.nomem; i++) {
		char key[32];
		snprintf(key, sizeof key, "columns.%d", i);
		if (!(value = note_value(a, note, key, &all.nomem)))
			break;
		TRY(add_columns(&all, value, d));
	}
	*out = all.n ? all.item : ARENA_NEW(a, struct export_note);
	return all.nomem || !*out ? diag_nomem(d) : ST_OK;
}

enum status note_words(struct arena *a, const char *folder, struct data_options *o, struct diag *d)
{
	char newest[512] = "", message[256];
	bool nomem = false;
	if (checkpoint_newest(folder, newest, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	if (*newest)
		TRY(read_note(a, newest, &o->note, d));
	if (o->note)
		o->classes = note_value(a, o->note, "classes", &nomem);
	return nomem ? diag_nomem(d) : ST_OK;
}

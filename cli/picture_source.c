#include "cli/picture_source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What stands in "images:SETTINGS:FOLDER", and what is to stand there. */
struct source {
	const char *form;          /* "images:", "masks:" */
	const char *text, *folder; /* the settings, of `n` bytes */
	size_t n;
	int size, resize; /* 0: not said */
	bool zoom, gray;
};

static bool is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A name without a form: which one the tensor takes. NULL: none. */
static const char *form_of(const struct stint_tensor *t, bool target, const char *text)
{
	const char *dot = strrchr(text, '.');
	const bool folder = is_folder(text);
	if (!folder && strcmp(text, "-") != 0 && !dataset_is_picture(text) &&
		!(dot && !strcmp(dot, ".txt")))
		return NULL;
	if (target)
		return t->rank == 3 ? "masks:" : t->rank == 1 && folder ? "labels:" : NULL;
	return t->rank == 4 ? "images:" : NULL;
}

static void read_settings(struct source *s, const char *text, size_t bytes)
{
	const char *const end = text + bytes;
	for (const char *p = text; p < end;) {
		const size_t n = strcspn(p, ",:");
		if (n && strspn(p, "0123456789") == n)
			s->size = atoi(p);
		else if (!strncmp(p, "resize=", 7))
			s->resize = atoi(p + 7);
		s->zoom |= n >= 4 && !memcmp(p, "zoom", 4) && (n == 4 || p[4] == '=');
		s->gray |= n == 4 && !memcmp(p, "gray", 4);
		p += n + 1;
	}
}

/* Sizes that differ from those that were trained are warned of, and those that are taken told. */
static void compare(
	const struct source *s, const struct data_options *o, bool taken, struct diag *d)
{
	const struct where w = {.file = o->trained};
	if (!o->trained_crop || s->form[0] != 'i')
		return;
	if (taken)
		diag_note(d, &w, NULL, "--resize %d --crop %d, as in training", s->resize, s->size);
	else if (s->resize != o->trained_resize || s->size != o->trained_crop)
		diag_warn(d, &w, NULL,
			"was trained with --resize %d --crop %d, and is asked with --resize %d "
			"--crop %d",
			o->trained_resize, o->trained_crop, s->resize, s->size);
}

/* The sizes that the text leaves open. */
static enum status choose(struct source *s, const struct data_options *o,
	const struct stint_tensor *t, const char *text, struct diag *d)
{
	if (o->resize < 0 || o->crop < 0)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--resize and --crop want 1 or more");
	const bool taken = !s->size && !s->resize && !s->zoom && !o->crop && !o->resize &&
			   o->trained_crop;
	const int64_t *const side = t->rank > 2 ? t->dim + t->rank - 2 : NULL;
	if (!s->size && !o->crop && !taken && (!side || side[0] != side[1]))
		return diag_fail(d, ST_USAGE, NULL,
			"images:SIZE:FOLDER or --crop SIZE says it; an array (.npy) of pictures "
			"may have any shape",
			"'%s': of which size? '%s' takes no squares", text, t->name);
	if (!s->size)
		s->size = o->crop ? o->crop : taken ? o->trained_crop : (int)side[0];
	if (!s->resize)
		s->resize = s->zoom     ? s->size
			    : o->resize ? o->resize
			    : taken     ? o->trained_resize
					: s->size;
	if (s->resize < s->size)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"'%s': --resize %d is less than --crop %d", text, s->resize, s->size);
	compare(s, o, taken, d);
	return ST_OK;
}

enum status picture_source(struct arena *a, const struct data_options *o,
	const struct stint_tensor *t, bool target, bool alone, const char *text, const char **out,
	struct diag *d)
{
	struct source s = {.folder = text};
	const bool prefixed = dataset_is_prefixed(text);
	s.form = !prefixed                      ? form_of(t, target, text)
		 : !strncmp(text, "images:", 7) ? "images:"
		 : !strncmp(text, "masks:", 6)  ? "masks:"
						: NULL;
	*out = text;
	if (!s.form)
		return ST_OK;
	if (prefixed) {
		s.text = text + strlen(s.form);
		const char *colon = strchr(s.text, ':');
		s.n = colon ? (size_t)(colon - s.text) : 0;
		s.folder = colon ? colon + 1 : s.text;
	}
	if (*s.form == 'l') {
		*out = arena_printf(a, "%s%s", s.form, text);
		return *out ? ST_OK : diag_nomem(d);
	}
	const char *augment = o->augment ? o->augment : "";
	read_settings(&s, s.text, s.n);
	read_settings(&s, augment, strlen(augment));
	const bool sized = s.size,
		   gray = s.gray || sized || *s.form == 'm' || t->rank != 4 || t->dim[1] != 1;
	const bool resized = s.resize;
	TRY(choose(&s, o, t, text, d));
	char size[32] = "", resize[32] = "";
	if (!sized)
		snprintf(size, sizeof size, "%d,", s.size);
	if (!resized && s.resize != s.size)
		snprintf(resize, sizeof resize, "resize=%d,", s.resize);
	char *all = arena_printf(a, "%s%s%s%s%s%s%s%.*s", s.form, size, resize, gray ? "" : "gray,",
		alone && !prefixed ? "all," : "", augment, *augment ? "," : "", (int)s.n,
		s.n ? s.text : "");
	if (!all)
		return diag_nomem(d);
	if (!s.n) /* the last comma */
		all[strlen(all) - 1] = '\0';
	*out = arena_printf(a, "%s:%s", all, s.folder);
	return *out ? ST_OK : diag_nomem(d);
}

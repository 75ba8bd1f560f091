#include "data/name_list.h"

#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"

static int grow(struct name_list *l, size_t bytes)
{
	if (l->used + bytes <= l->room)
		return 0;
	const size_t room = 2 * (l->used + bytes);
	char *text = realloc(l->text, room);
	if (!text)
		return 1;
	l->text = text;
	l->room = room;
	return 0;
}

int name_list_add(struct name_list *l, const char *name)
{
	if (grow(l, 2 * strlen(name) + 2))
		return 1;
	if (l->n)
		l->text[l->used++] = '/';
	for (const char *p = name; *p; p++) {
		if (*p == '/' || *p == '\\')
			l->text[l->used++] = '\\';
		l->text[l->used++] = *p;
	}
	l->text[l->used] = '\0';
	l->n++;
	return 0;
}

void name_list_free(struct name_list *l)
{
	free(l->text);
	*l = (struct name_list){0};
}

const char *dataset_class_next(const char *rest, char *name, size_t *bytes)
{
	size_t n = 0;
	for (; *rest && *rest != '/'; rest++) {
		rest += *rest == '\\' && rest[1];
		if (name)
			name[n] = *rest;
		n++;
	}
	if (name)
		name[n] = '\0';
	if (bytes)
		*bytes = n;
	return *rest ? rest + 1 : NULL;
}

/* Whether the text's first name is this one; *rest: behind it. */
static int is_first(const char *text, const char *name, const char **rest)
{
	const char *p = text;
	for (; *p && *p != '/'; p++) {
		p += *p == '\\' && p[1];
		if (name && *name++ != *p)
			name = NULL;
	}
	*rest = *p ? p + 1 : NULL;
	return name && !*name;
}

int64_t name_list_place(const char *text, const char *name)
{
	int64_t place = 0;
	for (const char *rest = text; rest; place++)
		if (is_first(rest, name, &rest))
			return place;
	return -1;
}

char *name_list_at(const char *text, int64_t place)
{
	size_t n;
	while (text && place--)
		text = dataset_class_next(text, NULL, NULL);
	if (!text)
		return NULL;
	(void)dataset_class_next(text, NULL, &n);
	char *name = malloc(n + 1);
	if (name)
		(void)dataset_class_next(text, name, &n);
	return name;
}

#include "cli/data_forms.h"

#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/nearest.h"
#include "data/dataset.h"

/* What files of such an ending are read by: %s is the file. */
static const struct {
	const char *ending, *form;
} forms[] = {
	{".csv", "columns of numbers are csv:%s, or csv:COLUMN,COLUMN:%s"},
	{".csv.gz", "columns of numbers are csv:%s, or csv:COLUMN,COLUMN:%s"},
	{".npz", "%s:NAME is one of its arrays"},
	{".safetensors", "%s:NAME is one of its tensors"},
	{".bin", "tokens are tokens:T:%s, windows of T"},
	{".png", "pictures are read by folders: images:SIZE:FOLDER"},
	{".jpg", "pictures are read by folders: images:SIZE:FOLDER"},
	{".jpeg", "pictures are read by folders: images:SIZE:FOLDER"},
	{".txt", "of text, numbers in columns are csv:%s, tokens as numbers of 16 bits "
		 "tokens:T:FILE"},
	{".pt", "numpy.save writes what can be read, and safetensors.torch.save_file"},
	{".pth", "numpy.save writes what can be read, and safetensors.torch.save_file"},
};

/* A form with the source in the place of each %s. */
static const char *with_source(struct arena *a, const char *form, const char *source)
{
	const char *out = "";
	for (const char *at; out && (at = strstr(form, "%s")); form = at + 2)
		out = arena_printf(a, "%s%.*s%s", out, (int)(at - form), form, source);
	return out ? arena_printf(a, "%s%s", out, form) : NULL;
}

/* "img:photos": what `photos` is read by, where nothing is called so. */
static const char *meant_prefix(struct arena *a, const char *source)
{
	const char *colon = strchr(source, ':'), *prefix, *meant = NULL;
	const char *word = colon ? arena_strndup(a, source, (size_t)(colon - source)) : NULL;
	for (int i = 0; word && (prefix = dataset_prefix(i)); i++)
		meant = nearest(word, meant, prefix);
	if (meant)
		return arena_printf(a, "did you mean %s:%s?", meant, colon + 1);
	struct stat st;
	const char *last = strrchr(source, ':');
	return last && stat(last + 1, &st) == 0 ? data_form_hint(a, last + 1) : NULL;
}

const char *data_form_hint(struct arena *a, const char *source)
{
	const size_t n = strlen(source);
	struct stat st;
	if (dataset_is_prefixed(source))
		return NULL;
	if (stat(source, &st) != 0)
		return meant_prefix(a, source);
	if (S_ISDIR(st.st_mode))
		return arena_printf(a,
			"pictures in it are images:SIZE:%s, their classes labels:%s, masks "
			"masks:SIZE:%s",
			source, source, source);
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		const size_t m = strlen(forms[i].ending);
		if (n > m && !strcmp(source + n - m, forms[i].ending))
			return with_source(a, forms[i].form, source);
	}
	return "read are " INPUT_FORMS;
}

#include "cli/json_only.h"

#include "planner/problem/json_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum status json_only_begin(bool json, int *was, struct diag *d)
{
	*was = -1;
	if (!json)
		return ST_OK;
	fflush(stdout);
	*was = dup(STDOUT_FILENO);
	if (*was < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return diag_fail(d, ST_IO, NULL, NULL, "--json: %s", strerror(errno));
	return ST_OK;
}

void json_only_end(int was)
{
	if (was < 0)
		return;
	fflush(stdout);
	(void)dup2(was, STDOUT_FILENO);
	close(was);
}

static void key(struct text *t, const char *name, const char *value)
{
	text_add(t, "\"%s\":", name);
	if (value)
		json_text_string(t, value);
	else
		text_puts(t, "null");
}

void json_error_add(
	struct json_errors *e, const struct where *w, const char *message, const char *hint)
{
	struct text *t = e->first.len ? &e->others : &e->first;
	if (t == &e->others)
		text_puts(t, t->len ? ",{" : "{");
	key(t, "file", w->file);
	text_puts(t, ",");
	key(t, "node", w->node);
	text_puts(t, ",");
	key(t, "op", w->op);
	text_puts(t, ",");
	key(t, "message", message);
	text_puts(t, ",");
	key(t, "hint", hint);
	if (t == &e->others)
		text_puts(t, "}");
}

static bool is_later_rank(void)
{
	static const char *const rank[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
	for (size_t i = 0; i < sizeof rank / sizeof *rank; i++)
		if (getenv(rank[i]) && atoi(getenv(rank[i])) > 0)
			return true;
	return false;
}

void json_error_print(const struct json_errors *e, enum status st)
{
	static const char none[] = "\"file\":null,\"node\":null,\"op\":null,\"message\":\"out of "
				   "memory\",\"hint\":null";
	if ((!e->first.len && !e->first.failed) || is_later_rank())
		return;
	printf("{\"code\":%d,%s", (int)st, e->first.failed ? none : e->first.s);
	if (e->others.len && !e->others.failed)
		printf(",\"others\":[%s]", e->others.s);
	printf("}\n");
	fflush(stdout);
}

void json_errors_free(struct json_errors *e)
{
	text_free(&e->first);
	text_free(&e->others);
}

bool json_asked(int argc, const char *const *argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--json"))
			return true;
	return false;
}

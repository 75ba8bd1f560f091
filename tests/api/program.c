/* A program that has libstint and its header alone.
 *
 *	program options
 *	program plan|frontier|compile|read OUT MODEL|DIR [NAME[=VALUE]] ...
 *		texts to OUT.0, OUT.1, ...
 *	program stop WHAT DIR MODEL [NAME[=VALUE]] ...
 *		ends it at WHAT: "planning", ..., or 20: when it is asked for the 20th time
 *	program train DIR STEPS OUT INPUT.npy TARGET.npy
 *		from DIR's values; saves, loads, trains on and saves again
 *	program wrong DIR
 *		misuse, each answered
 *
 * It prints facts and messages, and ends with the status. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stint/stint.h>

static void say(const struct stint_diagnostic *x)
{
	static const char *const level[] = {"note", "warning", "error"};
	printf("%s: %s: %s: %s\n", level[x->level], x->file ? x->file : "", x->node ? x->node : "",
		x->message);
	if (x->hint)
		printf("hint: %s\n", x->hint);
}

static int list_options(void)
{
	struct stint_option x;
	for (size_t i = 0; stint_option_at(i, &x); i++) {
		printf("%s %s%s\n", x.name, x.value ? x.value : "-", *x.help ? "" : " NO HELP");
		for (int k = 0; x.words && x.words[k]; k++)
			printf("\t%s\n", x.words[k]);
	}
	return 0;
}

/* "NAME=VALUE" or "NAME", each. */
static int set_all(struct stint_options *o, char **word)
{
	int rc = 0;
	for (; *word && !rc; word++) {
		char *value = strchr(*word, '=');
		if (value)
			*value++ = '\0';
		rc = stint_options_set(o, *word, value);
	}
	const struct stint_diagnostic *x;
	for (size_t i = 0; (x = stint_options_diagnostic(o, i)); i++)
		say(x);
	return rc;
}

static void save_texts(struct stint_result *r, const char *out)
{
	for (int kind = 0; kind <= STINT_TEXT_FRONTIER_SVG; kind++) {
		const char *text, *again;
		size_t len;
		char path[300];
		if (stint_result_text(r, (enum stint_text)kind, NULL, &text, &len))
			continue;
		snprintf(path, sizeof path, "%s.%d", out, kind);
		FILE *f = fopen(path, "wb");
		if (!f || fwrite(text, 1, len, f) != len || fclose(f) != 0)
			abort();
		if (stint_result_text(r, (enum stint_text)kind, NULL, &again, NULL) ||
			again != text)
			abort();
	}
}

static int finish(struct stint_result *r, int rc, const char *out)
{
	const struct stint_facts *f = stint_result_facts(r);
	const struct stint_diagnostic *x;
	for (size_t i = 0; (x = stint_result_diagnostic(r, i)); i++)
		say(x);
	if (f)
		printf("feasible %d arena %" PRId64 " peak %" PRId64 " known %" PRId64
		       " proven %" PRId64 " bounded %d micro %d\n",
			f->feasible, f->arena_bytes, f->peak_bytes, f->min_bytes_known,
			f->min_bytes_proven, f->lower_bound <= f->cost_total, f->micro_batches);
	if (out)
		save_texts(r, out);
	stint_result_free(r);
	return rc;
}

static int make(const char *how, const char *out, const char *model, char **word)
{
	struct stint_options *o;
	struct stint_result *r = NULL;
	char dir[300];
	snprintf(dir, sizeof dir, "%s.dir", out);
	if (!strcmp(how, "read")) {
		const int rc = stint_read_plan(&r, model);
		return finish(r, rc, out);
	}
	int rc = stint_options_new(&o, model);
	if (!rc)
		rc = set_all(o, word);
	if (!rc)
		rc = !strcmp(how, "plan")       ? stint_plan(&r, o, NULL)
		     : !strcmp(how, "frontier") ? stint_frontier(&r, o, NULL)
						: stint_compile(&r, o, dir, NULL);
	stint_options_free(o); /* a result does not need them any longer */
	return r ? finish(r, rc, out) : rc;
}

struct stopping {
	const char *at;
	int reached, asked;
};

static void now(void *user, const char *what)
{
	struct stopping *s = user;
	printf("now %s\n", what);
	s->reached |= !strncmp(what, s->at, strlen(s->at));
}

static int stop(void *user)
{
	struct stopping *s = user;
	s->asked++;
	return s->reached || s->asked == atoi(s->at);
}

static int stop_at(const char *what, const char *dir, const char *model, char **word)
{
	struct stopping s = {.at = what};
	const struct stint_onlooker onlooker = {&s, now, stop};
	struct stint_options *o;
	struct stint_result *r = NULL;
	int rc = stint_options_new(&o, model);
	if (!rc)
		rc = set_all(o, word);
	if (!rc)
		rc = stint_compile(&r, o, dir, &onlooker);
	stint_options_free(o);
	printf("asked %s\n", s.asked ? "yes" : "no");
	return finish(r, rc, NULL);
}

/* The numbers of an .npy file, copied to an array. */
static int set_npy(struct stint_trainer *t, const char *name, const char *path, size_t bytes)
{
	unsigned char head[10], *data = malloc(bytes);
	FILE *f = fopen(path, "rb");
	if (!data || !f || fread(head, 1, sizeof head, f) != sizeof head ||
		fseek(f, head[8] + 256 * head[9], SEEK_CUR) != 0 ||
		fread(data, 1, bytes, f) != bytes)
		abort();
	fclose(f);
	const int rc = stint_trainer_set(t, name, data, bytes);
	free(data);
	return rc;
}

static int failed(const struct stint_trainer *t, int rc)
{
	const struct stint_diagnostic *x;
	for (size_t i = 0; (x = stint_trainer_diagnostic(t, i)); i++)
		say(x);
	return rc;
}

/* What is set is what is got, and what `data` shows. */
static void check_arrays(struct stint_trainer *t)
{
	struct stint_array x;
	for (size_t i = 0; stint_trainer_array(t, i, &x); i++) {
		void *data = malloc(x.bytes + 1);
		if (!data || stint_trainer_get(t, x.name, data, x.bytes) ||
			memcmp(data, x.data, x.bytes) != 0)
			abort();
		free(data);
		printf("array %d %d %s", (int)x.kind, (int)x.type, x.name);
		for (int k = 0; k < x.rank; k++)
			printf(" %" PRId64, x.dim[k]);
		putchar('\n');
	}
}

static int train(const char *dir, int steps, const char *out, const char *input, const char *target)
{
	struct stint_trainer *t, *u;
	struct stint_array x;
	char path[300];
	double loss = 0, again = 0, answer = 0;
	int rc = stint_trainer_open(&t, dir);
	for (size_t i = 0; !rc && stint_trainer_array(t, i, &x); i++)
		if (x.kind == STINT_KIND_INPUT || x.kind == STINT_KIND_TARGET)
			rc = set_npy(
				t, x.name, x.kind == STINT_KIND_INPUT ? input : target, x.bytes);
	for (int i = 0; i < steps && !rc; i++)
		rc = stint_trainer_train(t, stint_trainer_rate(t), &loss);
	if (!rc)
		rc = stint_trainer_save(t, out);
	if (!rc)
		rc = stint_trainer_eval(t, 0, &answer);
	if (rc)
		return failed(t, rc);
	check_arrays(t);
	/* another goes on from the file as this one does */
	rc = stint_trainer_open(&u, dir);
	for (size_t i = 0; !rc && stint_trainer_array(t, i, &x); i++)
		if (x.kind == STINT_KIND_INPUT || x.kind == STINT_KIND_TARGET)
			rc = stint_trainer_set(u, x.name, x.data, x.bytes);
	if (!rc)
		rc = stint_trainer_load(u, out, 1);
	if (!rc && stint_trainer_steps(u) != steps)
		abort();
	if (!rc)
		rc = stint_trainer_train(u, stint_trainer_rate(u), &again);
	if (!rc)
		rc = stint_trainer_train(t, stint_trainer_rate(t), &loss);
	if (rc)
		return failed(u, rc);
	/* its only loss is what it trains */
	struct stint_loss told;
	if (!stint_trainer_loss(t, 0, &told) || told.weight != 1 || told.value != loss ||
		stint_trainer_loss(t, 1, &told))
		abort();
	snprintf(path, sizeof path, "%s.a", out);
	rc = stint_trainer_save(t, path);
	snprintf(path, sizeof path, "%s.b", out);
	if (!rc)
		rc = stint_trainer_save(u, path);
	printf("loss %.17g again %.17g eval %.17g\n", loss, again, answer);
	stint_trainer_free(u);
	stint_trainer_free(t);
	return rc;
}

static int wrong(const char *dir)
{
	struct stint_options *o;
	struct stint_trainer *t;
	struct stint_result *r;
	const char *text;
	float few[3] = {0};
	printf("version %s\n", stint_version());
	stint_options_free(NULL), stint_result_free(NULL), stint_trainer_free(NULL);
	if (stint_options_new(&o, NULL))
		abort();
	printf("%d %d %d %d\n", stint_options_set(o, "buget", "70%"),
		stint_options_set(o, "budget", NULL), stint_options_set(o, "portable", "yes"),
		stint_options_set(o, "json", NULL));
	char *none = NULL;
	set_all(o, &none);
	printf("%d\n", stint_plan(&r, o, NULL));
	printf("%d\n", stint_result_text(r, STINT_TEXT_PLAN, NULL, &text, NULL));
	if (text || stint_result_facts(r))
		abort();
	finish(r, 0, NULL);
	stint_options_free(o);
	if (stint_trainer_open(&t, dir))
		abort();
	printf("%d\n", failed(t, stint_trainer_set(t, "nobody", few, sizeof few)));
	printf("%d\n", failed(t, stint_trainer_load(t, "/nowhere.safetensors", 0)));
	stint_trainer_free(t);
	printf("%d\n", stint_trainer_open(&t, "/nowhere"));
	failed(t, 0);
	printf("%d %d\n", stint_trainer_train(t, 0.1, NULL), stint_trainer_array(t, 0, NULL));
	failed(t, 0);
	stint_trainer_free(t);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "options"))
		return list_options();
	if (argc >= 4 && (!strcmp(argv[1], "plan") || !strcmp(argv[1], "frontier") ||
				 !strcmp(argv[1], "compile") || !strcmp(argv[1], "read")))
		return make(argv[1], argv[2], argv[3], argv + 4);
	if (argc >= 5 && !strcmp(argv[1], "stop"))
		return stop_at(argv[2], argv[3], argv[4], argv + 5);
	if (argc == 7 && !strcmp(argv[1], "train"))
		return train(argv[2], atoi(argv[3]), argv[4], argv[5], argv[6]);
	if (argc == 3 && !strcmp(argv[1], "wrong"))
		return wrong(argv[2]);
	return 99;
}

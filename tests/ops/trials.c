#include "tests/ops/trials.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/ops/ops_test.h"

void trials_begin(struct trials *t, const char *folder, const char *runtime)
{
	*t = (struct trials){.folder = folder};
	mkdir(folder, 0777);
	text_add(&t->command, VALUES_CC " %s -I%s -shared -o %s/all.so", STEP_CFLAGS, runtime,
		folder);
}

bool trial_begin(struct trials *t, struct trial_step *s, const char *name, int number)
{
	s->of = t;
	s->arena = arena_new();
	snprintf(s->symbol, sizeof s->symbol, "%s%d", name, number);
	return s->arena != NULL;
}

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct trial_step *s = user;
	(void)w;
	(void)hint;
	if (level == DIAG_ERROR && !*s->error)
		snprintf(s->error, sizeof s->error, "%s", message);
}

struct diag trial_diag(struct trial_step *s)
{
	return (struct diag){.put = put, .user = s};
}

void trial_built(struct trial_step *s, enum status built)
{
	if (built != ST_OK && !*s->error)
		strcpy(s->error, "it was not built");
	else if (built == ST_OK)
		text_add(&s->of->command, " %s/%s/step.c", s->of->folder, s->symbol);
}

void trials_open(struct trials *t)
{
	char path[4096];
	text_puts(&t->command, " -lm");
	snprintf(path, sizeof path, "%s/all.so", t->folder);
	if (!t->command.failed && system(t->command.s) == 0)
		t->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	text_free(&t->command);
}

stint_step *trial_start(const struct trial_step *s)
{
	char name[64];
	stint_step *step = NULL;
	if (*s->error)
		fail_msg("%s", s->error);
	snprintf(name, sizeof name, "stint_model_%s", s->symbol);
	const struct stint_model *model = s->of->object ? dlsym(s->of->object, name) : NULL;
	assert_non_null(model);
	assert_int_equal(stint_init(&step, model, NULL, 0), STINT_OK);
	for (int i = 0; i < model->nresident; i++) {
		const struct tensor *x = s->train.tensor[i];
		if (x->data)
			assert_int_equal(stint_set(step, s->train.problem->tensor[i].name, x->data,
						 (size_t)tensor_bytes(x)),
				STINT_OK);
	}
	return step;
}

void trial_end(struct trial_step *s)
{
	if (s->arena)
		arena_free(s->arena);
}

void trials_end(struct trials *t)
{
	if (t->object)
		dlclose(t->object);
}

enum status trial_attach_loss(void *user, struct graph *g)
{
	(void)user;
	g->loss = g->output[0];
	return ST_OK;
}

/* A program of someone else's around a step, for any machine that a C compiler knows:
 *
 *	driver WEIGHTS.safetensors RUN.safetensors TRAINED.safetensors FILE.npy...
 *
 * The files are the inputs in the model's order, the target last. RUN gets what `stint run` writes:
 * loss, outputs, every gradient, running statistics. Then two steps are trained, and TRAINED gets
 * the losses and all that they changed: parameters, statistics, the optimizer's state. Exit 1 with
 * a message where anything fails. Built with MODEL, the name that stint_step.h declares.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stint_step.h"

#include "safetensors.h"

enum { STEPS = 2, ENTRIES = 4096 };

struct tensors {
	int n;
	struct safetensors_entry entry[ENTRIES];
};

static void fail(const char *what, const char *name)
{
	fprintf(stderr, "driver: %s: %s\n", name, what);
	exit(1);
}

/* A copy of a tensor, under a name with a prefix. */
static void keep(struct tensors *to, const char *prefix, const struct safetensors_entry *e)
{
	char *name = malloc(strlen(prefix) + strlen(e->name) + 1);
	void *data = malloc(e->bytes ? e->bytes : 1);
	if (!name || !data || !e->data || to->n == ENTRIES)
		fail("no memory, or too many tensors", e->name);
	strcat(strcpy(name, prefix), e->name);
	memcpy(data, e->data, e->bytes);
	to->entry[to->n] = *e;
	to->entry[to->n].name = name;
	to->entry[to->n++].data = data;
}

static void keep_resident(
	struct tensors *to, const char *prefix, const struct stint_tensor *t, const void *data)
{
	const struct safetensors_entry e = {.name = t->name,
		.dtype = t->dtype,
		.rank = t->rank,
		.dim = t->dim,
		.data = data,
		.bytes = t->bytes};
	keep(to, prefix, &e);
}

static void keep_loss(struct tensors *to, const stint_step *s, const char *name)
{
	const float loss = (float)stint_loss(s);
	const struct safetensors_entry e = {
		.name = name, .dtype = STINT_F32, .data = &loss, .bytes = sizeof loss};
	keep(to, "", &e);
}

static void on_gradient(void *user, int parameter, const void *data, size_t bytes)
{
	(void)bytes;
	keep_resident(user, "grad/", &MODEL.resident[parameter], data);
}

static void on_output(void *user, int output, int dtype, const void *data, size_t bytes)
{
	const struct stint_output *o = &MODEL.output[output];
	const struct safetensors_entry e = {.name = o->name,
		.dtype = dtype,
		.rank = o->rank,
		.dim = o->dim,
		.data = data,
		.bytes = bytes};
	keep(user, "output/", &e);
}

static void write_tensors(const struct tensors *t, const char *path)
{
	char message[SAFETENSORS_MESSAGE];
	if (safetensors_write(path, t->entry, t->n, NULL, 0, message))
		fail(message, path);
}

/* Input `resident`, from a .npy file: its values lie behind a header as long as bytes 8 and 9 say.
 */
static void set_input(stint_step *s, const struct stint_tensor *t, const char *path)
{
	unsigned char head[10];
	void *data = malloc(t->bytes);
	FILE *f = fopen(path, "rb");
	if (!f || !data || fread(head, 1, sizeof head, f) != sizeof head ||
		memcmp(head, "\x93NUMPY\x01", 7) != 0 ||
		fseek(f, head[8] + 256L * head[9], SEEK_CUR) ||
		fread(data, 1, t->bytes, f) != t->bytes || fgetc(f) != EOF)
		fail("not the values that the input takes", path);
	fclose(f);
	if (stint_set(s, t->name, data, t->bytes))
		fail(stint_message(s), path);
	free(data);
}

/* Those of the model's order, then the target. */
static void set_inputs(stint_step *s, int n, char **path)
{
	const struct stint_model *m = &MODEL;
	const int target = m->nloss ? m->loss->target : -1;
	int at = 0;
	for (int i = 0; i < m->nresident; i++)
		if (m->resident[i].kind == STINT_INPUT && i != target) {
			if (at == n)
				fail("no file", m->resident[i].name);
			set_input(s, &m->resident[i], path[at++]);
		}
	if (target >= 0 && at < n)
		set_input(s, &m->resident[target], path[at++]);
	if (at != n)
		fail("not an input", path[at]);
}

static void look(stint_step *s, struct tensors *out)
{
	const struct stint_probe probe = {
		.user = out, .gradient = on_gradient, .output = on_output};
	if (stint_train_probed(s, 0, &probe))
		fail(stint_message(s), "the step");
	keep_loss(out, s, "loss");
	for (int i = 0; i < MODEL.nresident; i++)
		if (MODEL.resident[i].kind == STINT_BUFFER)
			keep_resident(out, "buffer/", &MODEL.resident[i],
				stint_at(s, MODEL.resident[i].name));
}

static void train(stint_step *s, struct tensors *out)
{
	char name[] = "loss/0";
	for (int i = 0; i < STEPS; i++, name[sizeof name - 2]++) {
		if (stint_train(s, MODEL.lr_default))
			fail(stint_message(s), "training");
		keep_loss(out, s, name);
	}
	for (int i = 0; i < MODEL.nresident; i++) {
		const struct stint_tensor *t = &MODEL.resident[i];
		if (t->kind != STINT_INPUT && t->kind != STINT_CONTROL)
			keep_resident(out, "", t, stint_at(s, t->name));
	}
}

int main(int argc, char **argv)
{
	static struct tensors run, trained;
	stint_step *s;
	if (argc < 4)
		fail("give WEIGHTS RUN TRAINED INPUT.npy...", "usage");
	if (stint_init(&s, &MODEL, NULL, 0) || stint_load(s, argv[1]))
		fail(s ? stint_message(s) : "out of memory", argv[1]);
	set_inputs(s, argc - 4, argv + 4);
	look(s, &run);
	write_tensors(&run, argv[2]);
	train(s, &trained);
	write_tensors(&trained, argv[3]);
	stint_free(s);
	return 0;
}

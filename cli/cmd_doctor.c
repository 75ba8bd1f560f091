/* stint doctor [--cuda] [-o FILE]: what this machine has for training, and whether a step trains.
 */
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "api/folder.h"
#include "api/report.h"
#include "api/safe_put.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/clock.h"
#include "cli/doctor.h"
#include "cli/interrupt.h"
#include "cli/machine.h"
#include "planner/problem/json_text.h"

/* --- The report --- */

/* `text` with what stands for `from` in its place. */
static void put_without(struct text *t, const char *text, const char *from, const char *to)
{
	const size_t n = from ? strlen(from) : 0;
	for (const char *at; n > 1 && (at = strstr(text, from)); text = at + n) {
		text_write(t, text, (size_t)(at - text));
		text_puts(t, to);
	}
	text_puts(t, text);
}

/* Without the user's home and the folder for steps; to be freed. */
static struct text discreet(const struct doctor *x, const char *s)
{
	struct text t = {0}, plain = {0};
	put_without(&t, s, x->work, "WORK");
	put_without(&plain, t.s ? t.s : "", getenv("HOME"), "~");
	text_free(&t);
	return plain;
}

static void line(struct doctor *x, const char *s)
{
	struct text plain = discreet(x, s);
	FILE *const to[] = {x->json ? NULL : stdout, x->file};
	for (int i = 0; i < 2 && plain.s; i++)
		if (to[i]) {
			safe_put(to[i], plain.s);
			fputc('\n', to[i]);
			fflush(to[i]); /* what is known stays known where a library ends us */
		}
	text_free(&plain);
}

static void put_json(struct doctor *x, const char *key, const char *value)
{
	struct text plain = discreet(x, value ? value : "");
	text_add(&x->found, "\"%s\":", key);
	if (value)
		json_text_string(&x->found, plain.s ? plain.s : "");
	else
		text_puts(&x->found, "null");
	text_free(&plain);
}

void doctor_say(struct doctor *x, enum finding f, const char *hint, const char *format, ...)
{
	static const char *const word[] = {"ok", "-", "slow", "wrong"}, *const key[] = {"ok",
										"note", "slow",
										"wrong"};
	struct text t = {0}, said = {0};
	va_list list;
	va_start(list, format);
	text_vadd(&t, format, list);
	va_end(list);
	x->count[f]++;
	text_puts(&x->found, x->found.len ? ",{" : "{");
	put_json(x, "section", x->title);
	text_add(&x->found, ",\"finding\":\"%s\",", key[f]);
	put_json(x, "text", t.s ? t.s : "");
	text_puts(&x->found, ",");
	put_json(x, "hint", hint);
	text_puts(&x->found, "}");
	/* what others say may have several lines */
	bool first = true;
	for (const char *s = t.s ? t.s : ""; *s;) {
		const size_t n = strcspn(s, "\n");
		if (n) {
			said.len = 0;
			text_add(&said, "%-6s %.*s", first ? word[f] : "", (int)n, s);
			line(x, said.s);
			first = false;
		}
		s += n + (s[n] == '\n');
	}
	if (hint) {
		said.len = 0;
		text_add(&said, "       hint: %s", hint);
		line(x, said.s);
	}
	text_free(&t);
	text_free(&said);
}

void doctor_title(struct doctor *x, const char *title)
{
	struct text t = {0};
	x->title = title;
	text_add(&t, "%s:", title);
	line(x, t.s);
	text_free(&t);
}

double doctor_ms(void)
{
	return 1e3 * clock_seconds();
}

/* --- The processor --- */

/* The first line that a command writes; "": it is not there. */
static void first_line(const char *command, char *out, size_t room)
{
	FILE *f = popen(command, "r");
	out[0] = 0;
	if (f && !fgets(out, (int)room, f))
		out[0] = 0;
	if (f)
		pclose(f);
	out[strcspn(out, "\n")] = 0;
}

static void tools(struct doctor *x)
{
	char version[256];
	first_line("make --version 2>/dev/null", version, sizeof version);
	doctor_say(x, *version ? FINDING_OK : FINDING_WRONG,
		*version ? NULL : "install make: it builds a compiled step", "make: %s",
		*version ? version : "not found");
	first_line("${CC:-cc} --version 2>/dev/null", version, sizeof version);
	doctor_say(x, *version ? FINDING_OK : FINDING_WRONG,
		*version ? NULL : "install gcc or clang, or set CC", "C compiler: %s",
		*version ? version : "not found");
	first_line("mpirun --version 2>/dev/null", version, sizeof version);
	doctor_say(x, FINDING_NOTE, NULL, "MPI: %s",
		*version ? version : "not found; only --ranks needs it");
}

static void machine(struct doctor *x)
{
	struct diag quiet = {.put = NULL};
	struct costs c = {.threads = omp_get_max_threads()};
	struct utsname u;
	char all[24], left[24];
	if (uname(&u) == 0)
		doctor_say(x, FINDING_NOTE, NULL, "stint %s; %s %s %s", STINT_VERSION, u.sysname,
			u.release, u.machine);
	if (machine_describe(x->arena, true, &c, &quiet) == ST_OK)
		doctor_say(x, FINDING_OK, NULL, "processor: %s, %s; library: %s", c.cpu, c.isa,
			c.library);
	else if (c.cpu && c.isa)
		doctor_say(x, FINDING_NOTE, NULL,
			"processor: %s, %s; stint was built without oneDNN: steps are plain C",
			c.cpu, c.isa);
	doctor_say(x, FINDING_OK, NULL, "processors: %ld; OpenMP has %d threads",
		sysconf(_SC_NPROCESSORS_ONLN), c.threads);
	const int64_t page = sysconf(_SC_PAGESIZE);
	doctor_say(x, FINDING_OK, NULL, "memory: %s, of which %s are free",
		bytes_human(sysconf(_SC_PHYS_PAGES) * page, all),
		bytes_human(sysconf(_SC_AVPHYS_PAGES) * page, left));
	tools(x);
}

static void processor(struct doctor *x)
{
	/* two ways to one gradient, which differ in the order of sums */
	static const double most = 1e-4;
	struct doctor_step fast = {.name = "step in C", .target = "c", .precision = "fp32"},
			   plain = {.name = "portable step in C",
				   .target = "c",
				   .precision = "fp32",
				   .portable = true};
	struct bench b = {.arena = x->arena};
	doctor_title(x, "Processor");
	machine(x);
	const bool built = doctor_compile(x, &fast);
	if (doctor_compile(x, &plain)) {
		b.dir = built ? fast.dir : plain.dir;
		doctor_compare(x, built ? &fast : &plain, &b, built ? &plain : NULL, most);
	}
	load_close(&b.l);
}

/* --- The command --- */

/* `wanted`: how many steps should have been trained, in C or (cuda) on the GPU; `c`: one in C was.
 */
static enum status verdict(struct doctor *x, bool cuda, int wanted, bool c)
{
	const bool able = x->steps >= wanted;
	struct text t = {0};
	doctor_title(x, "Result");
	text_add(&t, "%s; %d wrong, %d slow",
		able       ? "a step can be trained here"
		: x->steps ? "not every step can be trained here"
		: cuda     ? "no step can be trained on a GPU here"
			   : "no step can be trained here",
		x->count[FINDING_WRONG], x->count[FINDING_SLOW]);
	if (!able && cuda && c)
		text_puts(&t, "; one in C can (--target c)");
	doctor_say(x, able ? FINDING_OK : FINDING_WRONG, NULL, "%s", t.s ? t.s : "");
	text_free(&t);
	if (x->json && !x->found.failed)
		printf("{\"able\":%s,\"wrong\":%d,\"slow\":%d,\"findings\":[%s]}\n",
			able ? "true" : "false", x->count[FINDING_WRONG], x->count[FINDING_SLOW],
			x->found.s);
	return able ? ST_OK : ST_IO;
}

/* --calibrate alone: nothing else is examined. */
static enum status calibrate(struct doctor *x)
{
	const bool able = doctor_calibrate(x);
	if (x->json && !x->found.failed)
		printf("{\"able\":%s,\"wrong\":%d,\"slow\":%d,\"findings\":[%s]}\n",
			able ? "true" : "false", x->count[FINDING_WRONG], x->count[FINDING_SLOW],
			x->found.s);
	return able ? ST_OK : ST_IO;
}

/* What was asked for besides the processor. */
struct wanted {
	int cuda, json, calibrate;
	char *only, *out;
};

static enum status examine(struct arena *a, const struct wanted *o, FILE *file, struct diag *d)
{
	int wanted = 1;
	const char *tmp = getenv("TMPDIR");
	char *work = arena_printf(a, "%s/stint-doctor.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!work)
		return diag_nomem(d);
	interrupt_listen();
	if (!mkdtemp(work))
		return diag_fail(d, ST_IO, &(struct where){.file = work},
			"set TMPDIR to a folder that can be written", "cannot be made");
	struct doctor x = {.arena = a, .file = file, .json = o->json != 0, .work = work};
	if (!o->calibrate)
		processor(&x);
	const bool c = x.steps > 0;
	if (o->cuda) {
		x.steps = 0;
		wanted = doctor_cuda(&x, o->only);
	}
	const enum status done = o->calibrate ? calibrate(&x)
					      : verdict(&x, o->cuda != 0, wanted, c);
	const enum status st = interrupt_asked() ? diag_fail(d, ST_INTERRUPTED, NULL, NULL,
							   "interrupted by %s", interrupt_name())
						 : done;
	text_free(&x.found);
	struct folder f = {.arena = a, .dir = work, .work = work};
	folder_drop(&f);
	return st;
}

static enum status doctor(struct arena *a, const struct wanted *o, struct diag *d)
{
	static const char *const known[] = {"fp32", "tf32", "bf16", "fp16"};
	bool any = !o->only;
	for (size_t i = 0; o->only && i < sizeof known / sizeof *known; i++)
		any |= !strcmp(o->only, known[i]);
	if (!any || (o->only && !o->cuda))
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--precision goes with --cuda: fp32, tf32, bf16 or fp16");
	if (o->calibrate && o->cuda)
		return diag_fail(d, ST_USAGE, NULL, "leave one of them away",
			"--calibrate measures the processor, and --cuda looks at the GPU");
	const struct where w = {.file = o->out};
	FILE *file = o->out ? fopen(o->out, "w") : NULL;
	if (o->out && !file)
		return diag_fail(d, ST_IO, &w, NULL, "cannot be written");
	const enum status st = examine(a, o, file, d);
	if (file && (ferror(file) | fclose(file)) != 0)
		return diag_fail(d, ST_IO, &w, NULL, "cannot be written");
	return st;
}

enum status cmd_doctor(int argc, const char **argv, struct diag *d)
{
	struct wanted o = {0};
	struct poptOption table[] = {
		{"cuda", 0, POPT_ARG_NONE, &o.cuda, 0,
			"also the GPU: driver, libraries, a step in each precision", NULL},
		{"calibrate", 0, POPT_ARG_NONE, &o.calibrate, 0,
			"measure what kernels take here, once, for the times that are told", NULL},
		{"precision", 0, POPT_ARG_STRING, &o.only, 0,
			"with --cuda: a step in this precision only", "P"},
		{"output", 'o', POPT_ARG_STRING, &o.out, 0, "write the report to FILE as well",
			"FILE"},
		{"json", 0, POPT_ARG_NONE, &o.json, 0, "print JSON for programs", NULL},
		POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(a, argc, argv, table, "[OPTIONS]", 0, 0, NULL, &args, d);
	if (st == ST_OK && !args.help)
		st = doctor(a, &o, d);
	free(o.only);
	free(o.out);
	arena_free(a);
	return st;
}

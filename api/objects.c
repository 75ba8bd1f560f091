#include "api/objects.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/make.h"
#include "api/objects_room.h"
#include "api/objects_text.h"
#include "api/processors.h"
#include "codegen/embedded.h"
#include "codegen/sources.h"
#include "runtime/stint_cache.h"

enum { LOTS = 64 };

struct objects {
	struct arena *arena;
	const char *cache, *work, *dir;
	struct onlooker *onlooker;
	struct step_text step;
	unsigned char kernels[STINT_SHA], runtime[STINT_SHA]; /* what each is compiled with */
	int nold, nlot; /* objects from the cache; those to be compiled */
	unsigned char (*old)[STINT_SHA];
	const char **source; /* of the runtime, ended by NULL */
	bool *source_kept;
};

/* On top of the folder's own Makefile, whose commands these are. kept/probe is what kernels are
 * compiled behind, but for their sources, as the preprocessor leaves it, and .words what the
 * compiler says of itself and of its flags; a folder's place in there is nothing that an object
 * depends on. */
static const char rules[] =
	"include Makefile\n"
	"DEBUG_PATH =\n"
	"HERE = $(COMPILE) -iquote . -w -Wno-all -Wno-extra\n"
	"PIECES = $(filter-out step.c,$(SOURCES))\n"
	"kept/probe: kept/probe.c\n"
	"\t$(file >kept/sources,$(PIECES))$(file >kept/flags,$(CC) $(CFLAGS) $(STEP_FLAGS) "
	"$(OPENMP) "
	"$(LDFLAGS))\n"
	"\t$(CC) $(CFLAGS) $(STEP_FLAGS) $(OPENMP) -iquote . -w -E -P -v $< 2>&1 >$@ | \\\n"
	"\t\tsed 's|$(CURDIR)|.|g' >$@.words\n"
	"kept/lot%.o: kept/lot%.c\n"
	"\t$(HERE) -ffunction-sections -fdata-sections\n"
	"kept/calls.o: kept/calls.c\n"
	"\t$(HERE) -DSTINT_SHARED\n"
	"kept/%.o: %.c\n"
	"\t$(HERE:-O2=-O1)\n"
	"kept/step.so: kept/calls.o $(KERNELS) $(PIECES:%.c=kept/%.o) | $(RANKS)\n"
	"\t$(CC) $(CFLAGS) $(OPENMP) -shared -Wl,--gc-sections -o step.so $^ $(LDFLAGS) $(LIBS)\n";

/* --- Files in the folder's kept/ --- */

static const char *path_in(struct objects *o, const char *name)
{
	return arena_printf(o->arena, "%s/kept/%s", o->work, name);
}

static bool put(struct objects *o, const char *name, struct text *t)
{
	struct diag quiet = {.put = NULL};
	const char *path = path_in(o, name);
	const bool done = path && text_save(t, path, &quiet) == ST_OK;
	text_free(t);
	return done;
}

static bool put_bytes(struct objects *o, const char *name, const void *data, size_t n)
{
	struct text t = {0};
	text_write(&t, data, n);
	return put(o, name, &t);
}

static bool get(struct objects *o, const char *name, char **data, size_t *n)
{
	struct diag quiet = {.put = NULL};
	const char *path = path_in(o, name);
	return path && file_read(o->arena, path, data, n, &quiet) == ST_OK;
}

static void remove_kept(struct objects *o)
{
	const char *path = arena_printf(o->arena, "%s/kept", o->work);
	DIR *dir = path ? opendir(path) : NULL;
	if (!dir)
		return;
	for (struct dirent *e; (e = readdir(dir)) != NULL;)
		(void)unlinkat(dirfd(dir), e->d_name, 0);
	closedir(dir);
	(void)rmdir(path);
}

static enum status make(struct objects *o, const char *target, int nobject)
{
	struct diag quiet = {.put = NULL};
	return make_target(o->arena,
		&(struct make_target){o->work, o->dir, "kept/Makefile", target, "kept", nobject},
		o->onlooker, &quiet);
}

/* --- What objects depend on --- */

/* Objects depend on nothing but what is hashed unless these say otherwise: what names files or
 * folders in them, or is done when all of a program is there. */
static bool flags_suit(const char *flags)
{
	static const char *const bad[] = {"-g", "-pg", "-fsanitize", "-flto", "-fprofile",
		"--coverage", "-coverage", "-save-temps", "-fwhole-program", "-fplugin"};
	for (const char *p = flags; *p; p += strspn(p, " \n")) {
		for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
			if (!strncmp(p, bad[i], strlen(bad[i])))
				return false;
		p += strcspn(p, " \n");
	}
	return true;
}

/* The versions of the libraries whose headers the runtime includes, for the preprocessor to say. */
static const char versions[] =
	"\n#if __has_include(<oneapi/dnnl/dnnl_version.h>)\n"
	"#include <oneapi/dnnl/dnnl_version.h>\n"
	"#endif\n"
	"stint_versions __GLIBC__ __GLIBC_MINOR__ DNNL_VERSION_MAJOR DNNL_VERSION_MINOR "
	"DNNL_VERSION_PATCH DNNL_VERSION_HASH\n";

static void add_files(struct stint_sha *sum, const struct embedded_file *f)
{
	for (; f->name; f++) {
		stint_cache_field(sum, f->name, strlen(f->name));
		stint_cache_field(sum, f->text, f->len);
	}
}

static enum status ask_compiler(struct objects *o, bool *suits)
{
	struct text t = {0};
	char *probe, *words, *flags;
	size_t nprobe, nwords, nflags;
	struct stint_sha sum;
	unsigned char top[STINT_SHA];
	objects_print_common(&o->step, &t);
	text_puts(&t, versions);
	stint_sha_start(&sum);
	stint_cache_field(&sum, t.s ? t.s : "", t.len);
	stint_sha_end(&sum, top);
	*suits = put(o, "probe.c", &t) && put_bytes(o, "Makefile", rules, strlen(rules));
	if (!*suits)
		return ST_OK;
	const enum status st = make(o, "kept/probe", 0);
	if (st == ST_INTERRUPTED)
		return st;
	*suits = st == ST_OK && get(o, "probe", &probe, &nprobe) && nprobe > 0 &&
		 get(o, "probe.words", &words, &nwords) && get(o, "flags", &flags, &nflags) &&
		 flags_suit(flags);
	const char *said = *suits ? strstr(probe, "stint_versions") : NULL;
	*suits = said != NULL;
	if (!said)
		return ST_OK;
	stint_sha_start(&sum);
	stint_cache_field(&sum, "object 3", 8);
	stint_cache_field(&sum, words, nwords);
	stint_cache_field(&sum, flags, nflags);
	struct stint_sha runtime = sum;
	/* macros, which the sources see and the preprocessor does not leave */
	stint_cache_field(&sum, top, sizeof top);
	stint_cache_field(&sum, probe, nprobe);
	add_files(&sum, kernel_files());
	stint_sha_end(&sum, o->kernels);
	stint_cache_field(&runtime, said, strlen(said));
	add_files(&runtime, embedded_files());
	stint_sha_end(&runtime, o->runtime);
	return ST_OK;
}

static bool list_sources(struct objects *o)
{
	char *list;
	size_t len;
	int n = 0;
	if (!get(o, "sources", &list, &len))
		return false;
	o->source = ARENA_ARRAY(o->arena, const char *, len + 1);
	o->source_kept = ARENA_ARRAY(o->arena, bool, len + 1);
	if (!o->source || !o->source_kept)
		return false;
	for (char *save = NULL, *word = strtok_r(list, " \n", &save); word;
		word = strtok_r(NULL, " \n", &save)) {
		const size_t l = strlen(word);
		if (strchr(word, '/') || l < 3 || strcmp(word + l - 2, ".c") != 0)
			return false;
		word[l - 2] = '\0';
		o->source[n++] = word;
	}
	return true;
}

/* --- From the cache, and into it --- */

static void source_key(const struct objects *o, const char *name, unsigned char key[STINT_SHA])
{
	struct stint_sha sum;
	stint_sha_start(&sum);
	stint_cache_field(&sum, o->runtime, STINT_SHA);
	stint_cache_field(&sum, name, strlen(name));
	stint_sha_end(&sum, key);
}

/* What is kept under `key`, as the file kept/`name`. */
static bool fetch(struct objects *o, const unsigned char key[STINT_SHA], const char *name)
{
	size_t n = 0;
	void *data = name ? stint_cache_read(o->cache, key, &n) : NULL;
	const bool done = data && put_bytes(o, name, data, n);
	free(data);
	return done;
}

/* The object that has a unit: fetched, unless it was. */
static bool fetch_lot(struct objects *o, const unsigned char lot[STINT_SHA])
{
	for (int i = 0; i < o->nold; i++)
		if (!memcmp(o->old[i], lot, STINT_SHA))
			return true;
	if (!fetch(o, lot, arena_printf(o->arena, "old%d.o", o->nold)))
		return false;
	memcpy(o->old[o->nold++], lot, STINT_SHA);
	return true;
}

static bool fetch_all(struct objects *o, struct objects_built *built)
{
	o->old = (unsigned char(*)[STINT_SHA])arena_alloc(o->arena, (size_t)o->step.n, STINT_SHA);
	if (!o->old)
		return false;
	built->kernels = o->step.n;
	built->kept = 0;
	for (int i = 0; i < o->step.n; i++) {
		struct unit *u = &o->step.unit[i];
		size_t n = 0;
		unsigned char *lot = stint_cache_read(o->cache, u->key, &n);
		u->kept = lot && n == STINT_SHA && fetch_lot(o, lot);
		built->kept += u->kept;
		free(lot);
	}
	for (int i = 0; o->source[i]; i++) {
		unsigned char key[STINT_SHA];
		source_key(o, o->source[i], key);
		o->source_kept[i] = fetch(o, key, arena_printf(o->arena, "%s.o", o->source[i]));
	}
	return true;
}

static void keep_lot(struct objects *o, int lot)
{
	static const char what[] = "kernels";
	unsigned char key[STINT_SHA];
	char *data;
	size_t n;
	struct stint_sha sum;
	if (!get(o, arena_printf(o->arena, "lot%d.o", lot), &data, &n))
		return;
	stint_sha_start(&sum);
	stint_cache_field(&sum, what, sizeof what);
	stint_cache_field(&sum, data, n);
	stint_sha_end(&sum, key);
	stint_cache_write(o->cache, key, data, n);
	for (int i = 0, k = 0; i < o->step.n; i++)
		if (!o->step.unit[i].kept && k++ % o->nlot == lot)
			stint_cache_write(o->cache, o->step.unit[i].key, key, STINT_SHA);
}

static void keep_new(struct objects *o)
{
	char *data;
	size_t n;
	for (int i = 0; i < o->nlot; i++)
		keep_lot(o, i);
	for (int i = 0; o->source[i]; i++) {
		unsigned char key[STINT_SHA];
		if (o->source_kept[i] ||
			!get(o, arena_printf(o->arena, "%s.o", o->source[i]), &data, &n))
			continue;
		source_key(o, o->source[i], key);
		stint_cache_write(o->cache, key, data, n);
	}
	objects_room(o->cache);
}

/* --- The step --- */

/* As many lots as there are processors; a few kernels are not worth the headers once more. */
static int lots_for(int kernels)
{
	enum { AT_LEAST = 6 };
	const int most = processors(LOTS), wanted = (kernels + AT_LEAST - 1) / AT_LEAST;
	return wanted < most ? wanted : most;
}

/* Fetched and compiled: the kernels', the calls and the runtime's. */
static int count_objects(const struct objects *o)
{
	int n = o->nlot + o->nold + 1;
	for (int i = 0; o->source[i]; i++)
		n++;
	return n;
}

static bool write_sources(struct objects *o)
{
	struct text t = {0};
	for (int i = 0; i < o->nlot; i++) {
		objects_print_lot(&o->step, i, o->nlot, &t);
		const char *name = arena_printf(o->arena, "lot%d.c", i);
		if (!name || !put(o, name, &t))
			return false;
		t = (struct text){0};
	}
	objects_print_calls(&o->step, &t);
	if (!put(o, "calls.c", &t))
		return false;
	t = (struct text){0};
	text_puts(&t, "KERNELS =");
	for (int i = 0; i < o->nlot; i++)
		text_add(&t, " kept/lot%d.o", i);
	for (int i = 0; i < o->nold; i++)
		text_add(&t, " kept/old%d.o", i);
	text_add(&t, "\n%s", rules);
	return put(o, "Makefile", &t);
}

static enum status make_of_objects(struct objects *o, struct objects_built *built)
{
	bool suits;
	TRY(ask_compiler(o, &suits));
	if (!suits || !list_sources(o))
		return ST_OK;
	objects_name(&o->step, o->kernels);
	if (!fetch_all(o, built))
		return ST_OK;
	o->nlot = lots_for(built->kernels - built->kept);
	if (!write_sources(o))
		return ST_OK;
	const enum status st = make(o, "kept/step.so", count_objects(o));
	if (st == ST_OK)
		keep_new(o);
	built->made = st == ST_OK;
	return st == ST_INTERRUPTED ? st : ST_OK;
}

enum status objects_make(struct arena *a, const char *cache, const char *work, const char *dir,
	struct onlooker *onlooker, struct objects_built *built, struct diag *d)
{
	struct objects o = {
		.arena = a, .cache = cache, .work = work, .dir = dir, .onlooker = onlooker};
	struct diag quiet = {.put = NULL};
	char *step;
	size_t len;
	*built = (struct objects_built){.made = false};
	const char *path = arena_printf(a, "%s/step.c", work),
		   *kept = arena_printf(a, "%s/kept", work);
	if (!path || !kept)
		return diag_nomem(d);
	if (!cache || !*cache || file_read(a, path, &step, &len, &quiet) != ST_OK ||
		!objects_parts(a, step, &o.step) || mkdir(kept, 0777) != 0)
		return ST_OK;
	const enum status st = make_of_objects(&o, built);
	remove_kept(&o);
	return st;
}

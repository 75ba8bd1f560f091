/* The kernels' source files (kernels/), which travel with a step, and those that it uses. */
#ifndef STINT_CODEGEN_SOURCES_H
#define STINT_CODEGEN_SOURCES_H

#include "base/base.h"
#include "base/embedded_file.h"

/* All of them, by their names in kernels/; ended by a NULL name. */
const struct embedded_file *kernel_files(void);

/* Element types that a template is included with: X, Y, Z, W, V. */
enum { SOURCE_TYPES = 5 };

/* One file as it is included: a template once for each combination of types. */
struct source_use {
	const char *file;
	int ntype;
	const char *type[SOURCE_TYPES];
	struct source_use *next;
};
struct sources {
	struct arena *arena;
	struct source_use *first;
};

enum { SOURCE_FILES = 256 };
struct source_files {
	int n;
	const struct embedded_file *file[SOURCE_FILES];
};

/* Include kernels/FILE, with these types if it is a template; once. False when out of memory. */
bool sources_add(struct sources *s, const char *file, int ntype, const char *const *type);
bool sources_have(const struct sources *s, const char *file);
/* What NAMED appends to a function's name for these types: "" where all are real, else
 * "_real_bf16". */
void print_types_suffix(int ntype, const char *const *type, struct text *t);
/* The lines that include them, in the order of their addition. */
void print_sources(const struct sources *s, struct text *t);
/* The same with the files' texts in place of the lines, once where a file guards itself: for CUDA,
 * whose compiler finds no files. */
void print_sources_whole(const struct sources *s, struct text *t);
/* The files that are included, directly or by one another: what a step's folder needs. */
void sources_files(const struct sources *s, struct source_files *out);

#endif

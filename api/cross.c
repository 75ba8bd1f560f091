#include "api/cross.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum status cross_check(const char *prefix, struct diag *d)
{
	const size_t n = strspn(prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789_.+-/");
	if (*prefix && *prefix != '-' && !prefix[n])
		return ST_OK;
	return diag_fail(d, ST_USAGE, NULL, "--cross aarch64-linux-gnu for aarch64-linux-gnu-gcc",
		"--cross wants what a compiler's name begins with, not '%s'", prefix);
}

/* Debian's packages are named like the compilers, without underscores. */
static enum status missing(struct arena *a, const char *prefix, struct diag *d)
{
	char *hint = arena_printf(a,
		"install that compiler (Debian: gcc-%s), or pass --no-build and run `make` where "
		"it is",
		prefix);
	for (char *c = hint; c && *c; c++)
		if (*c == '_')
			*c = '-';
	return hint ? diag_fail(d, ST_IO, NULL, hint, "there is no %s-gcc here", prefix)
		    : diag_nomem(d);
}

enum status cross_compiler(struct arena *a, const char *prefix, struct diag *d)
{
	const char *path = strchr(prefix, '/') ? "" : getenv("PATH");
	for (size_t n; path; path = path[n] ? path + n + 1 : NULL) {
		n = strcspn(path, ":");
		const char *file = arena_printf(
			a, "%.*s%s%s-gcc", (int)n, path, n ? "/" : "", prefix);
		if (!file)
			return diag_nomem(d);
		if (access(file, X_OK) == 0)
			return ST_OK;
	}
	return missing(a, prefix, d);
}

/* What ELF files begin with, the same for 32 and 64 bits. */
static bool elf_head(const char *path, Elf32_Ehdr *out)
{
	FILE *f = fopen(path, "rb");
	const bool ok = f && fread(out, 1, EI_NIDENT + 4, f) == EI_NIDENT + 4 &&
			!memcmp(out->e_ident, ELFMAG, SELFMAG);
	if (f)
		fclose(f);
	return ok;
}

const char *cross_machine(const char *path)
{
	static const struct {
		int number;
		const char *name;
	} known[] = {{EM_AARCH64, "aarch64"}, {EM_ARM, "arm"}, {EM_RISCV, "riscv"},
		{EM_X86_64, "x86-64"}, {EM_386, "i386"}, {EM_PPC64, "ppc64"}, {EM_S390, "s390"}};
	Elf32_Ehdr own, other;
	if (!elf_head("/proc/self/exe", &own) || !elf_head(path, &other) ||
		(own.e_machine == other.e_machine &&
			own.e_ident[EI_CLASS] == other.e_ident[EI_CLASS]))
		return NULL;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].number == other.e_machine)
			return known[i].name;
	return "another machine";
}

/* A library of kernels: loaded, and its __shared__ variables found in its symbols. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/shim/parts.h"

/* "_ZZ4gemmE4tile" is gemm's variable tile (Itanium C++ ABI, 5.1.5). */
static bool name_variable(const struct library *l, const char *symbol, struct variable *v)
{
	char *rest = NULL, function[128];
	const char *local = strrchr(symbol, 'E');
	size_t n = strncmp(symbol, "_ZZ", 3) == 0 ? strtoul(symbol + 3, &rest, 10) : 0;
	if (!n || n >= sizeof function || !local) {
		v->name = strdup(symbol);
		return v->name != NULL;
	}
	snprintf(function, sizeof function, "%.*s", (int)n, rest);
	strtoul(local + 1, &rest, 10);
	v->name = strdup(rest);
	if (!library_symbol(l, "shim_call_", function))
		return v->name != NULL;
	v->owner = strdup(function);
	return v->name && v->owner;
}

static bool read_symbols(struct library *l, const char *file, size_t size)
{
	const Elf64_Ehdr *h = (const void *)file;
	if (size < sizeof *h || h->e_shoff + h->e_shnum * sizeof(Elf64_Shdr) > size)
		return false;
	const Elf64_Shdr *section = (const void *)(file + h->e_shoff);
	const char *names = file + section[h->e_shstrndx].sh_offset;
	int shared = -1;
	for (int i = 0; i < h->e_shnum; i++)
		if (strcmp(names + section[i].sh_name, ".shim_shared") == 0)
			shared = i;
	if (shared < 0)
		return true;
	l->shared = l->base + section[shared].sh_addr;
	l->shared_end = l->shared + section[shared].sh_size;
	for (int i = 0; i < h->e_shnum; i++) {
		if (section[i].sh_type != SHT_SYMTAB)
			continue;
		const Elf64_Sym *symbol = (const void *)(file + section[i].sh_offset);
		const size_t n = section[i].sh_size / sizeof *symbol;
		const char *strings = file + section[section[i].sh_link].sh_offset;
		l->variable = calloc(n + 1, sizeof *l->variable);
		for (size_t k = 0; l->variable && k < n; k++) {
			if (symbol[k].st_shndx != shared ||
				ELF64_ST_TYPE(symbol[k].st_info) != STT_OBJECT)
				continue;
			struct variable *v = &l->variable[l->nvariables++];
			v->at = l->base + symbol[k].st_value;
			v->bytes = symbol[k].st_size;
			if (!name_variable(l, strings + symbol[k].st_name, v))
				return false;
		}
	}
	return l->nvariables > 0;
}

static bool read_library(struct library *l, char error[static SHIM_TEXT])
{
	FILE *f = fopen(l->path, "rb");
	char *file = NULL;
	size_t size = 0;
	if (f && fseek(f, 0, SEEK_END) == 0) {
		size = (size_t)ftell(f);
		rewind(f);
		file = malloc(size);
	}
	const bool ok = file && fread(file, 1, size, f) == size && read_symbols(l, file, size);
	if (!ok)
		snprintf(error, SHIM_TEXT, "%s: cannot read its symbols", l->path);
	free(file);
	if (f)
		fclose(f);
	return ok;
}

static int find_end(struct dl_phdr_info *info, size_t size, void *user)
{
	struct library *l = user;
	(void)size;
	if (info->dlpi_addr != (uintptr_t)l->base)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		char *end = l->base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
		if (info->dlpi_phdr[i].p_type == PT_LOAD && end > l->end)
			l->end = end;
	}
	return 1;
}

bool library_open(struct library *l, const char *path, char error[static SHIM_TEXT])
{
	struct link_map *map;
	*l = (struct library){
		.path = realpath(path, NULL)}; /* dlopen looks elsewhere for bare names */
	l->handle = dlopen(l->path ? l->path : path, RTLD_NOW | RTLD_LOCAL);
	if (!l->path || !l->handle || dlinfo(l->handle, RTLD_DI_LINKMAP, &map) != 0) {
		const char *why = dlerror();
		snprintf(error, SHIM_TEXT, "%s: %s", path, why ? why : "out of memory");
		return false;
	}
	l->base = l->end = (char *)map->l_addr;
	dl_iterate_phdr(find_end, l);
	return read_library(l, error);
}

void library_close(struct library *l)
{
	for (int i = 0; i < l->nvariables; i++) {
		free(l->variable[i].name);
		free(l->variable[i].owner);
	}
	free(l->variable);
	free(l->path);
	if (l->handle)
		dlclose(l->handle);
}

void *library_symbol(const struct library *l, const char *prefix, const char *name)
{
	char symbol[256];
	if (snprintf(symbol, sizeof symbol, "%s%s", prefix, name) >= (int)sizeof symbol)
		return NULL;
	return dlsym(l->handle, symbol);
}

const char *library_line(const struct library *l, uintptr_t offset, char out[static 256])
{
	char command[1024], line[256] = "";
	out[0] = '\0';
	/* one byte back: a return address is behind the call */
	snprintf(command, sizeof command, "addr2line -s -i -e '%s' 0x%lx 2>/dev/null", l->path,
		(unsigned long)offset - 1);
	FILE *f = popen(command, "r");
	if (!f)
		return out;
	/* inlined calls come from the inside out: the first that is the text's own */
	while (fgets(line, sizeof line, f))
		if (strncmp(line, "device.h:", 9) != 0 && strncmp(line, "primitives.h:", 13) != 0)
			break;
	while (getc(f) != EOF)
		;
	pclose(f);
	line[strcspn(line, "\n ")] = '\0';
	if (line[0] != '?')
		memcpy(out, line, sizeof line);
	return out;
}

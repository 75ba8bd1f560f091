#include "tests/gpu/cubin.h"

#include <elf.h>
#include <string.h>

enum { INSTRUCTION = 16 }; /* bytes, since sm_70 */

int cubin_read(const void *data, size_t bytes,
	void (*tell)(void *user, const char *kernel, size_t instructions), void *user)
{
	static const char text[] = ".text.";
	const unsigned char *file = data;
	Elf64_Ehdr head;
	Elf64_Shdr names, section;
	if (bytes < sizeof head)
		return -1;
	memcpy(&head, file, sizeof head);
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_shentsize != sizeof section ||
		head.e_shstrndx >= head.e_shnum || head.e_shoff > bytes ||
		(bytes - head.e_shoff) / sizeof section < head.e_shnum)
		return -1;
	const unsigned char *sections = file + head.e_shoff;
	memcpy(&names, sections + head.e_shstrndx * sizeof names, sizeof names);
	if (names.sh_offset > bytes || names.sh_size > bytes - names.sh_offset ||
		names.sh_size == 0 || file[names.sh_offset + names.sh_size - 1] != 0)
		return -1;
	for (int i = 0; i < head.e_shnum; i++) {
		memcpy(&section, sections + (size_t)i * sizeof section, sizeof section);
		if (section.sh_name >= names.sh_size)
			return -1;
		const char *name = (const char *)file + names.sh_offset + section.sh_name;
		if (!strncmp(name, text, sizeof text - 1))
			tell(user, name + sizeof text - 1, section.sh_size / INSTRUCTION);
	}
	return 0;
}

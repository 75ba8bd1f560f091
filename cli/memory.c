#include "cli/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int64_t memory_resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long long total = 0, resident = -1;
	if (f && fscanf(f, "%lld %lld", &total, &resident) != 2)
		resident = -1;
	if (f)
		fclose(f);
	return resident < 0 ? -1 : resident * sysconf(_SC_PAGESIZE);
}

int64_t memory_peak(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[128];
	long long kib = -1;
	while (f && kib < 0 && fgets(line, sizeof line, f))
		if (sscanf(line, "VmHWM: %lld kB", &kib) != 1)
			kib = -1;
	if (f)
		fclose(f);
	return kib < 0 ? -1 : kib * 1024;
}

int64_t memory_resident_of(const void *p, size_t bytes)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t first = (uintptr_t)p / page * page;
	const size_t n = ((uintptr_t)p + bytes - first + page - 1) / page;
	unsigned char *there = malloc(n ? n : 1);
	int64_t found = 0;
	if (!there)
		return -1;
	/* the address as a number: it may lie before the object's start */
	if (n && mincore((void *)first, n * page, there) != 0)
		found = -1;
	for (size_t i = 0; i < n && found >= 0; i++)
		found += (there[i] & 1) * (int64_t)page;
	free(there);
	return found > (int64_t)bytes ? (int64_t)bytes : found;
}

/* libFuzzer's entry for the importer: any bytes as a model. Whatever they are, the importer
 *returns, with a message where it refuses; the sanitizers see the rest.
 *
 *	clang -fsanitize=fuzzer,address,undefined ...; see CMakeLists.txt
 *	build/import_fuzz -max_len=4096 CORPUS tests/import/fixtures
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "import/import.h"
#include "ops/ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The importer reads files: one in memory. */
static int memory_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("model", 0);
	for (size_t n = 0; fd >= 0 && n < size;) {
		ssize_t k = write(fd, data + n, size - n);
		if (k <= 0)
			abort();
		n += (size_t)k;
	}
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct target target = {.portable = true, .threads = 1};
	const struct import_options options = {.batch = size % 2 ? 0 : 2};
	struct diag d = {0};
	struct graph *g = NULL;
	struct arena *a = arena_new();
	int fd = memory_file(data, size);
	if (!a || fd < 0)
		abort();
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	enum status st = import_onnx(a, path, &options, ops_table(), &target, DT_F32, &d, &g);
	if ((st == ST_OK) != (d.errors == 0))
		abort(); /* a refusal says why */
	arena_free(a);
	close(fd);
	return 0;
}

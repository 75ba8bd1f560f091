/* Made-up data for the example models, the same on every machine:
 *
 *	make_inputs FOLDER N
 *
 * writes N samples: image.npy [N,1,28,28] in [0, 1), label.npy [N] below 10, tokens.npy and
 * next.npy [N,64] below 128.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u; /* Numerical Recipes' generator */
	return *state >> 8;
}

/* The header of a .npy file, version 1.0: a Python dictionary, padded to a multiple of 64 bytes. */
static int write_header(FILE *f, const char *type, const char *shape)
{
	char text[128];
	int n = snprintf(text, sizeof text,
		"{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
	if (n < 0 || n > 117)
		return 1;
	memset(text + n, ' ', (size_t)(117 - n));
	text[117] = '\n';
	return fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f) != 10 ||
	       fwrite(text, 1, 118, f) != 118;
}

/* `high` 0: reals; else whole numbers below it. */
static int write_array(
	const char *folder, const char *name, const char *shape, long n, uint32_t high)
{
	char path[1024];
	uint32_t state = (uint32_t)strlen(name);
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "wb");
	if (!f) {
		perror(path);
		return 1;
	}
	int bad = write_header(f, high ? "<i8" : "<f4", shape);
	for (long i = 0; i < n && !bad; i++) {
		uint32_t x = next_random(&state);
		float real = (float)x / 16777216.0f;
		int64_t whole = high ? (int64_t)(x % high) : 0;
		bad = high ? fwrite(&whole, sizeof whole, 1, f) != 1
			   : fwrite(&real, sizeof real, 1, f) != 1;
	}
	return (fclose(f) != 0) | bad;
}

int main(int argc, char **argv)
{
	char image[64], label[64], tokens[64];
	long n = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	if (n < 1 || n > 100000) {
		fprintf(stderr, "usage: make_inputs FOLDER N\n");
		return 2;
	}
	snprintf(image, sizeof image, "%ld, 1, 28, 28", n);
	snprintf(label, sizeof label, "%ld,", n);
	snprintf(tokens, sizeof tokens, "%ld, 64", n);
	return write_array(argv[1], "image.npy", image, n * 784, 0) |
	       write_array(argv[1], "label.npy", label, n, 10) |
	       write_array(argv[1], "tokens.npy", tokens, n * 64, 128) |
	       write_array(argv[1], "next.npy", tokens, n * 64, 128);
}

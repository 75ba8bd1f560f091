/* Text files as data for a language model over bytes: windows of LENGTH symbols, and as targets the
 * same windows shifted by one. Bytes above 127 become '?'. The last tenth of the windows is held
 * out.
 *
 *	text_to_npy LENGTH FOLDER FILE...
 *
 * writes train-tokens.npy, train-next.npy, eval-tokens.npy and eval-next.npy into FOLDER: int64,
 * little-endian, [windows, LENGTH]. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
	unsigned char *s;
	size_t n, cap;
};

static int append(struct text *t, const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return 1;
	int c;
	while ((c = getc(f)) != EOF) {
		if (t->n == t->cap) {
			size_t cap = t->cap ? 2 * t->cap : 65536;
			unsigned char *s = realloc(t->s, cap);
			if (!s)
				break;
			t->s = s;
			t->cap = cap;
		}
		t->s[t->n++] = (unsigned char)(c > 127 ? '?' : c);
	}
	int bad = c != EOF || ferror(f);
	fclose(f);
	return bad;
}

/* The .npy header (version 1.0) is padded with blanks to a multiple of 64 bytes. */
static int write_npy(
	const char *folder, const char *name, const unsigned char *s, int64_t rows, int64_t length)
{
	char path[4096], header[128];
	memset(header, ' ', sizeof header);
	memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
	int n = snprintf(header + 10, sizeof header - 10,
		"{'descr': '<i8', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 "), }",
		rows, length);
	header[10 + n] = ' ';
	header[sizeof header - 1] = '\n';
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "wb");
	if (!f)
		return 1;
	fwrite(header, 1, sizeof header, f);
	for (int64_t i = 0; i < rows * length; i++) {
		const unsigned char value[8] = {s[i]};
		fwrite(value, 1, sizeof value, f);
	}
	int bad = ferror(f);
	return fclose(f) != 0 || bad;
}

int main(int argc, char **argv)
{
	struct text t = {0};
	int64_t length = argc > 3 ? strtoll(argv[1], NULL, 10) : 0;
	if (length < 1 || length > 65536) {
		fprintf(stderr, "usage: text_to_npy LENGTH FOLDER FILE...\n");
		return 2;
	}
	for (int i = 3; i < argc; i++)
		if (append(&t, argv[i])) {
			fprintf(stderr, "text_to_npy: cannot read %s\n", argv[i]);
			return 1;
		}
	int64_t rows = t.n ? ((int64_t)t.n - 1) / length : 0, held = rows / 10, train = rows - held;
	const unsigned char *rest = t.s + train * length;
	if (rows < 10 || write_npy(argv[2], "train-tokens.npy", t.s, train, length) ||
		write_npy(argv[2], "train-next.npy", t.s + 1, train, length) ||
		write_npy(argv[2], "eval-tokens.npy", rest, held, length) ||
		write_npy(argv[2], "eval-next.npy", rest + 1, held, length)) {
		fprintf(stderr, "text_to_npy: too little text, or %s cannot be written\n", argv[2]);
		return 1;
	}
	printf("%zu bytes: %" PRId64 " windows to train on, %" PRId64 " held out\n", t.n, train,
		held);
	free(t.s);
	return 0;
}

/* Makes what the shell drivers need, and looks into what they get:
 *	fixture model NAME OUT.onnx [TEXT]
 *	fixture data x|f64|label|index|bad-label|bad-index SAMPLES OUT.npy [WIDTH]
 *	fixture npy OUT.npy NUMBER ...        doubles
 *	fixture rows OUT.npy WIDTH NUMBER ... int64, in rows
 *	fixture json FILE [KEY ...]           prints the value at the keys (numbers: array indices)
 *	fixture json-lines FILE               prints how many lines, each an object
 *	fixture tensor FILE.safetensors NAME  prints its bytes
 *	fixture poison CHECKPOINT NAME N nan|inf  makes the first N values of a tensor so
 *	fixture weights OUT.safetensors IN.safetensors NAME[=SHAPE] ...  tensors of another file,
 * all zeros where they are to have another shape (2,3); @NAME: a new one
 */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "runtime/safetensors.h"
#include "runtime/stint_rt.h"
#include "tests/cli/models.h"

static int save(const char *path, const void *data, size_t len)
{
	FILE *f = fopen(path, "wb");
	if (!f)
		return 1;
	size_t done = len ? fwrite(data, 1, len, f) : 0;
	return (fclose(f) != 0) | (done != len);
}

static int make_model(int argc, char **argv)
{
	struct model_test *t;
	size_t len;
	if (argc < 4 || model_setup((void **)&t))
		return 1;
	int bad = !models_make(t, argv[2], argc > 4 ? argv[4] : "");
	if (!bad) {
		const uint8_t *bytes = model_pack(t, &len);
		bad = save(argv[3], bytes, len);
	}
	return bad | model_teardown((void **)&t);
}

/* The class that the linear models can learn: which of the first three features is largest. */
static int64_t best(const float *x)
{
	int k = 0;
	for (int i = 1; i < 3; i++)
		k = x[i] > x[k] ? i : k;
	return k;
}

static int write_npy(
	const char *path, const char *type, int width, int64_t n, int64_t columns, const void *data)
{
	char header[128], shape[64];
	snprintf(shape, sizeof shape, columns ? "(%lld, %lld)" : "(%lld,)", (long long)n,
		(long long)columns);
	int used = snprintf(header, sizeof header,
		"{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
	memset(header + used, ' ', (size_t)(117 - used));
	header[117] = '\n';
	char *all = malloc(128 + (size_t)(n * (columns ? columns : 1) * width));
	if (!all)
		return 1;
	memcpy(all, "\x93NUMPY\x01\x00\x76\x00", 10);
	memcpy(all + 10, header, 118);
	size_t bytes = (size_t)(n * (columns ? columns : 1) * width);
	memcpy(all + 128, data, bytes);
	int bad = save(path, all, 128 + bytes);
	free(all);
	return bad;
}

static int make_data(int argc, char **argv)
{
	if (argc < 5)
		return 1;
	int64_t n = atoll(argv[3]), width = argc > 5 ? atoll(argv[5]) : 4;
	float *x = calloc((size_t)(n * width) + 4, sizeof *x);
	double *wide = calloc((size_t)(n * width) + 4, sizeof *wide);
	int64_t *label = calloc((size_t)n + 1, sizeof *label);
	uint32_t s = 99;
	if (!x || !wide || !label)
		return 1;
	for (int64_t i = 0; i < n * width; i++) {
		s = s * 1664525u + 1013904223u;
		wide[i] = x[i] = (float)(s >> 8) / 16777216.0f - 0.5f;
	}
	int bad = 1;
	for (int64_t i = 0; i < n; i++)
		label[i] = !strcmp(argv[2], "index") ? i % 5 : best(x + i * width);
	if (!strcmp(argv[2], "bad-label")) {
		label[n - 1] = 3;
		bad = write_npy(argv[4], "<i8", 8, n, 0, label);
	} else if (!strcmp(argv[2], "bad-index")) {
		label[n / 2] = 5;
		bad = write_npy(argv[4], "<i8", 8, n, 0, label);
	} else if (!strcmp(argv[2], "x"))
		bad = write_npy(argv[4], "<f4", 4, n, width, x);
	else if (!strcmp(argv[2], "f64"))
		bad = write_npy(argv[4], "<f8", 8, n, width, wide);
	else if (!strcmp(argv[2], "label") || !strcmp(argv[2], "index"))
		bad = write_npy(argv[4], "<i8", 8, n, 0, label);
	free(x);
	free(wide);
	free(label);
	return bad;
}

static int look(int argc, char **argv)
{
	json_error_t error;
	json_t *root = argc < 3 ? NULL : json_load_file(argv[2], JSON_REJECT_DUPLICATES, &error);
	json_t *at = root;
	if (argc >= 3 && !root)
		fprintf(stderr, "%s:%d: %s\n", argv[2], error.line, error.text);
	for (int i = 3; i < argc && at; i++)
		at = json_is_array(at) ? json_array_get(at, (size_t)atoll(argv[i]))
				       : json_object_get(at, argv[i]);
	if (at && argc > 3) {
		if (json_is_array(at))
			printf("%zu", json_array_size(at));
		else
			json_dumpf(at, stdout, JSON_ENCODE_ANY | JSON_COMPACT);
		putchar('\n');
	}
	int bad = !at;
	json_decref(root);
	return bad;
}

static int look_lines(int argc, char **argv)
{
	char *line = NULL;
	size_t cap = 0;
	int n = 0;
	FILE *f = argc < 3 ? NULL : fopen(argv[2], "r");
	if (!f)
		return 1;
	for (; getline(&line, &cap, f) > 0; n++) {
		json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		if (!json_is_object(j)) {
			fprintf(stderr, "%s:%d: %s", argv[2], n + 1, line);
			n = -1000000;
		}
		json_decref(j);
	}
	free(line);
	fclose(f);
	printf("%d\n", n);
	return n < 0;
}

/* Bytes of a tensor in a safetensors file, as hexadecimal digits. */
static int look_tensor(int argc, char **argv)
{
	struct safetensors *file;
	char message[SAFETENSORS_MESSAGE];
	if (argc < 4 || safetensors_open(&file, argv[2], message))
		return 1;
	const struct safetensors_entry *e = safetensors_find(file, argv[3]);
	for (size_t i = 0; e && i < e->bytes; i++)
		printf("%02x", ((const unsigned char *)e->data)[i]);
	safetensors_close(file);
	return !e;
}

/* The sum in a checkpoint's notes, as runtime/checkpoint.c has it. */
static void sum_of(
	const struct safetensors *f, const struct safetensors_entry *all, int count, char out[16])
{
	char place[128];
	int n = snprintf(place, sizeof place, "%s %s %s %s", safetensors_note(f, "step"),
		safetensors_note(f, "epoch"), safetensors_note(f, "batch"),
		safetensors_note(f, "seed"));
	uLong crc = crc32(crc32(0, NULL, 0), (const Bytef *)place, (uInt)n);
	for (int i = 0; i < count; i++)
		crc = crc32(crc, all[i].data, (uInt)all[i].bytes);
	snprintf(out, 16, "%08lx", crc);
}

enum { ENTRIES = 64 };

static int poison(int argc, char **argv)
{
	static const char *const key[] = {"format", "model", "step", "epoch", "batch", "seed"};
	struct safetensors_note note[7];
	struct safetensors_entry all[ENTRIES];
	struct safetensors *file;
	char message[SAFETENSORS_MESSAGE], sum[16];
	if (argc < 6 || safetensors_open(&file, argv[2], message))
		return 1;
	const struct safetensors_entry *e = safetensors_find(file, argv[3]);
	const float odd = !strcmp(argv[5], "nan") ? NAN : INFINITY;
	float *odd_one = e ? malloc(e->bytes) : NULL; /* the file's are mapped, to be read */
	if (odd_one)
		memcpy(odd_one, e->data, e->bytes);
	for (int i = 0; odd_one && i < atoi(argv[4]); i++)
		odd_one[i] = odd;
	for (int i = 0; i < 6; i++)
		note[i] = (struct safetensors_note){key[i], safetensors_note(file, key[i])};
	const int n = safetensors_count(file);
	for (int i = 0; i < n && n <= ENTRIES; i++) {
		all[i] = *safetensors_at(file, i);
		if (!strcmp(all[i].name, argv[3]))
			all[i].data = odd_one;
	}
	if (!odd_one || n > ENTRIES)
		return 1;
	sum_of(file, all, n, sum);
	note[6] = (struct safetensors_note){"crc32", sum};
	int bad = safetensors_write(argv[2], all, n, note, 7, message);
	free(odd_one);
	safetensors_close(file);
	return bad;
}

/* The tensor that "NAME=SHAPE" or "@NAME" asks for. */
static int pick(const struct safetensors *file, char *how, struct safetensors_entry *out)
{
	static const float zeros[4096];
	static int64_t dim[ENTRIES][SAFETENSORS_RANK];
	static int next;
	char *shape = strchr(how, '=');
	if (shape)
		*shape++ = '\0';
	if (!shape && *how != '@') {
		const struct safetensors_entry *e = safetensors_find(file, how);
		if (e)
			*out = *e;
		return !e;
	}
	*out = (struct safetensors_entry){
		.name = how + (*how == '@'), .dtype = STINT_F32, .dim = dim[next], .data = zeros};
	for (char *p = shape ? strtok(shape, ",") : NULL; p; p = strtok(NULL, ","))
		dim[next][out->rank++] = atoll(p);
	next++;
	return 0;
}

static int make_weights(int argc, char **argv)
{
	struct safetensors_entry all[ENTRIES];
	struct safetensors *file;
	char message[SAFETENSORS_MESSAGE];
	if (argc < 4 || argc - 4 > ENTRIES || safetensors_open(&file, argv[3], message))
		return 1;
	int bad = 0;
	for (int i = 4; i < argc; i++)
		bad |= pick(file, argv[i], &all[i - 4]);
	bad = bad || safetensors_write(argv[2], all, argc - 4, NULL, 0, message);
	safetensors_close(file);
	return bad;
}

/* npy FILE NUMBER...: doubles */
static int make_npy(int argc, char **argv)
{
	double *v = calloc((size_t)argc, sizeof *v);
	if (!v || argc < 3)
		return 1;
	for (int i = 3; i < argc; i++)
		v[i - 3] = strtod(argv[i], NULL);
	const int bad = write_npy(argv[2], "<f8", 8, argc - 3, 0, v);
	free(v);
	return bad;
}

/* rows FILE WIDTH NUMBER... */
static int make_rows(int argc, char **argv)
{
	const int64_t width = argc > 4 ? atoll(argv[3]) : 0, n = argc - 4;
	int64_t *v = calloc((size_t)argc, sizeof *v);
	if (!v || width < 1 || n % width)
		return 1;
	for (int64_t i = 0; i < n; i++)
		v[i] = atoll(argv[i + 4]);
	const int bad = write_npy(argv[2], "<i8", 8, n / width, width, v);
	free(v);
	return bad;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "model"))
		return make_model(argc, argv);
	if (!strcmp(what, "data"))
		return make_data(argc, argv);
	if (!strcmp(what, "npy"))
		return make_npy(argc, argv);
	if (!strcmp(what, "rows"))
		return make_rows(argc, argv);
	if (!strcmp(what, "json"))
		return look(argc, argv);
	if (!strcmp(what, "json-lines"))
		return look_lines(argc, argv);
	if (!strcmp(what, "tensor"))
		return look_tensor(argc, argv);
	if (!strcmp(what, "poison"))
		return poison(argc, argv);
	if (!strcmp(what, "weights"))
		return make_weights(argc, argv);
	return 2;
}

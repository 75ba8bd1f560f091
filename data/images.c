/* Folders of pictures: "images:SETTINGS:FOLDER", "masks:SETTINGS:FOLDER" and "labels:FOLDER", the
 * classes of the same pictures. Settings are words between commas, of which the size is one; what
 * is drawn by chance (torchvision's RandomCrop, RandomResizedCrop, RandomHorizontalFlip) depends on
 * the seed, the epoch and the sample, so that an image and its mask agree. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/kind.h"
#include "data/picture.h"
#include "data/picture_list.h"
#include "kernels/philox.h"

/* A node of Philox that no model's node has, nor data/shuffle.c. */
enum { NODE_PICTURE = -3 };

struct images {
	struct folder folder;
	char *path;
	int size, resize; /* of the result; of the shorter side before it is cut out */
	int random, zoom, flip, all;
	enum picture_kind kind;
};

/* --- Settings --- */

static int read_size(const char *text, size_t n, int *out)
{
	int v = 0;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9' || v > PICTURE_SIDE)
			return 1;
		v = 10 * v + text[i] - '0';
	}
	*out = v;
	return !n || v < 1 || v > PICTURE_SIDE;
}

static int is_word(const char *text, size_t n, const char *word)
{
	return strlen(word) == n && memcmp(text, word, n) == 0;
}

static int read_word(struct images *x, const char *text, size_t n)
{
	static const char resize[] = "resize=";
	const size_t head = sizeof resize - 1;
	if (n > head && !memcmp(text, resize, head))
		return x->resize || read_size(text + head, n - head, &x->resize);
	if (is_word(text, n, "random"))
		return !(x->random = 1);
	if (is_word(text, n, "zoom"))
		return !(x->zoom = 1);
	if (is_word(text, n, "flip"))
		return !(x->flip = 1);
	if (is_word(text, n, "all"))
		return !(x->all = 1);
	if (is_word(text, n, "gray") && x->kind == PICTURE_RGB) {
		x->kind = PICTURE_GRAY;
		return 0;
	}
	return x->size || read_size(text, n, &x->size);
}

/* Up to the colon; *folder is behind it. */
static int read_settings(struct images *x, const char *text, const char **folder)
{
	for (size_t n;; text += n + 1) {
		n = strcspn(text, ",:");
		if (!text[n] || read_word(x, text, n))
			return 1;
		if (text[n] == ':')
			break;
	}
	*folder = strchr(text, ':') + 1;
	if (!x->resize)
		x->resize = x->size;
	return !x->size || !**folder || x->resize < x->size || (x->random && x->zoom);
}

/* --- What is cut out --- */

/* Chance for one sample: numbers of [0, 1), one after the other. */
struct chance {
	const struct dataset *d;
	int64_t sample, drawn;
};

static double draw(struct chance *c)
{
	enum { DRAWS = 64 }; /* of a sample */
	uint32_t word[4];
	stint_philox_at(
		c->d->seed, c->d->epoch, NODE_PICTURE, 4 * (c->sample * DRAWS + c->drawn++), word);
	return word[0] * 0x1p-32;
}

static int draw_below(struct chance *c, int n)
{
	return (int)(draw(c) * n);
}

/* torchvision's CenterCrop rounds halves to even. */
static int middle(int whole, int part)
{
	return (int)nearbyint((whole - part) / 2.0);
}

/* RandomResizedCrop: 0.08 to 1 of the area, sides of 3:4 to 4:3; where ten draws do not fit, as
 * much of the middle as does. */
static struct picture_box zoomed(const struct picture *p, struct chance *c)
{
	const double area = (double)p->width * p->height, low = log(3.0 / 4), high = log(4.0 / 3);
	struct picture_box b = {0, 0, p->width, p->height};
	for (int i = 0; i < 10; i++) {
		const double part = area * (0.08 + draw(c) * 0.92);
		const double ratio = exp(low + draw(c) * (high - low));
		const int width = (int)nearbyint(sqrt(part * ratio)),
			  height = (int)nearbyint(sqrt(part / ratio));
		if (width < 1 || height < 1 || width > p->width || height > p->height)
			continue;
		b.top = draw_below(c, p->height - height + 1);
		b.left = draw_below(c, p->width - width + 1);
		b.width = width;
		b.height = height;
		return b;
	}
	const double ratio = (double)p->width / p->height;
	if (ratio < 3.0 / 4)
		b.height = (int)nearbyint(p->width / (3.0 / 4));
	else if (ratio > 4.0 / 3)
		b.width = (int)nearbyint(p->height * (4.0 / 3));
	b.left = (p->width - b.width) / 2;
	b.top = (p->height - b.height) / 2;
	return b;
}

static int shaped(const struct picture *in, const struct picture_box *box, int width, int height,
	int nearest, struct picture *out)
{
	*out = (struct picture){width, height, in->channels,
		malloc((size_t)width * (size_t)height * (size_t)in->channels)};
	return !out->pixel || picture_resize(in, box, nearest, out);
}

/* The shorter side becomes `resize`; a square of it, in the middle or anywhere. */
static int cut_out(
	const struct images *x, const struct picture *in, struct chance *c, struct picture *out)
{
	const int nearest = x->kind == PICTURE_MASK;
	const int wide = in->width > in->height;
	const int64_t longer = wide ? in->width : in->height,
		      shorter = wide ? in->height : in->width;
	const int64_t other = x->resize * longer / shorter;
	const struct picture_box all = {0, 0, in->width, in->height};
	struct picture p;
	if (x->zoom) {
		const struct picture_box b = zoomed(in, c);
		return shaped(in, &b, x->size, x->size, nearest, out);
	}
	if (other > PICTURE_SIDE || other * x->resize > PICTURE_PIXELS)
		return 1;
	int rc = shaped(in, &all, wide ? (int)other : x->resize, wide ? x->resize : (int)other,
		nearest, &p);
	struct picture_box b = {.width = x->size, .height = x->size};
	if (!rc) {
		b.top = x->random ? draw_below(c, p.height - x->size + 1)
				  : middle(p.height, x->size);
		b.left = x->random ? draw_below(c, p.width - x->size + 1)
				   : middle(p.width, x->size);
		rc = shaped(&p, &b, x->size, x->size, 1, out);
	}
	picture_free(&p);
	return rc;
}

/* Channels one behind the other, mirrored or not. */
static void store(const struct picture *p, int mirrored, unsigned char *out)
{
	for (int k = 0; k < p->channels; k++)
		for (int y = 0; y < p->height; y++)
			for (int x = 0; x < p->width; x++) {
				const int from = mirrored ? p->width - 1 - x : x;
				*out++ = p->pixel[((size_t)y * (size_t)p->width + (size_t)from) *
							  (size_t)p->channels +
						  (size_t)k];
			}
}

static int read_one(const struct dataset *d, int64_t sample, unsigned char *out, char message[256])
{
	const struct images *x = d->state;
	const size_t room = (size_t)dataset_sample_file(d, sample, NULL, 0) + 1;
	struct picture in, cut = {.pixel = NULL};
	struct chance c = {.d = d, .sample = sample};
	char *path = malloc(room);
	if (!path)
		return dataset_bad(message, x->path, "out of memory");
	(void)dataset_sample_file(d, sample, path, room);
	int rc = picture_read(path, x->kind, &in, message);
	if (!rc) {
		rc = cut_out(x, &in, &c, &cut);
		if (rc)
			dataset_bad(message, path, "no memory for its %d x %d pixels", in.width,
				in.height);
		else
			store(&cut, x->flip && draw(&c) < 0.5, out);
		picture_free(&cut);
		picture_free(&in);
	}
	free(path);
	return rc;
}

/* --- Kinds --- */

static const char *picture_name(const struct dataset *d, int64_t sample)
{
	const struct images *x = d->state;
	return x->folder.text + x->folder.item[sample].name;
}

static const char *picture_folder(const struct dataset *d)
{
	const struct images *x = d->state;
	return x->path;
}

static void picture_sizes(const struct dataset *d, int *resize, int *crop)
{
	const struct images *x = d->state;
	*resize = x->resize;
	*crop = x->size;
}

static int images_read(
	const struct dataset *d, int64_t first, int64_t n, void *out, char message[256])
{
	for (int64_t i = 0; i < n; i++)
		if (read_one(d, first + i, (unsigned char *)out + i * d->row, message)) {
			const size_t at = strlen(message);
			snprintf(message + at, 256 - at, " (sample %lld)", (long long)(first + i));
			return 1;
		}
	return 0;
}

static void images_close(struct dataset *d)
{
	struct images *x = d->state;
	if (x) {
		folder_free(&x->folder);
		free(x->path);
	}
	free(x);
}

static int open_folder(struct images *x, const char *path, char message[256])
{
	x->path = strdup(path);
	return !x->path ? dataset_bad(message, path, "out of memory")
			: folder_read(&x->folder, path, message);
}

/* A folder, a picture, or a list of them, whose names are whole paths. */
static int open_pictures(struct images *x, const char *path, char message[256])
{
	struct stat st;
	const int is = stat(path, &st) == 0;
	if (strcmp(path, "-") != 0 && (!is || S_ISDIR(st.st_mode))) {
		if (!x->all)
			return open_folder(x, path, message);
		x->path = strdup(path);
		return !x->path ? dataset_bad(message, path, "out of memory")
				: folder_read_all(&x->folder, path, message);
	}
	x->path = strdup("");
	return !x->path                   ? dataset_bad(message, path, "out of memory")
	       : dataset_is_picture(path) ? folder_read_one(&x->folder, path, message)
					  : folder_read_list(&x->folder, path, message);
}

static int pictures_open(
	struct dataset *d, const char *text, enum picture_kind kind, char message[256])
{
	struct images *x = calloc(1, sizeof *x);
	const char *folder;
	int64_t bytes;
	d->state = x;
	if (!x)
		return dataset_bad(message, d->path, "out of memory");
	x->kind = kind;
	if (read_settings(x, text, &folder))
		return dataset_bad(message, d->path,
			"is written %s:SIZE[,resize=N][,random|,zoom][,flip]%s[,all]:FOLDER",
			kind == PICTURE_MASK ? "masks" : "images",
			kind == PICTURE_MASK ? "" : "[,gray]");
	if (open_pictures(x, folder, message))
		return 1;
	d->type = DATASET_U8;
	d->dim[d->rank++] = x->folder.n;
	if (kind != PICTURE_MASK)
		d->dim[d->rank++] = x->kind == PICTURE_GRAY ? 1 : 3;
	d->dim[d->rank++] = x->size;
	d->dim[d->rank++] = x->size;
	return dataset_count(d, &bytes) ? dataset_bad(message, d->path, "is too large") : 0;
}

static int images_open(struct dataset *d, const char *text, char message[256])
{
	return pictures_open(d, text, PICTURE_RGB, message);
}

static int masks_open(struct dataset *d, const char *text, char message[256])
{
	return pictures_open(d, text, PICTURE_MASK, message);
}

const struct dataset_kind images_kind = {.open = images_open,
	.read = images_read,
	.close = images_close,
	.name = picture_name,
	.folder = picture_folder,
	.sizes = picture_sizes};
const struct dataset_kind masks_kind = {.open = masks_open,
	.read = images_read,
	.close = images_close,
	.name = picture_name,
	.folder = picture_folder};

static int labels_open(struct dataset *d, const char *text, char message[256])
{
	struct images *x = calloc(1, sizeof *x);
	int64_t bytes;
	d->state = x;
	d->cheap = 1;
	if (!x)
		return dataset_bad(message, d->path, "out of memory");
	if (open_folder(x, text, message))
		return 1;
	d->type = DATASET_I64;
	d->rank = 1;
	d->dim[0] = x->folder.n;
	return dataset_count(d, &bytes);
}

static int labels_read(
	const struct dataset *d, int64_t first, int64_t n, void *out, char message[256])
{
	const struct images *x = d->state;
	int64_t *class = out;
	(void)message;
	for (int64_t i = 0; i < n; i++)
		class[i] = x->folder.item[first + i].class;
	return 0;
}

static const char *labels_classes(const struct dataset *d)
{
	const struct images *x = d->state;
	return x->folder.classes.text;
}

static int labels_take(struct dataset *d, const char *classes, char message[256])
{
	struct images *x = d->state;
	return folder_take_classes(&x->folder, x->path, classes, message);
}

const struct dataset_kind labels_kind = {.open = labels_open,
	.read = labels_read,
	.close = images_close,
	.name = picture_name,
	.folder = picture_folder,
	.classes = labels_classes,
	.take_classes = labels_take};

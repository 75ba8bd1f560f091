/* Folders of pictures: "images:SETTINGS:FOLDER", "masks:SETTINGS:FOLDER" and "labels:FOLDER", the
 * classes of the same pictures. Settings are words between commas, of which the size is one; what
 * is drawn by chance (torchvision's RandomCrop, RandomResizedCrop, RandomHorizontalFlip,
 * ColorJitter) depends on the seed, the epoch and the sample, so that an image and its mask agree.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/kind.h"
#include "data/picture.h"
#include "data/picture_list.h"
#include "kernels/philox.h"

/* Nodes of Philox that no model's node has, nor data/shuffle.c: what is cut out and how it is
 * turned; colours, of which masks have none. */
enum { NODE_PICTURE = -3, NODE_COLOUR = -4 };

/* RandomResizedCrop's. */
static const double ZOOM_LEAST = 0.08;

struct images {
	struct folder folder;
	char *path;
	int size, resize; /* of the result; of the shorter side before it is cut out */
	int random, flip, vflip, all;
	int pad;                        /* pixels around it, before a part is drawn */
	double zoom;                    /* the least part of the area; 0: not asked for */
	double change[PICTURE_CHANGES]; /* how far each may go; 0: not at all */
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

/* A number of [0, most]. */
static int read_share(const char *text, size_t n, double most, double *out)
{
	char number[32], *end;
	if (!n || n >= sizeof number || !strchr("0123456789.", *text))
		return 1;
	memcpy(number, text, n);
	number[n] = '\0';
	*out = strtod(number, &end);
	return *end || !(*out <= most);
}

/* What follows "NAME=" in a word of `n` bytes, *rest of them; NULL: it is another word. */
static const char *behind(const char *text, size_t n, const char *name, size_t *rest)
{
	const size_t head = strlen(name);
	if (n <= head || memcmp(text, name, head) != 0 || text[head] != '=')
		return NULL;
	*rest = n - head - 1;
	return text + head + 1;
}

/* Words that stand for chance; *known: it is one. */
static int read_chance(struct images *x, const char *text, size_t n, int *known)
{
	static const struct {
		const char *name;
		double most;
	} change[PICTURE_CHANGES] = {[PICTURE_BRIGHTNESS] = {"brightness", 10},
		[PICTURE_CONTRAST] = {"contrast", 10},
		[PICTURE_SATURATION] = {"saturation", 10},
		[PICTURE_HUE] = {"hue", 0.5}};
	size_t rest;
	const char *value;
	*known = 1;
	for (int k = 0; k < PICTURE_CHANGES; k++)
		if ((value = behind(text, n, change[k].name, &rest)))
			return read_share(value, rest, change[k].most, &x->change[k]);
	if ((value = behind(text, n, "zoom", &rest)))
		return read_share(value, rest, 1, &x->zoom) || !(x->zoom > 0);
	if ((value = behind(text, n, "pad", &rest)))
		return read_size(value, rest, &x->pad);
	if (is_word(text, n, "random"))
		return !(x->random = 1);
	if (is_word(text, n, "zoom"))
		return !((x->zoom = ZOOM_LEAST) > 0);
	if (is_word(text, n, "flip"))
		return !(x->flip = 1);
	if (is_word(text, n, "vflip"))
		return !(x->vflip = 1);
	return *known = 0;
}

static int read_word(struct images *x, const char *text, size_t n)
{
	size_t rest;
	int known;
	const char *value = behind(text, n, "resize", &rest);
	if (value)
		return x->resize || read_size(value, rest, &x->resize);
	const int bad = read_chance(x, text, n, &known);
	if (known)
		return bad;
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
	const int zoom = x->zoom > 0;
	return !x->size || !**folder || x->resize < x->size || (x->random && zoom) ||
	       (x->pad && !x->random);
}

int dataset_is_augmentation(const char *words)
{
	struct images x = {.size = 0};
	int known = 1, bad = !*words;
	for (const char *p = words; *p && known && !bad;) {
		const size_t n = strcspn(p, ",");
		bad = read_chance(&x, p, n, &known) || p[n] == ':' || (p[n] && !p[n + 1]);
		p += n + (p[n] == ',');
	}
	return known && !bad && !(x.random && x.zoom > 0) && !(x.pad && !x.random);
}

/* --- What is cut out --- */

/* Chance for one sample: numbers of [0, 1), one after the other. */
struct chance {
	const struct dataset *d;
	int64_t node, sample, drawn;
};

static double draw(struct chance *c)
{
	enum { DRAWS = 64 }; /* of a sample */
	uint32_t word[4];
	stint_philox_at(
		c->d->seed, c->d->epoch, c->node, 4 * (c->sample * DRAWS + c->drawn++), word);
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

/* RandomResizedCrop: `least` (0.08) to 1 of the area, sides of 3:4 to 4:3; where ten draws do not
 * fit, as much of the middle as does. */
static struct picture_box zoomed(const struct picture *p, double least, struct chance *c)
{
	const double area = (double)p->width * p->height, low = log(3.0 / 4), high = log(4.0 / 3);
	struct picture_box b = {0, 0, p->width, p->height};
	for (int i = 0; i < 10; i++) {
		const double part = area * (least + draw(c) * (1 - least));
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

/* The whole picture in another size. */
static int shaped(const struct images *x, const struct picture *in, int width, int height,
	struct picture *out)
{
	const struct picture_box all = {0, 0, in->width, in->height};
	*out = (struct picture){width, height, in->channels,
		malloc((size_t)width * (size_t)height * (size_t)in->channels)};
	return !out->pixel || picture_resize(in, &all, x->kind == PICTURE_MASK, out);
}

/* That part, which may lie outside: black there, 255 of masks. */
static int part_of(const struct images *x, const struct picture *p, const struct picture_box *b,
	struct picture *out)
{
	const size_t channels = (size_t)p->channels, row = (size_t)b->width * channels;
	*out = (struct picture){b->width, b->height, p->channels, malloc(row * (size_t)b->height)};
	if (!out->pixel)
		return 1;
	memset(out->pixel, x->kind == PICTURE_MASK ? 255 : 0, row * (size_t)b->height);
	const int from = b->left < 0 ? -b->left : 0;
	const int end = b->left + b->width > p->width ? p->width - b->left : b->width;
	for (int y = 0; y < b->height; y++)
		if (b->top + y >= 0 && b->top + y < p->height && end > from)
			memcpy(out->pixel + (size_t)y * row + (size_t)from * channels,
				p->pixel + ((size_t)(b->top + y) * (size_t)p->width +
						   (size_t)(b->left + from)) *
						   channels,
				(size_t)(end - from) * channels);
	return 0;
}

static int zoom_in(
	const struct images *x, const struct picture *in, struct chance *c, struct picture *out)
{
	const struct picture_box b = zoomed(in, x->zoom, c);
	struct picture p;
	const int rc = part_of(x, in, &b, &p) || shaped(x, &p, x->size, x->size, out);
	picture_free(&p);
	return rc;
}

/* The shorter side becomes `resize`; a square of it, in the middle or anywhere. */
static int cut_out(
	const struct images *x, const struct picture *in, struct chance *c, struct picture *out)
{
	const int wide = in->width > in->height;
	const int64_t longer = wide ? in->width : in->height,
		      shorter = wide ? in->height : in->width;
	const int64_t other = x->resize * longer / shorter;
	struct picture p;
	if (x->zoom > 0)
		return zoom_in(x, in, c, out);
	if (other > PICTURE_SIDE || other * x->resize > PICTURE_PIXELS)
		return 1;
	int rc = shaped(x, in, wide ? (int)other : x->resize, wide ? x->resize : (int)other, &p);
	struct picture_box b = {.width = x->size, .height = x->size};
	if (x->random) {
		b.top = draw_below(c, p.height + 2 * x->pad - x->size + 1) - x->pad;
		b.left = draw_below(c, p.width + 2 * x->pad - x->size + 1) - x->pad;
	} else {
		b.top = middle(p.height, x->size);
		b.left = middle(p.width, x->size);
	}
	rc = rc || part_of(x, &p, &b, out);
	picture_free(&p);
	return rc;
}

/* ColorJitter: brightness, contrast, saturation and hue in an order that is drawn first. */
static void jitter(
	const struct images *x, const struct dataset *d, int64_t sample, struct picture *p)
{
	struct chance c = {.d = d, .node = NODE_COLOUR, .sample = sample};
	int order[PICTURE_CHANGES] = {0, 1, 2, 3};
	double factor[PICTURE_CHANGES];
	for (int i = PICTURE_CHANGES - 1; i > 0; i--) {
		const int j = draw_below(&c, i + 1), keep = order[i];
		order[i] = order[j];
		order[j] = keep;
	}
	for (int k = 0; k < PICTURE_CHANGES; k++) {
		const double far = x->change[k], usual = k == PICTURE_HUE ? 0 : 1;
		const double low = k != PICTURE_HUE && far > usual ? 0 : usual - far;
		factor[k] = low + draw(&c) * (usual + far - low);
	}
	for (int i = 0; i < PICTURE_CHANGES; i++)
		if (x->change[order[i]] > 0)
			picture_change(p, (enum picture_change)order[i], factor[order[i]]);
}

/* Channels one behind the other, mirrored or not, upside down or not. */
static void store(const struct picture *p, int mirrored, int overturned, unsigned char *out)
{
	for (int k = 0; k < p->channels; k++)
		for (int y = 0; y < p->height; y++)
			for (int x = 0; x < p->width; x++) {
				const int from = mirrored ? p->width - 1 - x : x,
					  row = overturned ? p->height - 1 - y : y;
				*out++ = p->pixel[((size_t)row * (size_t)p->width + (size_t)from) *
							  (size_t)p->channels +
						  (size_t)k];
			}
}

static int read_one(const struct dataset *d, int64_t sample, unsigned char *out, char message[256])
{
	const struct images *x = d->state;
	const size_t room = (size_t)dataset_sample_file(d, sample, NULL, 0) + 1;
	struct picture in, cut = {.pixel = NULL};
	struct chance c = {.d = d, .node = NODE_PICTURE, .sample = sample};
	char *path = malloc(room);
	if (!path)
		return dataset_bad(message, x->path, "out of memory");
	(void)dataset_sample_file(d, sample, path, room);
	int rc = picture_read(path, x->kind, &in, message);
	if (!rc) {
		rc = cut_out(x, &in, &c, &cut);
		if (rc) {
			dataset_bad(message, path, "no memory for its %d x %d pixels", in.width,
				in.height);
		} else {
			if (x->kind != PICTURE_MASK)
				jitter(x, d, sample, &cut);
			const int mirrored = x->flip && draw(&c) < 0.5;
			store(&cut, mirrored, x->vflip && draw(&c) < 0.5, out);
		}
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
			"is written %s:SIZE[,resize=N]%s[,all]:FOLDER, with random[,pad=N] or "
			"zoom[=LEAST], "
			"flip, vflip, brightness=X, contrast=X, saturation=X, hue=X to draw by "
			"chance",
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

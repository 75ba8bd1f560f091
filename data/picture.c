#include "data/picture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>
#include <spng.h>

#include "data/kind.h"

static int bad_size(const char *path, int64_t width, int64_t height, char message[256])
{
	if (width < 1 || height < 1 || width > PICTURE_SIDE || height > PICTURE_SIDE ||
		width * height > PICTURE_PIXELS)
		return dataset_bad(message, path, "%lld x %lld pixels are not read",
			(long long)width, (long long)height);
	return 0;
}

static int make(
	struct picture *p, const char *path, int width, int height, int channels, char message[256])
{
	*p = (struct picture){
		width, height, channels, malloc((size_t)width * (size_t)height * (size_t)channels)};
	return p->pixel ? 0 : dataset_bad(message, path, "out of memory");
}

void picture_free(struct picture *p)
{
	free(p->pixel);
	p->pixel = NULL;
}

/* In place: what stands behind is not read again. */
static void to_gray(struct picture *p)
{
	const size_t n = (size_t)p->width * (size_t)p->height;
	for (size_t i = 0; i < n; i++)
		p->pixel[i] = (unsigned char)picture_luma(p->pixel + 3 * i);
	p->channels = 1;
}

/* --- PNG --- */

struct png {
	spng_ctx *ctx;
	const char *path;
	char *message;
	struct spng_ihdr head;
};

static int png_bad(const struct png *p, int code)
{
	return dataset_bad(p->message, p->path, "%s", spng_strerror(code));
}

/* Numbers of `bits` each, the first in the highest, as bytes. */
static void unpack_row(const unsigned char *in, int bits, int width, unsigned char *out)
{
	for (int i = 0; i < width; i++)
		out[i] = (unsigned char)(in[i * bits / 8] >> (8 - bits - i * bits % 8) &
					 ((1 << bits) - 1));
}

static int png_decode(const struct png *p, int format, unsigned char *out, size_t bytes)
{
	size_t wants;
	int code = spng_decoded_image_size(p->ctx, format, &wants);
	if (!code && wants != bytes)
		return dataset_bad(p->message, p->path, "a damaged PNG");
	code = code ? code : spng_decode_image(p->ctx, out, bytes, format, 0);
	return code ? png_bad(p, code) : 0;
}

static int png_mask(const struct png *p, struct picture *out)
{
	const int bits = p->head.bit_depth, width = (int)p->head.width;
	if ((p->head.color_type != SPNG_COLOR_TYPE_GRAYSCALE &&
		    p->head.color_type != SPNG_COLOR_TYPE_INDEXED) ||
		bits > 8)
		return dataset_bad(
			p->message, p->path, "is no mask: a gray or palette PNG of up to 8 bits");
	const size_t row = ((size_t)width * (size_t)bits + 7) / 8, bytes = row * p->head.height;
	unsigned char *raw = malloc(bytes);
	int rc = !raw ? dataset_bad(p->message, p->path, "out of memory")
		      : make(out, p->path, width, (int)p->head.height, 1, p->message) ||
				 png_decode(p, SPNG_FMT_RAW, raw, bytes);
	for (int y = 0; !rc && y < out->height; y++)
		unpack_row(
			raw + (size_t)y * row, bits, width, out->pixel + (size_t)y * (size_t)width);
	free(raw);
	return rc;
}

static int png_pixels(const struct png *p, enum picture_kind kind, struct picture *out)
{
	if (kind == PICTURE_MASK)
		return png_mask(p, out);
	const int width = (int)p->head.width, height = (int)p->head.height;
	if (make(out, p->path, width, height, 3, p->message) ||
		png_decode(p, SPNG_FMT_RGB8, out->pixel, (size_t)width * (size_t)height * 3))
		return 1;
	if (kind == PICTURE_GRAY)
		to_gray(out);
	return 0;
}

/* What the file says of it may follow the pixels; what is damaged there changes nothing. */
static int png_turn(const struct png *p, struct picture *out)
{
	struct spng_exif exif;
	(void)spng_decode_chunks(p->ctx);
	if (spng_get_exif(p->ctx, &exif) != 0)
		return 0;
	return picture_turn(out, exif_orientation((unsigned char *)exif.data, exif.length))
		       ? dataset_bad(p->message, p->path, "out of memory")
		       : 0;
}

static int png_read(
	FILE *f, const char *path, enum picture_kind kind, struct picture *out, char message[256])
{
	struct png p = {.ctx = spng_ctx_new(0), .path = path, .message = message};
	if (!p.ctx)
		return dataset_bad(message, path, "out of memory");
	int code = spng_set_image_limits(p.ctx, PICTURE_SIDE, PICTURE_SIDE);
	code = code ? code : spng_set_png_file(p.ctx, f);
	code = code ? code : spng_get_ihdr(p.ctx, &p.head);
	const int rc = code ? png_bad(&p, code)
			    : bad_size(path, p.head.width, p.head.height, message) ||
				       png_pixels(&p, kind, out) || png_turn(&p, out);
	spng_ctx_free(p.ctx);
	return rc;
}

/* --- JPEG --- */

/* libjpeg's errors come by longjmp. */
struct jpeg {
	struct jpeg_decompress_struct d;
	struct jpeg_error_mgr error;
	jmp_buf out;
	char text[JMSG_LENGTH_MAX];
	struct picture *picture;
	unsigned char *inks; /* a row of CMYK; NULL: it has colours */
};

static void jpeg_fails(j_common_ptr common)
{
	struct jpeg *j = common->client_data;
	common->err->format_message(common, j->text);
	longjmp(j->out, 1);
}

/* Of warnings only the end of a file that is cut: what else is odd is shown all the same, as PIL
 * does. */
static void jpeg_warns(j_common_ptr common, int level)
{
	if (level < 0 && common->err->msg_code == JWRN_JPEG_EOF)
		jpeg_fails(common);
}

/* Inks, as Adobe's programs store them: inverted. */
static void from_cmyk(const unsigned char *in, int width, unsigned char *out)
{
	for (int i = 0; i < width; i++, in += 4)
		for (int k = 0; k < 3; k++) {
			const unsigned v = (255u - in[k]) * in[3] + 128;
			*out++ = (unsigned char)(in[3] - (((v >> 8) + v) >> 8));
		}
}

/* The row that comes next. */
static void jpeg_row(struct jpeg *j)
{
	const struct picture *p = j->picture;
	unsigned char *to = p->pixel + (size_t)j->d.output_scanline * (size_t)p->width * 3;
	JSAMPROW row = j->inks ? j->inks : to;
	(void)jpeg_read_scanlines(&j->d, &row, 1);
	if (j->inks)
		from_cmyk(j->inks, p->width, to);
}

static int jpeg_orientation(const struct jpeg *j)
{
	for (jpeg_saved_marker_ptr m = j->d.marker_list; m; m = m->next)
		if (m->data_length > 6 && !memcmp(m->data, "Exif\0\0", 6))
			return exif_orientation(m->data + 6, m->data_length - 6);
	return 1;
}

static int jpeg_pixels(
	struct jpeg *j, FILE *f, const char *path, enum picture_kind kind, char message[256])
{
	struct picture *p = j->picture;
	jpeg_stdio_src(&j->d, f);
	jpeg_save_markers(&j->d, JPEG_APP0 + 1, 0xffff);
	(void)jpeg_read_header(&j->d, TRUE);
	if (bad_size(path, j->d.image_width, j->d.image_height, message))
		return 1;
	const int components = j->d.num_components;
	if (components != 1 && components != 3 && components != 4)
		return dataset_bad(message, path,
			"a JPEG of %d components; gray, colours and CMYK are read", components);
	j->d.out_color_space = components == 4 ? JCS_CMYK : JCS_RGB;
	(void)jpeg_start_decompress(&j->d);
	if (make(p, path, (int)j->d.output_width, (int)j->d.output_height, 3, message))
		return 1;
	if (components == 4 && !(j->inks = malloc((size_t)p->width * 4)))
		return dataset_bad(message, path, "out of memory");
	while (j->d.output_scanline < j->d.output_height)
		jpeg_row(j);
	const int orientation = jpeg_orientation(j);
	(void)jpeg_finish_decompress(&j->d);
	if (kind == PICTURE_GRAY)
		to_gray(p);
	return picture_turn(p, orientation) ? dataset_bad(message, path, "out of memory") : 0;
}

static int jpeg_read(
	FILE *f, const char *path, enum picture_kind kind, struct picture *out, char message[256])
{
	if (kind == PICTURE_MASK)
		return dataset_bad(
			message, path, "is no mask: JPEG changes numbers; a PNG keeps them");
	struct jpeg *j = calloc(1, sizeof *j);
	int rc;
	if (!j)
		return dataset_bad(message, path, "out of memory");
	j->picture = out;
	j->d.err = jpeg_std_error(&j->error);
	j->error.error_exit = jpeg_fails;
	j->error.emit_message = jpeg_warns;
	j->d.client_data = j;
	if (setjmp(j->out)) {
		rc = dataset_bad(message, path, "%.100s", j->text);
	} else {
		jpeg_create_decompress(&j->d);
		rc = jpeg_pixels(j, f, path, kind, message);
	}
	jpeg_destroy_decompress(&j->d);
	free(j->inks);
	free(j);
	return rc;
}

int picture_read(const char *path, enum picture_kind kind, struct picture *out, char message[256])
{
	unsigned char magic[4] = {0};
	*out = (struct picture){.pixel = NULL};
	FILE *f = fopen(path, "rb");
	if (!f || fread(magic, 1, sizeof magic, f) < sizeof magic) {
		const int cause = errno;
		if (f)
			(void)fclose(f);
		return dataset_bad(
			message, path, "%s", f ? "is too short for a picture" : strerror(cause));
	}
	rewind(f);
	const int rc = !memcmp(magic, "\x89PNG", 4) ? png_read(f, path, kind, out, message)
		       : !memcmp(magic, "\xff\xd8\xff", 3)
			       ? jpeg_read(f, path, kind, out, message)
			       : dataset_bad(message, path, "neither PNG nor JPEG");
	(void)fclose(f);
	if (rc)
		picture_free(out);
	return rc;
}

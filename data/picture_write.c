/* Masks: PNGs of one number a pixel. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spng.h>

#include "data/kind.h"
#include "data/picture.h"

/* PASCAL VOC's colours: the bits of a number in turn go to red, green and blue, the lowest to the
 * highest bits of these. */
static void palette_voc(struct spng_plte *p)
{
	p->n_entries = 256;
	for (unsigned i = 0; i < 256; i++) {
		unsigned colour[3] = {0};
		for (unsigned bit = 0; bit < 8; bit++)
			colour[bit % 3] |= (i >> bit & 1) << (7 - bit / 3);
		p->entries[i] = (struct spng_plte_entry){
			(uint8_t)colour[0], (uint8_t)colour[1], (uint8_t)colour[2], 255};
	}
}

static int encode(
	spng_ctx *ctx, FILE *f, int64_t width, int64_t height, const unsigned char *number)
{
	struct spng_ihdr head = {.width = (uint32_t)width,
		.height = (uint32_t)height,
		.bit_depth = 8,
		.color_type = SPNG_COLOR_TYPE_INDEXED};
	struct spng_plte palette;
	palette_voc(&palette);
	int code = spng_set_png_file(ctx, f);
	code = code ? code : spng_set_ihdr(ctx, &head);
	code = code ? code : spng_set_plte(ctx, &palette);
	return code ? code
		    : spng_encode_image(ctx, number, (size_t)width * (size_t)height, SPNG_FMT_PNG,
			      SPNG_ENCODE_FINALIZE);
}

int dataset_write_mask(const char *path, int64_t width, int64_t height, const unsigned char *number,
	char message[256])
{
	if (width < 1 || height < 1 || width > PICTURE_SIDE || height > PICTURE_SIDE)
		return dataset_bad(message, path, "no PNG has %lld x %lld pixels", (long long)width,
			(long long)height);
	FILE *f = fopen(path, "wbx");
	if (!f)
		return dataset_bad(message, path, "%s", strerror(errno));
	spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
	const int code = ctx ? encode(ctx, f, width, height, number) : SPNG_EMEM;
	spng_ctx_free(ctx);
	const int bad = ferror(f);
	if ((fclose(f) != 0 || bad) && !code)
		return dataset_bad(message, path, "%s", strerror(errno));
	return code ? dataset_bad(message, path, "%s", spng_strerror(code)) : 0;
}

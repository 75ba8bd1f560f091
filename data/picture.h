/* Inside data/: pictures in files, and what is made of them. Bytes, row by row, a pixel's channels
 * side by side. */
#ifndef STINT_DATA_PICTURE_H
#define STINT_DATA_PICTURE_H

#include <stddef.h>
#include <stdint.h>

struct picture {
	int width, height, channels; /* 1 or 3 */
	unsigned char *pixel;        /* malloc's */
};

/* No side is longer, and no picture has more pixels: a file of a few bytes could ask for any. */
enum { PICTURE_SIDE = 65500, PICTURE_PIXELS = 1 << 27 };

enum picture_kind {
	PICTURE_RGB,
	PICTURE_GRAY,
	PICTURE_MASK /* the numbers as they are stored: gray, or the palette's */
};

/* Reads a PNG or JPEG file, told by its content; 16 bits a channel become 8, a palette its colours,
 * transparency goes. Gray from colours is ITU-R 601-2's luma, as PIL has it, and so are colours
 * from CMYK. It is turned as its EXIF says. 1 with a message, which names the file. */
int picture_read(const char *path, enum picture_kind kind, struct picture *out, char message[256]);
void picture_free(struct picture *p);
/* The orientation that EXIF's n bytes tell, 1 to 8; 1: none. */
int exif_orientation(const unsigned char *exif, size_t n);
/* As it is to be seen. 1: out of memory. */
int picture_turn(struct picture *p, int orientation);

/* A part of a picture; within it. */
struct picture_box {
	int left, top, width, height;
};
/* That part as `out`, whose sizes are set and whose pixels are made: bilinear as PIL does it, the
 * mean of all that a smaller pixel covers (Pillow's Resample.c, which also rounds between its two
 * passes), or the nearest. 1: out of memory. */
int picture_resize(
	const struct picture *in, const struct picture_box *box, int nearest, struct picture *out);

/* Of a pixel: ITU-R 601-2's, in 16 bits behind the point. */
int picture_luma(const unsigned char *rgb);
/* What torchvision's adjust_brightness, adjust_contrast, adjust_saturation (factor 1: as it is) and
 * adjust_hue (0: as it is, -0.5 to 0.5 once around) do, to the bit. Of gray the last two do
 * nothing.
 */
enum picture_change { PICTURE_BRIGHTNESS, PICTURE_CONTRAST, PICTURE_SATURATION, PICTURE_HUE };
enum { PICTURE_CHANGES = 4 };
void picture_change(struct picture *p, enum picture_change which, double factor);

#endif

/* Which way up a picture is to be seen: EXIF's orientation. */
#include <stdlib.h>
#include <string.h>

#include "data/picture.h"

/* A number of so many bytes, the high one first or last. */
static uint32_t number(const unsigned char *p, int bytes, int big)
{
	uint32_t v = 0;
	for (int i = 0; i < bytes; i++)
		v = v << 8 | p[big ? i : bytes - 1 - i];
	return v;
}

int exif_orientation(const unsigned char *p, size_t n)
{
	enum { ORIENTATION = 0x112, SHORT = 3 };
	if (n < 8 || (memcmp(p, "II*\0", 4) != 0 && memcmp(p, "MM\0*", 4) != 0))
		return 1;
	const int big = *p == 'M';
	const size_t at = number(p + 4, 4, big);
	if (at > n - 2 || at < 8)
		return 1;
	const size_t entries = number(p + at, 2, big);
	for (size_t i = 0; i < entries && n - at - 2 >= 12 * (i + 1); i++) {
		const unsigned char *e = p + at + 2 + 12 * i;
		if (number(e, 2, big) != ORIENTATION)
			continue;
		const uint32_t v = number(e + 8, 2, big);
		return number(e + 2, 2, big) == SHORT && v >= 1 && v <= 8 ? (int)v : 1;
	}
	return 1;
}

int picture_turn(struct picture *p, int orientation)
{
	const int w = p->width, h = p->height, across = orientation > 4;
	const size_t c = (size_t)p->channels;
	/* 1 is as it is stored; 2 to 4 mirrored, upside down or both; above that rows are columns
	 */
	const int left = orientation == 2 || orientation == 3 || orientation > 6,
		  up = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
	if (orientation == 1)
		return 0;
	unsigned char *to = malloc((size_t)w * (size_t)h * c), *at = to;
	if (!to)
		return 1;
	for (int y = 0; y < (across ? w : h); y++)
		for (int x = 0; x < (across ? h : w); x++) {
			const int fx = across ? y : x, fy = across ? x : y;
			const size_t pixel = (size_t)(up ? h - 1 - fy : fy) * (size_t)w +
					     (size_t)(left ? w - 1 - fx : fx);
			memcpy(at, p->pixel + pixel * c, c);
			at += c;
		}
	free(p->pixel);
	*p = (struct picture){across ? h : w, across ? w : h, p->channels, to};
	return 0;
}

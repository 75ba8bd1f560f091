#include "train/event_file.h"

#include <string.h>

/* --- Records --- */

/* Castagnoli's polynomial, its bits reversed. */
static uint32_t crc32c(const unsigned char *p, size_t n)
{
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
	}
	return ~crc;
}

static uint32_t masked(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

/* The lowest byte first. */
static void put_whole(struct text *out, uint64_t v, int bytes)
{
	char b[8];
	for (int i = 0; i < bytes; i++)
		b[i] = (char)(v >> 8 * i & 0xff);
	text_write(out, b, (size_t)bytes);
}

static void put_summed(struct text *out, const char *bytes, size_t n)
{
	text_write(out, bytes, n);
	put_whole(out, masked(crc32c((const unsigned char *)bytes, n)), 4);
}

/* Frees `event`. */
static void put_record(struct text *out, struct text *event)
{
	struct text length = {0};
	put_whole(&length, event->len, 8);
	if (event->failed || length.failed) {
		out->failed = true;
	} else {
		put_summed(out, length.s, length.len);
		put_summed(out, event->s, event->len);
	}
	text_free(&length);
	text_free(event);
}

/* --- Messages --- */

enum wire { VARINT, WIDE, BYTES, SINGLE = 5 };

static void put_varint(struct text *out, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		put_whole(out, v | 0x80, 1);
	put_whole(out, v, 1);
}

static void put_key(struct text *out, unsigned field, enum wire wire)
{
	put_varint(out, field << 3 | (unsigned)wire);
}

static void put_bytes(struct text *out, unsigned field, const char *bytes, size_t n)
{
	put_key(out, field, BYTES);
	put_varint(out, n);
	text_write(out, bytes, n);
}

/* Frees `message`. */
static void put_message(struct text *out, unsigned field, struct text *message)
{
	out->failed |= message->failed;
	if (!message->failed)
		put_bytes(out, field, message->s, message->len);
	text_free(message);
}

/* Event's fields */
enum { WALL_TIME = 1, STEP = 2, FILE_VERSION = 3, SUMMARY = 5, SESSION_LOG = 7 };

static struct text event_of(double time, int64_t step)
{
	struct text event = {0};
	uint64_t bits;
	memcpy(&bits, &time, sizeof bits);
	put_key(&event, WALL_TIME, WIDE);
	put_whole(&event, bits, 8);
	put_key(&event, STEP, VARINT);
	put_varint(&event, (uint64_t)step);
	return event;
}

void event_begin(struct text *out, double time)
{
	static const char version[] = "brain.Event:2";
	struct text event = event_of(time, 0);
	put_bytes(&event, FILE_VERSION, version, sizeof version - 1);
	put_record(out, &event);
}

void event_restart(struct text *out, double time, int64_t step)
{
	enum { STATUS = 1, START = 1 };
	struct text event = event_of(time, step), log = {0};
	put_key(&log, STATUS, VARINT);
	put_varint(&log, START);
	put_message(&event, SESSION_LOG, &log);
	put_record(out, &event);
}

void event_scalars(struct text *out, double time, int64_t step, const struct event_scalar *s, int n)
{
	enum { VALUE = 1, TAG = 1, SIMPLE_VALUE = 2 };
	struct text event = event_of(time, step), summary = {0};
	for (int i = 0; i < n; i++) {
		const float v = (float)s[i].value;
		struct text value = {0};
		uint32_t bits;
		memcpy(&bits, &v, sizeof bits);
		put_bytes(&value, TAG, s[i].tag, strlen(s[i].tag));
		put_key(&value, SIMPLE_VALUE, SINGLE);
		put_whole(&value, bits, 4);
		put_message(&summary, VALUE, &value);
	}
	put_message(&event, SUMMARY, &summary);
	put_record(out, &event);
}

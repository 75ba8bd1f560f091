/* TensorBoard's event files, as bytes appended to a text (which may hold zeros). A file is a row of
 * records (TensorFlow's TFRecord): length, a checksum of that, a protocol buffer of the message
 * Event, a checksum of that; checksums are CRC-32C, rotated and moved ("masked") so that one over
 * bytes which hold one stays good. Formats: tensorflow/core/lib/io/record_writer.h,
 * util/event.proto, framework/summary.proto. Out of memory shows in out->failed. */
#ifndef STINT_TRAIN_EVENT_FILE_H
#define STINT_TRAIN_EVENT_FILE_H

#include "base/base.h"

struct event_scalar {
	const char *tag;
	double value; /* written in single precision */
};

/* A file's first record. Times are seconds since 1970. */
void event_begin(struct text *out, double time);
/* What earlier files of the folder hold of `step` and later steps no longer counts: a run goes on
 * from before. */
void event_restart(struct text *out, double time, int64_t step);
/* Several curves' points of one step. */
void event_scalars(
	struct text *out, double time, int64_t step, const struct event_scalar *s, int n);

#endif

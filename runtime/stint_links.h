/* SPDX-License-Identifier: MIT-0 */
/* Weights that stay where the model has them (--link-weights): a file's notes say where, and what
 * must be there. */
#ifndef STINT_LINKS_H
#define STINT_LINKS_H

#include "safetensors.h"
#include "stint_sha256.h"

/* The note under STINT_LINK and a tensor's name in the step: "SHA256 OFFSET BYTES LENGTH NAME
 * PATH", with the model's name for it, of LENGTH bytes. */
#define STINT_LINK "link:"
struct stint_link {
	char sum[2 * STINT_SHA + 1];
	size_t offset, bytes;
	size_t length;
	const char *name, *path; /* within the note; the name has no end of its own */
};

/* 1: the note is no link. */
int stint_link_parse(const char *note, struct stint_link *out);
/* The file, open: at least as long as the link wants it. -1 and a message. */
int stint_link_open(const struct stint_link *l, char message[SAFETENSORS_MESSAGE]);
/* Whether these bytes are those that were linked; s has taken all of them. 1 and a message. */
int stint_link_check(
	const struct stint_link *l, struct stint_sha *s, char message[SAFETENSORS_MESSAGE]);

#endif

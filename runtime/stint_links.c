/* SPDX-License-Identifier: MIT-0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_CLOEXEC */
#endif
#include "stint_links.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int stint_link_parse(const char *note, struct stint_link *out)
{
	int at = -1;
	if (sscanf(note, "%64[0-9a-f] %zu %zu %zu%n", out->sum, &out->offset, &out->bytes,
		    &out->length, &at) != 4 ||
		at < 0 || note[at++] != ' ' || strlen(out->sum) != (size_t)2 * STINT_SHA ||
		out->length >= strlen(note + at) || note[(size_t)at + out->length] != ' ')
		return 1;
	out->name = note + at;
	out->path = out->name + out->length + 1;
	return 0;
}

static int fail(const struct stint_link *l, char *message, const char *why)
{
	const int n = l->length < 60 ? (int)l->length : 60;
	snprintf(message, SAFETENSORS_MESSAGE, "'%.*s' is linked to %.120s, which %.60s", n,
		l->name, l->path, why);
	return -1;
}

int stint_link_open(const struct stint_link *l, char message[SAFETENSORS_MESSAGE])
{
	struct stat st;
	const int fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* never wait for a pipe */
	int rc = 0;
	if (fd < 0)
		return fail(l, message, errno == ENOENT ? "is missing" : strerror(errno));
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		rc = fail(l, message, "is no plain file");
	else if (l->bytes > (size_t)st.st_size || l->offset > (size_t)st.st_size - l->bytes)
		rc = fail(l, message, "is too short");
	if (!rc)
		return fd;
	close(fd);
	return -1;
}

int stint_link_check(
	const struct stint_link *l, struct stint_sha *s, char message[SAFETENSORS_MESSAGE])
{
	unsigned char sum[STINT_SHA];
	char text[2 * STINT_SHA + 1];
	stint_sha_end(s, sum);
	stint_sha_text(sum, text);
	return strcmp(text, l->sum) ? -fail(l, message, "holds other values: its SHA-256 differs")
				    : 0;
}

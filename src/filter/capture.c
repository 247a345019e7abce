/* SPDX-License-Identifier: BSD-2-Clause */
/* Format: draft-ietf-opsawg-pcapng; numbers in brackets are its sections. */
#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/file_size.h"
#include "core/thread_memory.h"
#include "filter/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "explain/log.h"
#include "hca/hca.h"
#include "filter/capture_ethernet.h"
#include "wire/roce.h"
#include "wire/run.h"

struct capture {
	struct hca *hca;
	int fd;
	uint32_t stopped; /* atomic; 1: writing failed */
};

enum block {
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET = 6,
	BLOCK_SECTION = 0x0a0d0d0a,
};

enum option {
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	OPTION_SECTION_APPLICATION = 4,
	OPTION_INTERFACE_NAME = 2,
	OPTION_INTERFACE_MAC = 6,
	OPTION_INTERFACE_RESOLUTION = 9,
	OPTION_PACKET_FLAGS = 2,
	OPTION_PACKET_QUEUE = 6,
};

#define LINK_TYPE_ETHERNET 1
#define MOST_BYTES (ROCE_MOST_HEADERS + 4096 + ROCE_ICRC_BYTES)

/* Data written at once, in host byte order. */
struct text {
	uint32_t length;
	uint8_t bytes[CAPTURE_COMMENT + 128];
};

static void text_put(struct text *text, const void *bytes, size_t length)
{
	memcpy(text->bytes + text->length, bytes, length);
	text->length += (uint32_t)length;
}

static void text_put32(struct text *text, uint32_t value)
{
	text_put(text, &value, sizeof(value));
}

/* Items are aligned to 4 bytes (3.1, 3.5). */
static void text_put_padding(struct text *text, size_t length)
{
	text_put(text, "\0\0\0", -length & 3);
}

static void text_put_option(struct text *text, uint16_t code, const void *value, size_t length)
{
	text_put(text, &code, sizeof(code));
	text_put(text, &(uint16_t){(uint16_t)length}, sizeof(uint16_t));
	text_put(text, value, length);
	text_put_padding(text, length);
}

static void begin_block(struct text *text, enum block type)
{
	text->length = 0;
	text_put32(text, type);
	text_put32(text, 0);
}

/* Ends a block. Its length, at both ends, includes @more bytes stored elsewhere (3.1). */
static void end_block(struct text *text, uint32_t more)
{
	uint32_t length = text->length + more + (uint32_t)sizeof(length);

	text_put32(text, length);
	memcpy(text->bytes + sizeof(uint32_t), &length, sizeof(length));
}

/* ---- the file ------------------------------------------------------------------------------------------------- */

static int write_block(int fd, const struct text *text)
{
	WITHOUT_SIZE_SIGNAL;
	ssize_t written = write(fd, text->bytes, text->length);

	if (written < 0)
		return -errno;
	return (size_t)written == text->length ? 0 : -ENOSPC;
}

/* Writes a section (4.1). */
static int write_section(int fd)
{
	static const char application[] = "softhca " SOFTHCA_VERSION;
	const uint16_t version[] = {1, 0};
	const uint64_t unknown_length = UINT64_MAX;
	struct text text;

	begin_block(&text, BLOCK_SECTION);
	text_put32(&text, 0x1a2b3c4d);
	text_put(&text, version, sizeof(version));
	text_put(&text, &unknown_length, sizeof(unknown_length));
	text_put_option(&text, OPTION_SECTION_APPLICATION, application, sizeof(application) - 1);
	text_put_option(&text, OPTION_END, "", 0);
	end_block(&text, 0);
	return write_block(fd, &text);
}

/* Writes the interface of device @index (4.2). All have the same GID table. */
static int write_interface(int fd, const struct hca *hca, uint32_t index)
{
	const uint8_t nanoseconds = 9;
	const uint16_t type[] = {LINK_TYPE_ETHERNET, 0};
	char name[sizeof(hca->settings.device_name) + 16];
	struct text text;

	snprintf(name, sizeof(name), "%s%u", hca->settings.device_name, index);
	begin_block(&text, BLOCK_INTERFACE);
	text_put(&text, type, sizeof(type));
	text_put32(&text, 0);
	text_put_option(&text, OPTION_INTERFACE_NAME, name, strlen(name));
	text_put_option(&text, OPTION_INTERFACE_MAC, hca->gids[0].mac, sizeof(hca->gids[0].mac));
	text_put_option(&text, OPTION_INTERFACE_RESOLUTION, &nanoseconds, sizeof(nanoseconds));
	text_put_option(&text, OPTION_END, "", 0);
	end_block(&text, 0);
	return write_block(fd, &text);
}

static int begin_file(int fd, const struct hca *hca)
{
	int result = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;

	if (!result && ftruncate(fd, 0) && errno != EINVAL) /* EINVAL: a pipe */
		result = -errno;
	if (!result)
		result = write_section(fd);
	for (uint32_t index = 0; !result && index < hca->settings.devices; index++)
		result = write_interface(fd, hca, index);
	return result;
}

int capture_open(struct hca *hca, struct capture **capture, char *error, size_t size)
{
	char path[4096 + 64];
	int result;

	*capture = NULL;
	if (!strcmp(hca->settings.capture, "off"))
		return 0;
	result = setting_path(hca->settings.capture, path, sizeof(path));
	if (!result && !(*capture = calloc(1, sizeof(**capture))))
		result = -ENOMEM;
	if (!result) {
		(*capture)->hca = hca;
		(*capture)->fd = descriptor_keep(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
		result = (*capture)->fd < 0 ? -errno : hca->index ? 0 : begin_file((*capture)->fd, hca);
	}
	if (!result)
		return 0;
	snprintf(error, size, "SOFTHCA_CAPTURE=%s: %s", hca->settings.capture,
		 result == -EWOULDBLOCK
			 ? "another process writes this file; with %p in the path each process has its own"
			 : strerror(-result));
	capture_close(*capture);
	*capture = NULL;
	return result;
}

void capture_close(struct capture *capture)
{
	if (!capture)
		return;
	descriptor_close(capture->fd);
	free(capture);
}

/* ---- packets -------------------------------------------------------------------------------------------------- */

static void capture_stop(struct capture *capture, const char *why)
{
	char note[128];

	if (__atomic_exchange_n(&capture->stopped, 1, __ATOMIC_RELAXED))
		return;
	snprintf(note, sizeof(note), "the capture ends: %s", why);
	explain_log_note(capture->hca->explain_log, note);
}

/* Begins an enhanced packet block (4.3), up to its data. */
static void begin_packet(struct text *text, uint32_t interface, uint32_t bytes)
{
	struct timespec now;
	uint64_t time;

	clock_gettime(CLOCK_REALTIME, &now);
	time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	begin_block(text, BLOCK_PACKET);
	text_put32(text, interface);
	text_put32(text, (uint32_t)(time >> 32));
	text_put32(text, (uint32_t)time);
	text_put32(text, bytes);
	text_put32(text, bytes);
}

static void put_packet_options(struct text *text, enum capture_direction direction, uint32_t qpn, const char *comment)
{
	const uint32_t flags = direction, queue = qpn;

	text_put_option(text, OPTION_PACKET_FLAGS, &flags, sizeof(flags));
	if (qpn)
		text_put_option(text, OPTION_PACKET_QUEUE, &queue, sizeof(queue));
	if (comment && *comment)
		text_put_option(text, OPTION_COMMENT, comment, strnlen(comment, CAPTURE_COMMENT));
	text_put_option(text, OPTION_END, "", 0);
}

/* Removes a partly written block. No block follows it, because the file has its maximum size or the disk is full. */
static void file_truncate_back(int fd, ssize_t written)
{
	off_t end = lseek(fd, 0, SEEK_CUR);

	if (end >= written && ftruncate(fd, end - written))
		return; /* readers report a truncated block */
}

void capture_frame(struct capture *capture, enum capture_direction direction, const struct packet_path *path,
		   uint16_t source_port, const uint8_t *bytes, uint32_t length, uint32_t qpn, const char *comment)
{
	uint8_t headers[CAPTURE_MOST_HEADERS];
	THREAD_VARIABLE(struct text, begin);
	THREAD_VARIABLE(struct text, end);
	struct iovec parts[4];
	uint32_t header_bytes, total;
	ssize_t written;

	if (length > MOST_BYTES || __atomic_load_n(&capture->stopped, __ATOMIC_RELAXED))
		return;
	if (!descriptor_check(capture->fd)) {
		capture_stop(capture, "the program has closed the descriptor of its file");
		return;
	}
	header_bytes = capture_headers_write(headers, capture->hca, path, source_port, bytes, length);
	begin_packet(begin, (uint32_t)capture->hca->index, header_bytes + length);
	end->length = 0;
	text_put_padding(end, header_bytes + length);
	put_packet_options(end, direction, qpn, comment);
	total = begin->length + header_bytes + length + end->length + (uint32_t)sizeof(total);
	text_put32(end, total);
	memcpy(begin->bytes + sizeof(uint32_t), &total, sizeof(total));
	parts[0] = (struct iovec){begin->bytes, begin->length};
	parts[1] = (struct iovec){headers, header_bytes};
	parts[2] = (struct iovec){(void *)bytes, length};
	parts[3] = (struct iovec){end->bytes, end->length};
	{
		WITHOUT_CANCELLATION;
		WITHOUT_SIZE_SIGNAL;

		written = writev(capture->fd, parts, 4);
	}
	if (written < 0) {
		capture_stop(capture, strerror(errno));
	} else if ((size_t)written != total) {
		file_truncate_back(capture->fd, written);
		capture_stop(capture, "no room for a packet");
	}
}

/* QPs that do not exist have their records in the first device. */
static struct hca *qp_device(uint32_t qpn)
{
	struct hca *hca = delivery->device_of(qpn);

	return hca ? hca : first_device();
}

uint64_t capture_mark(uint32_t qpn)
{
	struct explain_record newest;

	return explain_previous(qp_device(qpn), 0, 0, &newest) ? newest.serial : 0;
}

const char *capture_explained(uint32_t qpn, uint64_t mark, char *buffer, size_t size)
{
	struct hca *hca = qp_device(qpn);
	struct explain_record record, first = {.serial = 0};

	/* Later explanations are consequences of the first one. */
	while (explain_previous(hca, qpn, first.serial, &record) && record.serial > mark)
		first = record;
	if (!first.serial)
		return NULL;
	explain_render(hca->name, &first, buffer, size);
	return buffer;
}

const char *capture_explanation(const struct capture *capture, uint32_t qpn, const struct refusal *why, char *buffer,
				size_t size)
{
	struct explain_record record = {.rule = why->rule, .subject = {.qpn = qpn}};

	if (why->rule == RULE_NONE)
		return NULL;
	memcpy(record.args, why->args, sizeof(record.args));
	explain_render(capture->hca->name, &record, buffer, size);
	return buffer;
}

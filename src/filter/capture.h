/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures: writes the frames that pass the filters of a device to a pcapng file, as on a wire: Ethernet, IP, UDP, BTH
 * to ICRC. SOFTHCA_CAPTURE gives the path; `%p` in it is the process number.
 *
 * Each packet is one write(2) at the end of the file, so threads need no lock, and a forked child continues its
 * parent's file. A lock of the file keeps other processes from overwriting it. If a write fails, the capture ends with
 * an explanation.
 *
 * The devices of a process share the file, each as an interface; the first one starts it. The opener of a capture owns
 * it; no lock is taken, any thread may call.
 */
#ifndef SOFTHCA_FILTER_CAPTURE_H
#define SOFTHCA_FILTER_CAPTURE_H

#include "wire/packet.h"

struct capture;
struct hca;

/* Values of pcapng (draft-ietf-opsawg-pcapng, 4.3.1). */
enum capture_direction {
	CAPTURE_INBOUND = 1,
	CAPTURE_OUTBOUND = 2,
};

#define CAPTURE_COMMENT 1024

/**
 * Opens the capture that the settings request; sets *@capture to NULL if there is none. Returns 0, or a negative errno
 * with a line in @error. Called when devices are made, device 0 first.
 */
int capture_open(struct hca *hca, struct capture **capture, char *error, size_t size);
/** NULL is allowed. */
void capture_close(struct capture *capture);

/**
 * Writes a frame: @bytes, BTH to ICRC, along @path from UDP port @source_port to that of the settings. IPv4
 * identification is 0, as the ICRC requires. @qpn: its QP on this device, or 0. @comment: UTF-8, truncated to
 * CAPTURE_COMMENT bytes, or NULL. A frame longer than any packet is omitted.
 */
void capture_frame(struct capture *capture, enum capture_direction direction, const struct packet_path *path,
		   uint16_t source_port, const uint8_t *bytes, uint32_t length, uint32_t qpn, const char *comment);

/** Returns the serial number of the latest explanation on the device of QP @qpn. Inside an epoch section. */
uint64_t capture_mark(uint32_t qpn);

/**
 * Writes the first explanation about QP @qpn since @mark to @buffer; CAPTURE_COMMENT + 1 bytes are enough. Returns
 * @buffer, or NULL if there is none. Inside an epoch section.
 */
const char *capture_explained(uint32_t qpn, uint64_t mark, char *buffer, size_t size);

/** As capture_explained(), for the explanation @why. Returns NULL if @why is empty. */
const char *capture_explanation(const struct capture *capture, uint32_t qpn, const struct refusal *why, char *buffer,
				size_t size);

#endif

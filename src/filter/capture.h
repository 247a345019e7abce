/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures: frames that pass the filters of a device, written to a pcapng file in the form that they would have on a
 * wire: Ethernet, IP, UDP, BTH to ICRC. Wireshark reads it. SOFTHCA_CAPTURE gives the path; `%p` in it stands for the
 * process number.
 *
 * Each packet is one write(2) to the end of the file, so threads need no lock, and a forked child continues the file of
 * its parent. A lock of the file keeps other processes from overwriting it. If writing fails, the capture ends, which
 * is reported with the explanations.
 *
 * The devices of a process share the file: the first one starts it, each is an interface of it. The opener of a capture
 * owns it; no lock is taken, any thread may call.
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

/* Maximum bytes of a comment. */
#define CAPTURE_COMMENT 1024

/**
 * Opens the capture that the settings of @hca request; sets *@capture to NULL if they request none. Returns 0, or a
 * negative errno with a text in @error (one line). Device 0 comes first; called when devices are made.
 */
int capture_open(struct hca *hca, struct capture **capture, char *error, size_t size);
/** Ends the capture; NULL is allowed. */
void capture_close(struct capture *capture);

/**
 * Writes a frame: @length bytes at @bytes, BTH to ICRC, along @path from UDP port @source_port to that of the settings,
 * with IPv4 identification 0, as the ICRC requires. @qpn: the QP of this device that sends or receives it, or 0.
 * @comment: UTF-8, truncated to CAPTURE_COMMENT bytes, or NULL. A frame longer than any packet is omitted.
 */
void capture_frame(struct capture *capture, enum capture_direction direction, const struct packet_path *path,
		   uint16_t source_port, const uint8_t *bytes, uint32_t length, uint32_t qpn, const char *comment);

/**
 * Returns the serial number of the latest explanation on the device of QP @qpn, for capture_explained(). Inside an
 * epoch section.
 */
uint64_t capture_mark(uint32_t qpn);

/**
 * Writes the first explanation about QP @qpn since @mark as a comment to @buffer; CAPTURE_COMMENT + 1 bytes are enough.
 * Returns @buffer, or NULL if there is none. Inside an epoch section.
 */
const char *capture_explained(uint32_t qpn, uint64_t mark, char *buffer, size_t size);

/** As capture_explained(), for the explanation @why about QP @qpn of this device. Returns NULL if @why is empty. */
const char *capture_explanation(const struct capture *capture, uint32_t qpn, const struct refusal *why, char *buffer,
				size_t size);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File in which a process records the steps of its requests: a head, a table of queue pairs, then chunks of records. A
 * thread owns a chunk until it is full, then takes the next one in turn and overwrites the oldest data. A record is
 * valid if its lap, written last, equals that of its chunk. Readers must treat the content as untrusted.
 */
#ifndef SOFTHCA_OBSERVE_TIMELINE_FILE_H
#define SOFTHCA_OBSERVE_TIMELINE_FILE_H

#include <stdint.h>

#define TIMELINE_MAGIC "softhca timeline" /* without a terminating 0 */
#define TIMELINE_VERSION 2
#define TIMELINE_SUFFIX ".records"
#define TIMELINE_HEAD_BYTES 4096
#define TIMELINE_CHUNK_RECORDS 1024 /* the first is a struct timeline_chunk */

enum timeline_kind {
#define TIMELINE_KIND(NAME, ...) TIMELINE_##NAME,
#include "format/timeline_kinds.def"
	TIMELINE_KINDS
};

enum timeline_clock {
	TIMELINE_CLOCK_NS,    /* CLOCK_MONOTONIC */
	TIMELINE_CLOCK_TICKS, /* ticks of the processor; calibrated by CLOCK records */
};

struct timeline_record {
	uint64_t time;
	uint64_t value;
	uint32_t length;
	uint32_t psn;
	union {
		struct {
			uint16_t index;
			uint8_t opcode;
			uint8_t kind; /* enum timeline_kind */
		};
		uint32_t what; /* the three members above */
	};
	uint32_t number; /* of a QP, CQ or SRQ; the lap in bits 31:24 */
};

/* In place of a chunk's first record. */
struct timeline_chunk {
	uint32_t owned; /* atomic; 1: a thread writes into it */
	uint32_t lap;   /* 1 to 255, cyclic; 0: never written */
	uint64_t turn;  /* chunks taken before */
	uint8_t reserved[16];
};

/* Row of a connected queue pair. */
struct timeline_qp {
	uint32_t number; /* written last; 0: none */
	uint32_t peer;   /* for RC, UC and XRC; otherwise 0 */
	uint32_t send_cq, recv_cq;
	uint32_t device;
	uint32_t type; /* enum ibv_qp_type */
	uint8_t source[16], destination[16];
	uint8_t reserved[8];
};

struct timeline_head {
	char magic[16];
	uint32_t version;
	uint32_t clock; /* enum timeline_clock */
	uint32_t chunks;
	uint32_t qp_rows;
	uint32_t process;
	uint32_t qps;            /* atomic; QPs to be entered; more than qp_rows if some were omitted */
	int64_t realtime_offset; /* ns; CLOCK_REALTIME - CLOCK_MONOTONIC */
	uint64_t clock_ticks[2]; /* CLOCK record values, taken twice when the file was made */
	uint64_t clock_ns[2];
	uint64_t started;           /* ns of CLOCK_REALTIME */
	uint64_t taken;             /* atomic; chunks */
	uint64_t overwritten;       /* atomic; records */
	uint64_t dropped;           /* atomic; records that found no chunk */
	char host[64], program[64]; /* terminated by 0 */
	char boot[64];              /* boot id: identifies host and clock */
};

/* `value` of SEND, ARRIVE and similar kinds: number of the other QP, packets, enum packet_place. */
#define TIMELINE_PACKETS(peer, count, place)                                                                           \
	((uint64_t)(peer) | (uint64_t)((count)&0xffffff) << 24 | (uint64_t)(place) << 48)

/* `value` of COMPLETE. */
#define TIMELINE_COMPLETION(qpn, send_opcode, syndrome, vendor, device)                                                \
	((uint64_t)((qpn)&0xffffff) | (uint64_t)(uint8_t)(send_opcode) << 24 | (uint64_t)(uint8_t)(syndrome) << 32 |   \
	 (uint64_t)(uint8_t)(vendor) << 40 | (uint64_t)(uint8_t)(device) << 48)

/*
 * Kinds of records that describe two steps. The omitted values are implied: POST_SEND and POST_CALL are for a message
 * of one packet that is the packet of its opcode (format/wqe_opcodes.def), ACKNOWLEDGED is for an ACK and a completion
 * without an error. Members:
 *
 * POST_SEND, POST_CALL   as POST; psn: PSN, bits 15:8 of the bytes; length: the other QP, bits 7:0 of the bytes
 * ACKNOWLEDGED           number: QP; index: WQE counter; opcode: bits 15:8 of the bytes; psn: PSN, AETH syndrome; length: the
 *                        other QP, bits 7:0 of the bytes; value: as TIMELINE_ACKNOWLEDGED_VALUE()
 * POLL_SOME              as described in format/timeline_kinds.def; at most TIMELINE_MOST_POLLS
 */
#define TIMELINE_MOST_POLLS 16
#define TIMELINE_24_AND_8(low, high) (((uint32_t)(low)&0xffffff) | (uint32_t)(uint8_t)(high) << 24)
#define TIMELINE_ACKNOWLEDGED_VALUE(cq, send_opcode, producer_index, device)                                           \
	((uint64_t)TIMELINE_24_AND_8(cq, send_opcode) | (uint64_t)TIMELINE_24_AND_8(producer_index, device) << 32)

#endif

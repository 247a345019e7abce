/* SPDX-License-Identifier: BSD-2-Clause */
/* An end of a case, in the model: its memory, its key with the keys over and under it, and the errors found by the key. */
#ifndef SOFTHCA_TESTS_SIGNATURE_ENDS_H
#define SOFTHCA_TESTS_SIGNATURE_ENDS_H

#include "key.h"

/* The completion queues, named by side and use. */
enum queue {
	SOURCE_SEND,
	SOURCE_RECEIVE,
	TARGET_SEND,
	TARGET_RECEIVE,
	OTHER_PAIR, /* the same four of the other RC pair */
	QUEUES = 2 * OTHER_PAIR,
};

/*
 * Handling of errors (mlx5dv_mkey_check(3)). The key records the first one, and checking takes the record.
 *
 * Profile connectx (mlx5-formats 4.6, 6 no. 7): the device reports the first error by a CQE, then none until the key is
 * armed again. Polling records it; checking takes the record. A configuration arms the key if an error was polled since
 * the one before.
 */
struct errors {
	bool silent, polled;
	struct finding queued, recorded;
	enum queue queue;
};

/* State that lives as long as the device's key. */
struct pooled_key {
	struct model_key key;
	struct errors errors;
};

/* A piece of a message at one end. */
struct span {
	bool plain;
	uint64_t at; /* in the region, or on the wire side of the key */
	uint64_t bytes;
};

enum { SPANS = 1 << 16 };

struct model_end {
	const struct end *end;
	uint8_t *memory;           /* REGION bytes */
	struct pooled_key *pooled; /* NULL: no key */
	uint32_t span_count;
	struct span span[SPANS];
};

/** Makes the layout that letter l, or k, gives the key. */
void end_lay(struct model_end *end, bool other);

/** Applies a configuration with these letters to key and errors. */
void end_configure(struct model_end *end, const char *letters);

/**
 * Computes the spans of bytes [@start, @start + @length) of an end, header first; cut where SGEs and pieces of keys end.
 * Returns false beyond the end of the outermost key.
 */
bool end_resolve(struct model_end *end, uint32_t header, uint32_t start, uint32_t length, uint32_t cut);

/**
 * For the spans resolved last: check that all memory exists; copy bytes to a message; copy bytes from a message. Return
 * the first error.
 */
bool end_fits(const struct model_end *end, bool transmits);
struct finding end_gather(const struct model_end *end, uint8_t *message);
struct finding end_scatter(const struct model_end *end, const uint8_t *message);

/** Records that an error was found and, in profile connectx, reported in @queue. */
void errors_found(struct pooled_key *pooled, struct finding finding, enum queue queue);
/** Records that @queue was polled. */
void errors_polled(struct errors *errors, enum queue queue);
/** Returns the expected result of mlx5dv_mkey_check(). False: it fails with EINVAL, and the record stays. */
bool errors_check(struct pooled_key *pooled, struct finding *finding);

/** The signature that letter j sets. */
extern const struct signature other_signature;

enum { OTHER_LAYOUT_BYTES = 64 };

#endif

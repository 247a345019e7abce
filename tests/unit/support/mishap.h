/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One packet of a run that the wire (wire_link.h) drops, duplicates or delays. A test repeats the run for each packet
 * in turn, until the run has fewer packets:
 *
 *	struct mishap mishap = {.verdict = WIRE_DROP};
 *
 *	while (mishap_next(&mishap))
 *		… start with the filter mishap_filter and &mishap, and run …
 */
#ifndef SOFTHCA_TESTS_MISHAP_H
#define SOFTHCA_TESTS_MISHAP_H

#include "wire_link.h"

struct mishap {
	uint64_t number; /* of the affected packet, from 1; 0 before the first run */
	enum wire_verdict verdict;
	bool happened;
};

/* Goes to the next packet. Returns false if the last run did not have that many. */
static inline bool mishap_next(struct mishap *mishap)
{
	if (mishap->number && !mishap->happened)
		return false;
	mishap->number++;
	mishap->happened = false;
	return true;
}

/* A filter of the wire. @argument: struct mishap. */
static inline enum wire_verdict mishap_filter(void *argument, uint64_t number, const struct wire_packet *packet)
{
	struct mishap *mishap = argument;

	(void)packet;
	if (number != mishap->number)
		return WIRE_PASS;
	mishap->happened = true;
	return mishap->verdict;
}

#endif

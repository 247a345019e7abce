/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whoever wants to hear what becomes of keys and of accesses through them: the drawings of SOFTHCA_KEYS (draw/book.h). A
 * device without one, as nearly all are, pays one test of a pointer where keys change and where an access is resolved that is
 * not one of plain memory.
 *
 * The functions are called on the thread that causes what they tell of, under its locks; they take none but leaves. They do
 * not fail.
 */
#ifndef SOFTHCA_OBSERVE_KEY_OBSERVER_H
#define SOFTHCA_OBSERVE_KEY_OBSERVER_H

#include <stdint.h>

struct explain_record;
struct hca;
struct mkey;

struct key_observer {
	/** What @key says now holds from now on: it was configured, bound or invalidated. Its lock is held. */
	void (*begins)(struct mkey *key);
	/** What @key says ends: it is about to be changed, under its lock, or destroyed. */
	void (*ends)(struct mkey *key);
	/** An access to @number that is neither plain memory nor refused. @rights: enum key_rights. In an epoch section. */
	void (*used)(struct hca *hca, uint32_t number, uint32_t qpn, uint8_t rights, uint64_t address, uint64_t length);
	/** An explanation was made. */
	void (*explained)(struct hca *hca, const struct explain_record *record);
};

#endif

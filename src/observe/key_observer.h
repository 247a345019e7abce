/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Observer of changes of keys and of accesses through them: the drawings of SOFTHCA_KEYS (draw/book.h). Without one,
 * devices only test a pointer when a key changes, and when an access is resolved that is not to plain memory. The
 * functions are called on the thread that causes the event, under its locks; they take only leaf locks, and do not
 * fail.
 */
#ifndef SOFTHCA_OBSERVE_KEY_OBSERVER_H
#define SOFTHCA_OBSERVE_KEY_OBSERVER_H

#include <stdint.h>

struct explain_record;
struct hca;
struct mkey;

struct key_observer {
	/**
	 * Reports that a configuration of @key takes effect: it was configured, bound or invalidated. Its lock is held.
	 */
	void (*begins)(struct mkey *key);
	/** Reports that a configuration of @key ends: it is about to be changed, under its lock, or destroyed. */
	void (*ends)(struct mkey *key);
	/**
	 * Reports a resolved access to @number, neither refused nor to plain memory. @rights: enum key_rights. In an
	 * epoch section.
	 */
	void (*used)(struct hca *hca, uint32_t number, uint32_t qpn, uint8_t rights, uint64_t address, uint64_t length);
	void (*explained)(struct hca *hca, const struct explain_record *record);
};

#endif

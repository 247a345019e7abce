/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of a message through requester and responder, which are compiled for each; see core/compiler.h. */
#ifndef SOFTHCA_TRANSPORT_QP_PATH_H
#define SOFTHCA_TRANSPORT_QP_PATH_H

#include <stdbool.h>

#include "core/compiler.h"

/* A message that a path cannot handle falls back to an earlier one in this list. */
enum path {
	PATH_GENERAL, /* any transport, link and filter */
	/*
	 * RC messages from the connected peer, without filters; also those that arrive in one record (link.whole),
	 * whose acknowledgement is queued (answer.h).
	 */
	PATH_RC,
	/*
	 * The fast path, for RC messages to a QP of this process, or received in one record. A failed check or a rare
	 * case ends it before changes that the second attempt would repeat.
	 */
	PATH_KEYS, /* any keys and segments, through streams in memory of the thread; fast_path/keys.h */
	PATH_FAST, /* between contiguous regions; fast_path/fast_path.h */
};

static inline SPECIALISED bool path_is_fast(const enum path path)
{
	return path >= PATH_KEYS;
}

#endif

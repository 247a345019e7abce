/* SPDX-License-Identifier: BSD-2-Clause */
/* The paths of a message through requester and responder, which are compiled for each of them; see core/compiler.h. */
#ifndef SOFTHCA_TRANSPORT_QP_PATH_H
#define SOFTHCA_TRANSPORT_QP_PATH_H

#include <stdbool.h>

#include "core/compiler.h"

/*
 * The general path serves every message. A message that another path cannot handle falls back to a path earlier in
 * this list.
 */
enum path {
	PATH_GENERAL, /* any transport, link and filter */
	/*
	 * RC messages from the connected peer, without filters. Includes messages that a link carries in one record
	 * (link.whole); their receiver queues the acknowledgement (answer.h).
	 */
	PATH_RC,
	/*
	 * The fast path, for RC messages to a QP of this process, or received in one record. A failed check or a rare
	 * case ends it before it has changed anything that the second attempt would change again.
	 */
	PATH_KEYS, /* any keys and segments, through streams in memory of the thread; fast_path/keys.h */
	PATH_FAST, /* between contiguous regions; fast_path/fast_path.h */
};

/* Returns true for the paths that fall back where a check fails. */
static inline SPECIALISED bool path_is_fast(const enum path path)
{
	return path >= PATH_KEYS;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The paths of a message through requester and responder, which are compiled for each of them; see core/compiler.h. */
#ifndef SOFTHCA_TRANSPORT_PATH_H
#define SOFTHCA_TRANSPORT_PATH_H

/*
 * The general path serves every message. The others serve messages of RC from the connected peer, through no filter; where one of
 * them cannot handle a message, the message falls back to a path above it in this list.
 */
enum path {
	PATH_GENERAL, /* any transport, link and filter; the reply is a packet */
	PATH_CALL,    /* to a QP of this process: the requester calls the responder, which returns the reply */
	PATH_WHOLE, /* over a link that carries the message in one record (link.whole); the acknowledgement is owed (answer.h) */
	/*
	 * The fast path: everything is as usual. A check that fails, and a case that is rare, ends it before anything has changed that
	 * a second attempt would change again. No function outside of the caller gets the address of the request, so the compiler
	 * keeps it in registers.
	 */
	PATH_FAST,
};

#endif

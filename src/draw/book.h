/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drawings of SOFTHCA_KEYS, for each configuration of a key and each bind of a window, written when it begins, when
 * an access is refused, when it ends and when the process ends:
 *
 *     DIRECTORY/PID-DEVICE-KEY-SERIAL.VERSION.txt, .svg
 *
 * SERIAL is that of the key in the device; VERSION counts its configurations. A region is drawn if an access to it was
 * refused. A process draws at most LIMIT_DRAWINGS keys, and LIMIT_DRAWINGS_REFUSED more with refused accesses, and
 * reports the number of others when it ends.
 *
 * Each device owns a book. Lock: key_book.lock, a leaf; no file is written under it. Any thread.
 */
#ifndef SOFTHCA_DRAW_BOOK_H
#define SOFTHCA_DRAW_BOOK_H

#include <stddef.h>
#include <stdint.h>

#include "draw/picture.h"

struct hca;
struct key_book; /* hca->key_book; NULL: nothing is drawn */

/**
 * Creates the book and its directory if the settings ask for it. Returns 0, or a negative errno with a text in @error.
 */
int key_book_init(struct hca *hca, char *error, size_t size);

/**
 * At the end of the process: draws the keys used since they were last drawn, and reports the number of drawings to @put.
 * Call outside epoch sections.
 */
void key_book_finish(struct hca *hca, void (*put)(void *argument, const char *line), void *argument);

/** Returns the uses of @key in its current configuration; none without a book. Inside an epoch section. */
void key_book_uses(const struct mkey *key, struct key_uses *uses);

/** Handlers around a fork: hold the lock. */
void key_book_lock(struct hca *hca);
void key_book_unlock(struct hca *hca);
/** In a forked child: discards the parent's records. The lock is held. */
void key_book_forget(struct hca *hca);

#endif

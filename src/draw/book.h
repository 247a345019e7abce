/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drawings of SOFTHCA_KEYS: one for each configuration of a key and each bind of a window, as text and as SVG. They are
 * written when the configuration begins, when an access through it is refused, when it ends and when the process ends:
 *
 *     DIRECTORY/PID-DEVICE-KEY-SERIAL.VERSION.txt, .svg
 *
 * KEY is the key number, SERIAL the serial of the key in the device, and VERSION counts its configurations; the name is unique.
 * A region is drawn if an access to it was refused. Files are written under a temporary name and renamed, so that readers never
 * see a partial file. A process draws at most LIMIT_DRAWINGS keys, and LIMIT_DRAWINGS_REFUSED more with refused accesses. The
 * others are counted, and the count is reported when the process ends.
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

/** Creates the book and its directory, if the settings ask for drawings. Returns 0, or a negative errno with a text in @error. */
int key_book_init(struct hca *hca, char *error, size_t size);

/**
 * Called at the end of the process: draws the keys that have changed since they were last drawn, and passes a line on
 * the number of drawings to @put. Call outside epoch sections.
 */
void key_book_finish(struct hca *hca, void (*put)(void *argument, const char *line), void *argument);

/** Fills @uses with the uses of @key in its current configuration; none without a book. Inside an epoch section. */
void key_book_uses(const struct mkey *key, struct key_uses *uses);

/** Handlers around a fork: hold the lock. */
void key_book_lock(struct hca *hca);
void key_book_unlock(struct hca *hca);
/** In a forked child: discards the parent's records, so that the child draws its own keys only. The lock is held. */
void key_book_forget(struct hca *hca);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drawings of SOFTHCA_KEYS: of each key that is configured and each window that is bound, one per configuration, written
 * when it begins, when an access through it is refused, when it ends and when the process ends, as text and as SVG:
 *
 *     DIRECTORY/PID-DEVICE-KEY-SERIAL.VERSION.txt, .svg
 *
 * KEY is its number, SERIAL that of the key in the device and VERSION counts its configurations; together they are no other
 * drawing's. A region is drawn if an access to it was refused. Files are written beside their place and renamed, so that nobody
 * reads half of one. A process draws so many keys (LIMIT_DRAWINGS), and so many more of which something was refused
 * (LIMIT_DRAWINGS_REFUSED); the others are counted, and the count is said when the process ends.
 *
 * A book belongs to its device. Lock: key_book.lock, a leaf; no file is written under it. Any thread.
 */
#ifndef SOFTHCA_DRAW_BOOK_H
#define SOFTHCA_DRAW_BOOK_H

#include <stddef.h>
#include <stdint.h>

#include "draw/picture.h"

struct hca;
struct key_book; /* hca->key_book; NULL: nothing is drawn */

/** Makes the book that the settings ask for, and its directory. Returns 0, or a negative errno with a text in @error. */
int key_book_init(struct hca *hca, char *error, size_t size);

/**
 * Draws what changed since it was drawn; the process ends. Calls @put with a line that says how many keys were drawn. Not in an
 * epoch section.
 */
void key_book_finish(struct hca *hca, void (*put)(void *argument, const char *line), void *argument);

/** How @key was used in its present configuration; nothing without a book. In an epoch section. */
void key_book_uses(const struct mkey *key, struct key_uses *uses);

/** Around a fork: the child draws what happens in the child. */
void key_book_lock(struct hca *hca);
void key_book_unlock(struct hca *hca);
/** In a forked child: forgets what the parent did. The lock is held. */
void key_book_forget(struct hca *hca);

#endif

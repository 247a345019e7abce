/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements the drawings of keys of softhca.h. */
#include "softhca.h"

#include <errno.h>
#include <stdlib.h>

#include "core/epoch.h"
#include "draw/book.h"
#include "draw/files.h"
#include "draw/svg.h"
#include "draw/text.h"
#include "mkey/key.h"
#include "verbs/object/objects.h"

/* Fills @picture with the key of @hca. Returns false if no such key exists. */
static bool picture_find_and_make(struct hca *hca, uint32_t number, struct picture *picture)
{
	struct key_uses uses;
	const struct mkey *key;

	epoch_enter();
	key = mkey_find(hca, number);
	if (key) {
		key_book_uses(key, &uses);
		picture_make(picture, key, &uses);
	}
	epoch_leave();
	return key;
}

static int mkey_draw(struct hca *hca, uint32_t key, enum softhca_drawing format, struct picture *picture,
		     struct drawing *drawing)
{
	bool found = hca && picture_find_and_make(hca, key, picture);

	for (size_t i = 0; !hca && !found && i < the_registry.count; i++)
		found = picture_find_and_make(&the_registry.devices[i], key, picture);
	if (!found)
		return ENOENT;
	if (format == SOFTHCA_DRAWING_SVG)
		picture_write_svg(picture, drawing);
	else
		picture_write_text(picture, drawing);
	return drawing->failed ? ENOMEM : 0;
}

int softhca_draw_mkey(struct ibv_context *context, uint32_t key, int fd, enum softhca_drawing format)
{
	struct drawing drawing = {.length = 0};
	struct picture *picture;
	int error;

	if (format != SOFTHCA_DRAWING_TEXT && format != SOFTHCA_DRAWING_SVG)
		return EINVAL;
	picture = malloc(sizeof(*picture));
	if (!picture)
		return ENOMEM;
	error = mkey_draw(context ? hca_of_context(context) : NULL, key, format, picture, &drawing);
	if (!error)
		error = -drawing_write(fd, drawing.bytes, drawing.length);
	free(picture);
	free(drawing.bytes);
	return error;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a picture as a self-contained file of SVG 1.1, for light and dark backgrounds. */
#ifndef SOFTHCA_DRAW_SVG_H
#define SOFTHCA_DRAW_SVG_H

#include "draw/text.h"

void picture_write_svg(const struct picture *picture, struct drawing *drawing);

#endif

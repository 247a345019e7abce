/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a picture as SVG 1.1: a self-contained file, readable on light and dark backgrounds. */
#ifndef SOFTHCA_DRAW_SVG_H
#define SOFTHCA_DRAW_SVG_H

#include "draw/text.h"

/** Writes @picture as an SVG document. */
void picture_write_svg(const struct picture *picture, struct drawing *drawing);

#endif

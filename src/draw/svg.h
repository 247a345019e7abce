/* SPDX-License-Identifier: BSD-2-Clause */
/* A picture as SVG 1.1: one file that needs no other, readable on light and on dark ground. */
#ifndef SOFTHCA_DRAW_SVG_H
#define SOFTHCA_DRAW_SVG_H

#include "draw/text.h"

/** Writes @picture as an SVG document. */
void picture_write_svg(const struct picture *picture, struct drawing *drawing);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cases that hold for a key whichever way it was laid out. They run on the sides and the pair of program.h, with the
 * key on the server; interleaved_scatters_and_gathers() needs INTERLEAVED_MEMORY on each side.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_LAYOUT_CASES_H
#define SOFTHCA_TESTS_API_SUPPORT_LAYOUT_CASES_H

#include "support/program.h"

enum { INTERLEAVED_MEMORY = 512 * 1024 };

void list_scatters_and_gathers(enum way way);
void list_offset_is_zero_based(enum way way);
/** Four entries in a WQE of default size, and no fifth. */
void list_entries_by_default(enum way way);
void list_entries_with_max_inline_data(enum way way);

void interleaved_scatters_and_gathers(enum way way);
void interleaved_repeat_count(enum way way);
/** Three entries in a WQE of default size, and no fourth. */
void interleaved_entries_by_default(enum way way);
void interleaved_entries_with_max_inline_data(enum way way);
void interleaved_header_takes_an_entry(enum way way);

#endif

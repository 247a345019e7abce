/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cases that apply to both ways of configuring a key. They run on the sides and the pair of program.h, with the key on
 * the server; check_interleaved_scatters_and_gathers() needs INTERLEAVED_MEMORY on each side.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_LAYOUT_CASES_H
#define SOFTHCA_TESTS_API_SUPPORT_LAYOUT_CASES_H

#include "support/program.h"

enum { INTERLEAVED_MEMORY = 512 * 1024 };

void check_list_scatters_and_gathers(enum way way);
void check_list_offset_is_zero_based(enum way way);
/** Checks that a WQE of default size holds four entries and no more. */
void check_list_entries_by_default(enum way way);
void check_list_entries_with_max_inline_data(enum way way);

void check_interleaved_scatters_and_gathers(enum way way);
void check_interleaved_repeat_count(enum way way);
/** Checks that a WQE of default size holds three entries and no more. */
void check_interleaved_entries_by_default(enum way way);
void check_interleaved_entries_with_max_inline_data(enum way way);
void check_interleaved_header_takes_an_entry(enum way way);

#endif

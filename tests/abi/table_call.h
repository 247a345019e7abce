/* SPDX-License-Identifier: BSD-2-Clause */
/* An argument list for tests that walk the tables: as many zeros as the table has names, up to 10. */
#ifndef SOFTHCA_TESTS_ABI_TABLE_CALL_H
#define SOFTHCA_TESTS_ABI_TABLE_CALL_H

#define ZEROS_0
#define ZEROS_1 0
#define ZEROS_2 ZEROS_1, 0
#define ZEROS_3 ZEROS_2, 0
#define ZEROS_4 ZEROS_3, 0
#define ZEROS_5 ZEROS_4, 0
#define ZEROS_6 ZEROS_5, 0
#define ZEROS_7 ZEROS_6, 0
#define ZEROS_8 ZEROS_7, 0
#define ZEROS_9 ZEROS_8, 0
#define ZEROS_10 ZEROS_9, 0
#define TABLE_PICK(nothing, a, b, c, d, e, f, g, h, i, j, zeros, ...) zeros
/* ZEROS (x, y) is 0, 0. */
#define ZEROS(...)                                                                                                     \
	TABLE_PICK(nothing, ##__VA_ARGS__, ZEROS_10, ZEROS_9, ZEROS_8, ZEROS_7, ZEROS_6, ZEROS_5, ZEROS_4, ZEROS_3,    \
		   ZEROS_2, ZEROS_1, ZEROS_0)

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the shm link (link/shm/shm.h) in beyond.def. Each case is a process of its own, to which it connects itself. */
#ifndef SOFTHCA_TESTS_EXPLAIN_BEYOND_SHM_H
#define SOFTHCA_TESTS_EXPLAIN_BEYOND_SHM_H

void case_SHM_RECORD(void **state);
void case_SHM_HEAD(void **state);
void case_SHM_PACKET(void **state);
void case_SHM_DROPPED(void **state);

#endif

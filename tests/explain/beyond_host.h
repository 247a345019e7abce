/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the host part (link/host/host.h) in beyond.def. Each case is a process of its own, with slots of its own. */
#ifndef SOFTHCA_TESTS_EXPLAIN_BEYOND_HOST_H
#define SOFTHCA_TESTS_EXPLAIN_BEYOND_HOST_H

void case_HOST_NO_SOCKET(void **state);
void case_HOST_NO_THREAD(void **state);
void case_HOST_OTHER_USER(void **state);
void case_HOST_NO_CONNECTION(void **state);
void case_HOST_HELLO_SHAPE(void **state);
void case_HOST_HELLO_VERSION(void **state);
void case_HOST_HELLO_SEALS(void **state);
void case_HOST_HELLO_MEMORY(void **state);
void case_HOST_STRANGERS(void **state);
void case_HOST_NOT_ACCEPTED(void **state);

#endif

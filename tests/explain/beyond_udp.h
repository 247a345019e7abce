/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the udp link (link/udp/udp.h) in beyond.def. Each case is a process of its own in a network of its own. */
#ifndef SOFTHCA_TESTS_EXPLAIN_BEYOND_UDP_H
#define SOFTHCA_TESTS_EXPLAIN_BEYOND_UDP_H

void case_UDP_PORT_TAKEN(void **state);
void case_UDP_PORT_TAKEN_UNSEEN(void **state);
void case_UDP_PORT_REFUSED(void **state);
void case_UDP_PORT_OTHER_USER(void **state);
void case_UDP_PORT_SILENT(void **state);
void case_UDP_PORT_NOT_GIVEN(void **state);
void case_UDP_PORT_KEPT(void **state);
void case_UDP_NOT_SENT(void **state);
void case_UDP_TOO_LONG(void **state);
void case_UDP_NO_ROOM(void **state);
void case_UDP_FAMILIES(void **state);
void case_UDP_NO_TRAINS(void **state);
void case_FRAME_IDENTIFICATION(void **state);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The link for QPs of this process. It queues the packet in the run. */
#ifndef SOFTHCA_LINK_LOCAL_LOCAL_H
#define SOFTHCA_LINK_LOCAL_LOCAL_H

struct link;

const struct link *link_local(void);

#endif

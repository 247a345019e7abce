/* SPDX-License-Identifier: BSD-2-Clause */
/* The local link: QPs of this process. The packet is queued in the run. */
#ifndef SOFTHCA_LINK_LOCAL_LOCAL_H
#define SOFTHCA_LINK_LOCAL_LOCAL_H

struct link;

const struct link *link_local(void);

#endif

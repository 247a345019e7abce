/* SPDX-License-Identifier: BSD-2-Clause */
/* Provider log: __verbs_log() of libibverbs. Any thread. */
#ifndef SOFTHCA_VERBS_OBJECT_LOG_H
#define SOFTHCA_VERBS_OBJECT_LOG_H

/** Reads VERBS_LOG_LEVEL and VERBS_LOG_FILE the first time. */
void verbs_log_open(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands for doorbell registers that programs write themselves; see process/commands.h. */
#ifndef SOFTHCA_PROGRESS_COMMANDS_H
#define SOFTHCA_PROGRESS_COMMANDS_H

struct hca;

/**
 * Registers @page (4096 bytes, an anonymous mapping that the driver owns and gives to programs as their doorbell registers): a
 * store to it can wake the device. Its content does not survive. Any thread.
 */
void hca_watch_page(struct hca *hca, void *page);

/** Turns @page back into ordinary memory. Any thread. */
void hca_unwatch_page(struct hca *hca, void *page);

#endif

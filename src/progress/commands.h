/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands for doorbell registers to which programs write themselves (process/commands.h). */
#ifndef SOFTHCA_PROGRESS_COMMANDS_H
#define SOFTHCA_PROGRESS_COMMANDS_H

struct hca;

/**
 * Registers @page (4096 bytes, an anonymous mapping owned by the driver) as doorbell registers of programs: a store to
 * it can wake the device. Its content is lost. Any thread may call.
 */
void hca_watch_page(struct hca *hca, void *page);

/** Turns @page back into ordinary memory. Any thread may call. */
void hca_unwatch_page(struct hca *hca, void *page);

#endif

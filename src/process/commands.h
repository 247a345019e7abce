/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's interface to the device: commands (create, modify, destroy …) and doorbells. All other information goes
 * through rings in genuine mlx5 format in memory that the driver owns (mlx5-formats 1 to 3).
 *
 * The driver creates and destroys objects through this header; the device owns their inner state. Destroy calls return
 * -EBUSY while another object refers to the object (a PD with keys, a CQ with QPs). The driver's ring memory must stay
 * valid until the destroy call has returned.
 *
 * Locks: every object has its own; commands and doorbells may be called from any thread. Callbacks (wr_id_of, those of
 * the resize commands) run under a lock of the device: they must not call commands or take locks.
 *
 * Errors: 0 or -errno. A refusal leaves an explanation record (explain/explain.h).
 */
#ifndef SOFTHCA_PROCESS_COMMANDS_H
#define SOFTHCA_PROCESS_COMMANDS_H

#include "block/commands.h"
#include "hca/commands.h"
#include "mkey/commands.h"
#include "progress/commands.h"
#include "queue/commands.h"
#include "transport/control/commands.h"

/**
 * Returns the number of devices of this process (SOFTHCA_DEVICES). The first call reads the settings and makes the
 * devices.
 */
size_t hca_count(void);

/** Returns device @index, or NULL. Devices live until the process ends. */
struct hca *hca_device(size_t index);

#endif

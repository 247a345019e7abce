/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's interface to the device: commands (create, modify, destroy …) and doorbells. Everything else goes
 * through rings in genuine mlx5 format in memory of the driver (mlx5-formats 1 to 3), which must stay valid until the
 * destroy call has returned.
 *
 * Destroy calls return -EBUSY while another object refers to the object (a PD with keys, a CQ with QPs).
 *
 * Locks: every object has its own; any thread may call. Callbacks (wr_id_of, those of the resize commands) run under a
 * lock of the device: they must not call commands or take locks.
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

/** Returns the number of devices (SOFTHCA_DEVICES). The first call reads the settings and makes them. */
size_t hca_count(void);

/** Returns device @index, or NULL. Devices live until the process ends. */
struct hca *hca_device(size_t index);

#endif

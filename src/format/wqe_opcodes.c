/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of send opcodes, from wqe_opcodes.def. */
#include "format/wqe.h"

#define RC WQE_RC
#define UC WQE_UC
#define UD WQE_UD
#define XRC WQE_XRC
#define DC WQE_DC

const struct wqe_opcode wqe_opcodes[256] = {
#define WQE_OPCODE(code, name, class, message, transports)                                                             \
	[code] = {#name, WQE_CLASS_##class, MESSAGE_##message, transports},
#include "format/wqe_opcodes.def"
#undef WQE_OPCODE
};

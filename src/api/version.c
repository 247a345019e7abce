/* SPDX-License-Identifier: BSD-2-Clause */
/* Version of the loaded library, which may differ from that of the header. */
#include "softhca.h"

const char *softhca_version(void)
{
	return SOFTHCA_VERSION;
}

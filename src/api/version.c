/* SPDX-License-Identifier: BSD-2-Clause */
/* The version of the library that is loaded, as opposed to the header a program was compiled with. */
#include "softhca.h"

const char *softhca_version(void)
{
	return SOFTHCA_VERSION;
}

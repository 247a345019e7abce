/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of errno values, for explanations. */
#ifndef SOFTHCA_CORE_ERROR_NAME_H
#define SOFTHCA_CORE_ERROR_NAME_H

/**
 * Returns the name of @error, such as "EINVAL" ("0" for 0), or NULL if it is not an errno value. Any thread may call.
 */
const char *error_name(int error);

#endif

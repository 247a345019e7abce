/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The picture of a timeline in `softhca report`: a lane for each queue of each process, in it a bar for each request from its post to
 * its completion, thinner until it was polled, red if it failed. Of long traces the first requests alone. One thread.
 */
#ifndef SOFTHCA_TOOL_REPORT_LANES_H
#define SOFTHCA_TOOL_REPORT_LANES_H

#include "tool/report_html.h"

struct lanes;

/** Ends the command without memory. The caller's, until lanes_put(). */
struct lanes *lanes_new(void);
/** @line of a trace: the beginning of a request, which has its end as figures, or anything else. */
void lanes_take(struct lanes *lanes, const char *line);
/** Writes the picture, a row of @section for each lane; nothing if there was no request. Frees @lanes. */
void lanes_put(struct lanes *lanes, struct section *section);

#endif

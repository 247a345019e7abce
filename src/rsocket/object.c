/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates and frees rsockets: see objects.h. */
#include <stdlib.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "progress/progress.h"
#include "rsocket/datagram.h"

struct rsocket *rsocket_new(int family, const struct rsocket_settings *settings)
{
	struct rsocket *rs = calloc(1, sizeof(*rs));

	if (!rs)
		return NULL;
	rs->fd = -1;
	rs->family = family;
	rs->settings = *settings;
	rs->references = 1;
	rs->process = progress_generation();
	pthread_mutex_init(&rs->lock, NULL);
	pthread_cond_init(&rs->wake_done, NULL);
	return rs;
}

void rsocket_free(struct rsocket *rs)
{
	/* In a forked child, other members of the parent's rsockets may be in any state. */
	if (rs->process != progress_generation()) {
		if (rs->stream.completions)
			descriptor_close(rs->stream.completions->fd);
		if (rs->datagram)
			datagram_forget(rs);
		close(rs->fd);
		return;
	}
	if (rs->datagram)
		datagram_close(rs);
	else
		stream_destroy(rs);
	pthread_cond_destroy(&rs->wake_done);
	pthread_mutex_destroy(&rs->lock);
	free(rs);
}

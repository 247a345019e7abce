/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Grants: what other processes may do in the memory of this one without asking it each time (link/shm/grants.c).
 * Whoever changes what a grant was made from, a key or a queue pair, takes all grants back: they are made anew by the next
 * request that comes the usual way.
 *
 * Of a key: out of reach, epoch_synchronize(), grants_revoke_and_drain(). Grants are made inside an epoch section, so none is made of it
 * after that. Of a queue pair: grants_revoke() under its lock, under which grants are made, and grants_revoke_and_drain() before the program is told.
 */
#ifndef SOFTHCA_HCA_GRANTS_H
#define SOFTHCA_HCA_GRANTS_H

struct grants {
	/* No access begins any more by a grant that was made before. Any thread, any locks. */
	void (*revoke)(void);
	/* Waits until all that began before that have ended. In no epoch section, no lock held that a poller takes. */
	void (*drain)(void);
};

/* Set before there is a link (process/devices.c). */
extern const struct grants *grants;

/** Takes all grants back. Any thread, any locks. */
static inline void grants_revoke(void)
{
	if (grants)
		grants->revoke();
}

/** The same, and returns when nobody makes use of them any more. In no epoch section, no lock held that a poller takes. */
static inline void grants_revoke_and_drain(void)
{
	grants_revoke();
	if (grants)
		grants->drain();
}

#endif

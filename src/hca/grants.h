/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Grants let other processes access the memory of this one without asking each time (link/shm/grants.c). A change to a
 * key or queue pair that a grant depends on revokes all of them. The next request sent as a packet leads to new ones.
 *
 * To revoke grants of a key: unpublish it, call epoch_synchronize(), then grants_revoke_and_drain(). Grants are made
 * inside an epoch section, so none follows for that key. To revoke grants of a queue pair: call grants_revoke() under
 * its lock, under which they are made, and grants_revoke_and_drain() before the program is notified.
 */
#ifndef SOFTHCA_HCA_GRANTS_H
#define SOFTHCA_HCA_GRANTS_H

struct grants {
	/* Prevents new accesses by earlier grants. Any thread may call, with any lock held. */
	void (*revoke)(void);
	/* Waits until earlier accesses have ended. Outside epoch sections, with no lock held that a poller takes. */
	void (*drain)(void);
};

/* Set before the first link exists (process/devices.c). */
extern const struct grants *grants;

static inline void grants_revoke(void)
{
	if (grants)
		grants->revoke();
}

/** Revokes all grants and waits until none is in use. Locks as for drain(). */
static inline void grants_revoke_and_drain(void)
{
	grants_revoke();
	if (grants)
		grants->drain();
}

#endif

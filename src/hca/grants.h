/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Grants: permissions for other processes to access the memory of this one without asking each time
 * (link/shm/grants.c). A change to a key or queue pair that a grant depends on revokes all grants; the next request
 * that is sent as a packet leads to new ones.
 *
 * To revoke grants of a key: unpublish it, call epoch_synchronize(), then grants_revoke_and_drain(). Grants are made
 * inside an epoch section, so none is made for the key after that. To revoke grants of a queue pair: call
 * grants_revoke() under its lock, under which grants are made, and grants_revoke_and_drain() before the program is
 * notified.
 */
#ifndef SOFTHCA_HCA_GRANTS_H
#define SOFTHCA_HCA_GRANTS_H

struct grants {
	/* Prevents new accesses based on earlier grants. Any thread may call, with any lock held. */
	void (*revoke)(void);
	/*
	 * Waits until all accesses that began earlier have ended. Outside epoch sections, with no lock held that a
	 * poller takes.
	 */
	void (*drain)(void);
};

/* Set before the first link exists (process/devices.c). */
extern const struct grants *grants;

/** Revokes all grants. Any thread may call, with any lock held. */
static inline void grants_revoke(void)
{
	if (grants)
		grants->revoke();
}

/**
 * Revokes all grants and waits until none is in use any more. Outside epoch sections, with no lock held that a poller
 * takes.
 */
static inline void grants_revoke_and_drain(void)
{
	grants_revoke();
	if (grants)
		grants->drain();
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Grants: permissions for other processes to access the memory of this one without asking each time
 * (link/shm/grants.c). A change to a key or queue pair that a grant depends on revokes all grants; the next request
 * that comes the usual way makes them anew.
 *
 * For a key: unpublish it, epoch_synchronize(), grants_revoke_and_drain(). Grants are made inside an epoch section, so
 * none is made for the key after that. For a queue pair: grants_revoke() under its lock, under which grants are made,
 * and grants_revoke_and_drain() before the program is notified.
 */
#ifndef SOFTHCA_HCA_GRANTS_H
#define SOFTHCA_HCA_GRANTS_H

struct grants {
	/* Keeps accesses based on earlier grants from starting. Any thread may call, with any lock held. */
	void (*revoke)(void);
	/*
	 * Waits until all accesses that began earlier have ended. In no epoch section, with no lock held that a poller
	 * takes.
	 */
	void (*drain)(void);
};

/* Set before there is a link (process/devices.c). */
extern const struct grants *grants;

/** Revokes all grants. Any thread may call, with any lock held. */
static inline void grants_revoke(void)
{
	if (grants)
		grants->revoke();
}

/**
 * Revokes all grants and waits until none is in use any more. In no epoch section, with no lock held that a poller
 * takes.
 */
static inline void grants_revoke_and_drain(void)
{
	grants_revoke();
	if (grants)
		grants->drain();
}

#endif

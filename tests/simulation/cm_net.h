/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Communication managers in simulated time, and the network between them, which loses, duplicates, delays and thus
 * reorders messages. A seed determines everything. One thread.
 */
#ifndef SOFTHCA_TESTS_SIMULATION_CM_NET_H
#define SOFTHCA_TESTS_SIMULATION_CM_NET_H

#include "../model/choose.h"
#include "cm/cm.h"

enum { HOSTS = 3, MS_OF_ACTIONS = 200000 };
#define MS UINT64_C(1000000)

struct weather {
	uint32_t loss, twice; /* of 1000 */
	uint32_t delay_ms;    /* at most */
};

/* A later action of a program: @action of the end with number @end. */
struct later {
	void (*action)(uint32_t end);
	uint32_t end;
};

struct host {
	struct cm *cm;
	union ibv_gid gid;
	uint64_t wakes_at_ns;
	bool in_handler;
};

struct net {
	uint64_t now_ns;
	struct choose random;
	struct weather weather;
	struct host hosts[HOSTS];
	uint32_t sent, lost;
};

extern struct net net;

/** Makes a new network of @seed; the program supplies @functions, except for those of the network. */
void net_begin(uint64_t seed, const struct cm_functions *functions);
/** Frees the managers. Fails if one still holds anything. */
void net_end(void);

uint64_t net_draw(void);
/** Returns a number below @limit. */
uint32_t net_below(uint32_t limit);

/** Schedules @action after a random time of at most @ms. */
void net_later(uint32_t ms, void (*action)(uint32_t end), uint32_t end);
/** Runs until @ns, or until nothing is in flight and nothing due. Returns true in that case. */
bool net_run_until(uint64_t ns);

/** Returns true if a message for communication id @id was lost that its sender does not repeat. */
bool net_lost_for(uint32_t comm_id);

/** Ends the program, printing the seed, unless @condition. */
#define MUST(condition) must(condition, __FILE__, __LINE__, #condition)
void must(bool condition, const char *file, int line, const char *text);

#endif

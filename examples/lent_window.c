/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A memory window, lent and revoked: the owner of a buffer lets a peer write to a part of it, and revokes the right.
 *
 *	softhca run -- lent_window
 *
 * Registering memory is slow, and its rkey is valid for all of it, for every connection of the protection domain, until it is
 * deregistered. A type 2 window differs: binding it to a part of a region, and invalidating it, are ordinary requests in the
 * send queue, and the window works only through the QP that bound it.
 *
 * The owner
 *   1. binds the window to the second KiB of its buffer, for remote writes,
 *   2. and sends its rkey to the peer, which writes through it;
 *   3. invalidates it: the peer's next WRITE is refused, and writes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { KIB = 1024, BUFFER = 4 * KIB };

struct owner {
	struct end end;
	struct ibv_mr *mr;
	struct ibv_mw *window;
	char buffer[BUFFER];
};

struct peer {
	struct end end;
	struct ibv_mr *mr;
	char letter[KIB];
};

static void lend(struct owner *owner, size_t offset, size_t length)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {.mw = owner->window,
			    /*
			  * The program chooses the low 8 bits of the rkey: each bind uses a new number, so that an rkey
			  * lent earlier does not become valid again.
			  */
			    .rkey = ibv_inc_rkey(owner->window->rkey),
			    .bind_info = {.mr = owner->mr,
					  .addr = (uintptr_t)owner->buffer + offset,
					  .length = length,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}},
	};

	end_post(&owner->end, &wr);
	end_wait_success(&owner->end, "binding the window");
	owner->window->rkey = wr.bind_mw.rkey;
}

static void revoke(struct owner *owner)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = owner->window->rkey};

	end_post(&owner->end, &wr);
	end_wait_success(&owner->end, "invalidating the window");
}

/* Writes a letter to @address of @rkey; returns the completion. @wr_id: any number that identifies the request. */
static struct ibv_wc write_letter(struct peer *peer, uint64_t wr_id, const char *text, uint64_t address, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)peer->letter, .length = KIB, .lkey = peer->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {address, rkey}};

	snprintf(peer->letter, sizeof(peer->letter), "%s", text);
	end_post(&peer->end, &wr);
	return end_wait(&peer->end);
}

static void open_both(struct owner *owner, struct peer *peer)
{
	end_open(&owner->end, 0);
	end_open(&peer->end, 0);
	end_connect(&owner->end, &peer->end);
	/* A region that windows may be bound to; windows with write access require that it is writable itself. The region
	 * grants no remote right: only the window does. */
	owner->mr = end_register(&owner->end, owner->buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	peer->mr = end_register(&peer->end, peer->letter, sizeof(peer->letter), 0);
	owner->window = ibv_alloc_mw(owner->end.pd, IBV_MW_TYPE_2);
	if (!owner->window)
		die_errno("ibv_alloc_mw");
}

static void close_both(struct owner *owner, struct peer *peer)
{
	ibv_dealloc_mw(owner->window);
	ibv_dereg_mr(owner->mr);
	ibv_dereg_mr(peer->mr);
	end_close(&owner->end);
	end_close(&peer->end);
}

int main(void)
{
	static struct owner owner;
	static struct peer peer;
	uint64_t address = (uintptr_t)owner.buffer + KIB;
	struct ibv_wc wc;
	uint32_t lent;

	open_both(&owner, &peer);

	lend(&owner, KIB, KIB);
	lent = owner.window->rkey;
	printf("lent: 1 KiB at offset 1 KiB, rkey 0x%x\n", lent);

	wc = write_letter(&peer, 1, "written through a window", address, lent);
	printf("first WRITE: %s; the buffer says \"%s\"\n", ibv_wc_status_str(wc.status), owner.buffer + KIB);
	if (wc.status != IBV_WC_SUCCESS || strcmp(owner.buffer + KIB, "written through a window") != 0)
		die("the WRITE should have succeeded");

	revoke(&owner);
	puts("revoked");

	wc = write_letter(&peer, 2, "written too late", address, lent);
	printf("second WRITE: %s (vendor_err %u); the buffer says \"%s\"\n", ibv_wc_status_str(wc.status),
	       wc.vendor_err, owner.buffer + KIB);
	if (wc.status != IBV_WC_REM_ACCESS_ERR || strcmp(owner.buffer + KIB, "written through a window") != 0)
		die("the WRITE should have been refused");

	close_both(&owner, &peer);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* How client and target find each other, see protocol.h. */
#include <endian.h>
#include <string.h>
#include <sys/socket.h>

#include "protocol.h"

static void send_all(int socket, const void *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t sent = send(socket, (const char *)bytes + done, length - done, MSG_NOSIGNAL);

		if (sent < 0)
			die_errno("sending to the peer");
		done += (size_t)sent;
	}
}

static void receive_all(int socket, void *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t received = recv(socket, (char *)bytes + done, length - done, 0);

		if (received < 0)
			die_errno("receiving from the peer");
		if (!received)
			die("the peer has gone");
		done += (size_t)received;
	}
}

void wait_for_peer(int socket)
{
	char word = '!';

	send_all(socket, &word, sizeof(word));
	receive_all(socket, &word, sizeof(word));
}

uint32_t meet(struct end *end, int socket, uint32_t blocks)
{
	struct end_address own = end_address(end), peer;
	struct hello mine = {.qp_num = htobe32(own.qp_num), .blocks = htobe32(blocks)}, theirs;

	memcpy(mine.gid, own.gid.raw, sizeof(mine.gid));
	send_all(socket, &mine, sizeof(mine));
	receive_all(socket, &theirs, sizeof(theirs));

	peer.qp_num = be32toh(theirs.qp_num);
	memcpy(peer.gid.raw, theirs.gid, sizeof(theirs.gid));
	end_connect_to(end, &peer);
	return be32toh(theirs.blocks);
}

void add_message(struct end *end, uint64_t wr_id, void *message, size_t length)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);

	qp->wr_id = wr_id;
	/* Signalled: what has been completed makes room in the queue. */
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, message, length);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of 8 bytes, see words.h. */
#include "support/words.h"

enum {
	WORD = 8,
	WORDS = 512, /* of each kind; then they are reused */
	SOURCES = 0,
	SINKS = WORDS * WORD,
	TARGETS = 2 * WORDS * WORD,
};

static size_t word_at(size_t area, uint64_t wr_id)
{
	return area + (size_t)(wr_id % WORDS) * WORD;
}

struct ibv_sge word_sink(const struct side *side, uint64_t wr_id)
{
	return side_sge(side, word_at(SINKS, wr_id), WORD);
}

/* Posts @wr over the word of its wr_id, and updates the copy at its destination. */
static void post_word(struct place place, struct endpoint *endpoint, struct ibv_send_wr wr, size_t target)
{
	size_t source = word_at(SOURCES, wr.wr_id);
	struct ibv_sge sge = side_sge(endpoint->side, source, WORD);

	wr.sg_list = &sge;
	wr.num_sge = 1;
	post_send_(place, endpoint, &wr);
	memcpy(endpoint->peer->side->expected + target, endpoint->side->expected + source, WORD);
}

void write_word_(struct place place, struct endpoint *endpoint, uint64_t wr_id)
{
	const struct side *peer = endpoint->peer->side;
	size_t target = word_at(TARGETS, wr_id);

	post_word(place, endpoint, rdma_wr(wr_id, IBV_WR_RDMA_WRITE, NULL, side_address(peer, target), peer->mr->rkey),
		  target);
}

void send_word_(struct place place, struct endpoint *endpoint, uint64_t wr_id, uint64_t receive_wr_id,
		unsigned int flags)
{
	post_word(place, endpoint,
		  (struct ibv_send_wr){.wr_id = wr_id, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED | flags},
		  word_at(SINKS, receive_wr_id));
}

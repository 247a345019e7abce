/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random small messages, valid and invalid, and everything a program observes: each completion, the states of the queue
 * pairs, every byte of memory. With OUTCOMES set, these results are written to the file of that name;
 * tests/tool/outcomes.py compares the results of different paths through the device.
 */
#include <inttypes.h>

#include "../model/choose.h"
#include "support/program.h"
#include "support/window.h"

enum {
	SEEDS = 400,
	BATCHES = 6,
	MOST_WRS = 8,
	MOST_SGES = 2,
	INLINE = 64,
	ZONE = 8192,
	BYTES = 3 * ZONE, /* of each side's memory, from its beginning */
	TARGETS = 6,
};

/*
 * The operation of a READ or atomic may execute before or after a later request without a fence (IBTA, table of work
 * request operation ordering), so each kind of request has its own zone of memory.
 */
enum zone {
	ZONE_WRITE, /* and of receives */
	ZONE_READ,
	ZONE_ATOMIC,
	ZONES
};

static FILE *outcomes;
static struct choose choose;

static uint32_t below(uint32_t bound)
{
	return (uint32_t)choose_below(&choose, bound);
}

static bool once_in(uint32_t times)
{
	return below(times) == 0;
}

#define ONE_OF(...) CHOOSE_OF(&choose, ((const uint32_t[]){__VA_ARGS__}))

/* The remote end of requests: a key and its addresses. */
struct target {
	uint32_t rkey;
	uint64_t address;
	uint32_t length;
};

static struct target targets[ZONES][TARGETS];
static uint32_t read_only_lkey;

static struct target target_of(const struct ibv_mr *mr)
{
	return (struct target){mr->rkey, (uintptr_t)mr->addr, (uint32_t)mr->length};
}

/*
 * Makes targets in each zone, with different rights, places and lengths. The last one is a window, which is bound anew
 * each time.
 */
static void make_targets(void)
{
	for (uint32_t zone = 0; zone < ZONES; zone++) {
		size_t start = zone * ZONE;
		struct ibv_mr *odd = ibv_reg_mr_iova(server.pd, server.memory + start + 4, 4096, 0x10000, SIDE_ACCESS);

		assert_non_null(odd);
		server.mrs[SIDE_OBJECTS - 1 - zone] = odd;
		targets[zone][0] = (struct target){server.mr->rkey, side_address(&server, start), ZONE};
		targets[zone][1] = target_of(side_register(&server, start + 4096, 3000, SIDE_ACCESS));
		targets[zone][2] = target_of(side_register(&server, start, 4096, IBV_ACCESS_REMOTE_READ));
		targets[zone][3] = target_of(
			side_register(&server, start + 512, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
		targets[zone][4] = (struct target){odd->rkey, 0x10000, 4096};
		side_alloc_mw(&server, IBV_MW_TYPE_1);
	}
	read_only_lkey = side_register(&client, 0, BYTES, 0)->lkey;
}

static void bind_windows(void)
{
	for (uint32_t zone = 0; zone < ZONES; zone++) {
		struct view window = bind_window(server.mws[zone], zone * ZONE + 2048, 2048,
						 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);

		targets[zone][TARGETS - 1] = (struct target){window.key, window.address, 2048};
	}
}

/* Returns the number of the target with @rkey, or -1. */
static int target_with(uint32_t rkey)
{
	for (int i = 0; i < ZONES * TARGETS; i++)
		if (targets[i / TARGETS][i % TARGETS].rkey == rkey)
			return i % TARGETS;
	return -1;
}

static void fill(struct side *side)
{
	for (size_t i = 0; i < BYTES; i += sizeof(uint64_t)) {
		uint64_t word = choose_bits(&choose);

		memcpy(side->memory + i, &word, sizeof(word));
	}
}

static uint64_t hash(const struct side *side)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < BYTES; i++)
		sum = (sum ^ side->memory[i]) * UINT64_C(0x100000001b3);
	return sum;
}

static void draw_sge(struct ibv_sge *sge, const struct side *side, enum zone zone, uint32_t length, uint32_t lkey)
{
	*sge = (struct ibv_sge){side_address(side, zone * ZONE + below(ZONE - length)), length, lkey};
}

static enum zone zone_of(enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		return ZONE_ATOMIC;
	return opcode == IBV_WR_RDMA_READ ? ZONE_READ : ZONE_WRITE;
}

/*
 * Returns false if no other request may follow: an error in scattering the response of a READ or atomic is found late,
 * when other requests are in flight.
 */
static bool draw_request(struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE,
					      IBV_WR_RDMA_WRITE,
					      IBV_WR_SEND,
					      IBV_WR_SEND,
					      IBV_WR_RDMA_READ,
					      IBV_WR_RDMA_READ,
					      IBV_WR_ATOMIC_FETCH_AND_ADD,
					      IBV_WR_ATOMIC_CMP_AND_SWP,
					      IBV_WR_RDMA_WRITE_WITH_IMM,
					      IBV_WR_SEND_WITH_IMM};
	enum zone zone;
	const struct target *target;
	uint32_t bytes = 0;
	bool atomic, good = true;

	*wr = (struct ibv_send_wr){
		.opcode = opcodes[below(10)], .sg_list = sge, .imm_data = (uint32_t)choose_bits(&choose)};
	zone = zone_of(wr->opcode);
	atomic = zone == ZONE_ATOMIC;
	target = &targets[zone][once_in(3) ? below(TARGETS) : 0];
	wr->num_sge = once_in(8) ? (int)below(MOST_SGES + 1) : 1;
	if (atomic)
		wr->num_sge = 1;
	for (int i = 0; i < wr->num_sge; i++) {
		uint32_t length = atomic ? 8 : ONE_OF(0, 1, 7, 8, 16, 63, 64, 100, 1000, 1024, 1025, 4096);
		uint32_t lkey = client.mr->lkey;

		/* All fit into a receive of 6000 bytes. */
		if (i && length > 1025)
			length = 1025;
		/* Not after pieces of a READ: whether they have been written by then is unspecified. */
		if (once_in(60) && (!i || zone == ZONE_WRITE))
			lkey = once_in(2) ? read_only_lkey : lkey + 1;
		good &= lkey == client.mr->lkey || zone == ZONE_WRITE;
		draw_sge(&sge[i], &client, zone, length, lkey);
		bytes += length;
	}
	if (once_in(3))
		wr->send_flags |= IBV_SEND_SIGNALED;
	if (once_in(8))
		wr->send_flags |= IBV_SEND_FENCE;
	if (once_in(8))
		wr->send_flags |= IBV_SEND_SOLICITED;
	if (zone == ZONE_WRITE && bytes <= INLINE && once_in(2))
		wr->send_flags |= IBV_SEND_INLINE;
	if (atomic) {
		wr->wr.atomic.rkey = target->rkey;
		wr->wr.atomic.remote_addr = target->address + 8 * below(target->length / 8 - 1) + (once_in(20) ? 4 : 0);
		wr->wr.atomic.compare_add = choose_bits(&choose);
		wr->wr.atomic.swap = choose_bits(&choose);
		return good;
	}
	wr->wr.rdma.rkey = target->rkey + once_in(80);
	wr->wr.rdma.remote_addr = target->address;
	if (target->length > bytes)
		wr->wr.rdma.remote_addr += below(target->length - bytes + 1) + once_in(60);
	return good;
}

static bool is_long_immediate(const struct ibv_send_wr *wr)
{
	uint32_t bytes = 0;

	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && bytes > 1024;
}

static void tell_request(const struct ibv_send_wr *wr)
{
	bool atomic = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	fprintf(outcomes, "%" PRIu64 ": opcode %d, flags %u, to target %d+%" PRIu64, wr->wr_id, (int)wr->opcode,
		wr->send_flags, target_with(atomic ? wr->wr.atomic.rkey : wr->wr.rdma.rkey),
		(atomic ? wr->wr.atomic.remote_addr : wr->wr.rdma.remote_addr) % 4096);
	for (int i = 0; i < wr->num_sge; i++)
		fprintf(outcomes, ", %u of %s+%zu", wr->sg_list[i].length,
			wr->sg_list[i].lkey == client.mr->lkey  ? "all"
			: wr->sg_list[i].lkey == read_only_lkey ? "readable"
								: "wrong",
			(size_t)(wr->sg_list[i].addr - side_address(&client, 0)));
	fputc('\n', outcomes);
}

static void tell(const char *what, const struct ibv_wc *wc)
{
	bool good = wc->status == IBV_WC_SUCCESS;

	fprintf(outcomes, "%s %" PRIu64 ": %s, opcode %d, %u bytes, flags %u, immediate %u\n", what, wc->wr_id,
		ibv_wc_status_str(wc->status), good ? (int)wc->opcode : 0,
		good && wc->opcode >= IBV_WC_RECV ? wc->byte_len : 0, good ? wc->wc_flags : 0,
		good && wc->wc_flags & IBV_WC_WITH_IMM ? wc->imm_data : 0);
}

static void tell_state(const char *name, const struct endpoint *endpoint)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(endpoint->qp, &attr, IBV_QP_STATE, &init), 0);
	fprintf(outcomes, "%s is in state %d\n", name, (int)attr.qp_state);
}

/*
 * Posts receives and requests; returns whether all succeeded. @receives: number of posted receives that have not
 * completed, updated.
 */
static bool batch(uint64_t *next_id, uint32_t *receives)
{
	struct ibv_sge sges[MOST_WRS][MOST_SGES], sink[MOST_SGES];
	struct ibv_send_wr wrs[MOST_WRS], *bad = NULL;
	uint32_t count = 1 + below(MOST_WRS), taken = 0, together = once_in(2);
	struct ibv_wc wc;
	bool good = true;

	for (uint32_t i = below(5); i && *receives < 16; i--, (*receives)++) {
		int pieces = (int)(once_in(4) ? below(MOST_SGES + 1) : 1);

		for (int k = 0; k < pieces; k++)
			draw_sge(&sink[k], &server, ZONE_WRITE, once_in(4) ? ONE_OF(0, 1, 64, 100) : 6000,
				 server.mr->lkey + once_in(60));
		fprintf(outcomes, "receive %" PRIu64 ": %u, %u\n", *next_id, pieces ? sink[0].length : 0,
			pieces > 1 ? sink[1].length : 0);
		post_receive(&pair.server, (*next_id)++, sink, pieces);
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!draw_request(&wrs[i], sges[i]))
			count = i + 1;
		wrs[i].wr_id = (*next_id)++;
		/*
		 * Requests without a receive end the pair, so they are rare. Whether the first packets of a longer
		 * message with an immediate have been written when the last one finds no receive is unspecified.
		 */
		if (wrs[i].opcode != IBV_WR_RDMA_WRITE && wrs[i].opcode != IBV_WR_RDMA_READ &&
		    wrs[i].opcode < IBV_WR_ATOMIC_CMP_AND_SWP && ++taken > *receives &&
		    (is_long_immediate(&wrs[i]) || !once_in(8))) {
			wrs[i].opcode = IBV_WR_RDMA_WRITE;
			wrs[i].wr.rdma.rkey = targets[ZONE_WRITE][0].rkey;
			wrs[i].wr.rdma.remote_addr = targets[ZONE_WRITE][0].address;
			taken--;
		}
		tell_request(&wrs[i]);
		if (i && together)
			wrs[i - 1].next = &wrs[i];
	}
	wrs[count - 1].send_flags |= IBV_SEND_SIGNALED;
	for (uint32_t i = 0; i < (together ? 1 : count); i++)
		fprintf(outcomes, "post: %d\n", ibv_post_send(pair.client.qp, &wrs[i], &bad));
	do {
		wc = next_completion(&pair.client);
		tell("request", &wc);
		good &= wc.status == IBV_WC_SUCCESS;
	} while (wc.wr_id != wrs[count - 1].wr_id);
	for (; good && taken; taken--, (*receives)--) {
		wc = next_completion(&pair.server);
		tell("receive", &wc);
	}
	return good;
}

/* Uses a new pair until a request fails, or for a few batches. */
static void outcomes_of(uint64_t seed)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	uint32_t receives = 0;
	uint64_t next_id = 0;
	bool good = true;
	struct ibv_wc wc;

	choose = (struct choose){seed};
	options.max_inline_data = INLINE;
	options.sq_sig_all = once_in(4);
	options.rnr_retry = 0;
	options.later_psn = once_in(8) ? 0xffffff - 3 : 0;
	options.access = once_in(8) ? IBV_ACCESS_REMOTE_WRITE : SIDE_REMOTE;
	pair_replace(&pair, &options);
	bind_windows();
	fill(&client);
	fill(&server);
	fprintf(outcomes, "seed %" PRIu64 "\n", seed);
	for (int i = 0; good && i < BATCHES; i++) {
		good = batch(&next_id, &receives);
		if (good)
			fprintf(outcomes, "memory %016" PRIx64 " %016" PRIx64 "\n", hash(&client), hash(&server));
	}
	tell_state("requester", &pair.client);
	tell_state("responder", &pair.server);
	if (ibv_modify_qp(pair.server.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE))
		fail_at(HERE, "a queue pair cannot fail");
	for (; receives; receives--) {
		wc = next_completion(&pair.server);
		tell("receive", &wc);
	}
	fprintf(outcomes, "in the end %016" PRIx64 " %016" PRIx64 "\n", hash(&client), hash(&server));
}

TEST(small_messages)
{
	const char *path = getenv("OUTCOMES");

	outcomes = fopen(path ? path : "/dev/null", "w");
	assert_non_null(outcomes);
	make_targets();
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		outcomes_of(seed);
	assert_int_equal(fclose(outcomes), 0);
	/* The copies do not contain these changes. */
	side_stir(&client);
	side_stir(&server);
}

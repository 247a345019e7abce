/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts, polls, and checks keys; see world.h. */
#include "world.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "../model/link.h"
#include "rings.h"
#include "test_clock.h"

enum { SECONDS = 20 };

int transport_of_step(const struct step *step)
{
	enum operation operation = step->operation;

	if (step->other)
		return OTHER_RC;
	if (operation == UD_SEND || operation == UD_SEND_IMM)
		return UD;
	return operation >= UC_SEND && operation <= UC_WRITE_IMM ? UC : RC;
}

int side_of(const struct step *step, int end)
{
	return (end == FROM) == step->back ? TARGET : SOURCE;
}

/* Returns the end that posts the request. */
static int poster(enum operation operation)
{
	return operation == READ ? TO : FROM;
}

bool is_local(enum operation operation, int end)
{
	return operation_is_send(operation) || (operation != MEMCPY && end == poster(operation));
}

static enum queue send_queue(int side)
{
	return side == SOURCE ? SOURCE_SEND : TARGET_SEND;
}

/* Return the queues of the side that a transfer comes from, or goes to. */
static enum queue send_queue_of(const struct step *step, int end)
{
	return send_queue(side_of(step, end)) + (step->other ? OTHER_PAIR : 0);
}

static enum queue receive_queue_of(const struct step *step, int end)
{
	return (side_of(step, end) == SOURCE ? SOURCE_RECEIVE : TARGET_RECEIVE) + (step->other ? OTHER_PAIR : 0);
}

/* Returns the send CQ of the WQE that found the error; or, if served for a peer, the receive CQ. */
enum queue queue_of_error(const struct step *step, int end)
{
	if (step->operation == MEMCPY)
		return send_queue_of(step, FROM);
	return end == poster(step->operation) ? send_queue_of(step, end) : receive_queue_of(step, end);
}

/* ---- expectations ---------------------------------------------------------------------------------------------- */

static void expect(struct world *world, enum queue queue, struct expectation expectation)
{
	if (world->expected_last[queue] - world->expected_first[queue] == EXPECTATIONS)
		world_fail("more than %d completions are expected", EXPECTATIONS);
	world->expected[queue][world->expected_last[queue]++ % EXPECTATIONS] = expectation;
}

/* Returns the result of ibv_poll_cq(3) for one completion, polled in either way. */
static int poll_one(struct world *world, enum queue queue, struct ibv_wc *wc)
{
	struct ibv_cq_ex *cq = world->cq[queue];
	struct ibv_poll_cq_attr attr = {0};
	int error;

	if (world->rings)
		return rings_poll(world, (int)queue, wc);
	if (!world->extended)
		return ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, wc);
	error = ibv_start_poll(cq, &attr);
	if (error)
		return error == ENOENT ? 0 : -error;
	*wc = (struct ibv_wc){.wr_id = cq->wr_id, .status = cq->status};
	if (wc->status) {
		wc->vendor_err = ibv_wc_read_vendor_err(cq);
	} else {
		wc->opcode = ibv_wc_read_opcode(cq);
		wc->byte_len = ibv_wc_read_byte_len(cq);
	}
	ibv_end_poll(cq);
	return 1;
}

static struct ibv_wc next_completion(struct world *world, enum queue queue, uint64_t id)
{
	struct ibv_wc wc;
	double end = 0;
	int got;

	for (uint32_t i = 0;; i++) {
		got = poll_one(world, queue, &wc);
		if (got == 1)
			return wc;
		if (got)
			world_fail("ibv_poll_cq: %d", got);
		if (link_wait() || i < 100)
			continue;
		if (!end)
			end = seconds_now() + SECONDS;
		if (seconds_now() > end)
			world_fail("no completion of request %lu in queue %d", id, queue);
	}
}

void world_settle(struct world *world, enum queue queue)
{
	while (world->expected_first[queue] != world->expected_last[queue]) {
		struct expectation *e = &world->expected[queue][world->expected_first[queue]++ % EXPECTATIONS];
		struct ibv_wc wc = next_completion(world, queue, e->id);

		if (wc.wr_id != e->id)
			world_fail("queue %d: completion of request %lu, not %lu (%s)", queue, wc.wr_id, e->id,
				   ibv_wc_status_str(wc.status));
		if (!(e->statuses >> wc.status & 1))
			world_fail("queue %d: request %lu ends with %s, vendor syndrome %u, not %s", queue, e->id,
				   ibv_wc_status_str(wc.status), wc.vendor_err,
				   ibv_wc_status_str((enum ibv_wc_status)__builtin_ctz(e->statuses)));
		if (wc.status)
			continue;
		if ((int)wc.opcode != e->opcode)
			world_fail("queue %d: request %lu: opcode %d, not %d", queue, e->id, wc.opcode, e->opcode);
		if (e->bytes && wc.byte_len != e->bytes)
			world_fail("queue %d: request %lu: %u bytes, not %u", queue, e->id, wc.byte_len, e->bytes);
	}
}

void world_expect_idle(struct world *world, enum queue queue)
{
	struct ibv_wc wc;
	int got;

	/* A poll may end at a SIG_ERR and return nothing; both keys can have one. */
	for (int i = 0; i < 3; i++) {
		got = poll_one(world, queue, &wc);
		if (got > 0)
			world_fail("queue %d: unexpected completion of request %lu: %s", queue, wc.wr_id,
				   ibv_wc_status_str(wc.status));
		if (got < 0)
			world_fail("ibv_poll_cq: %d", got);
	}
}

void world_drain(struct world *world)
{
	struct ibv_wc wc;

	while (link_progress())
		;
	for (int queue = 0; queue < QUEUES; queue++) {
		for (int idle = 0; idle < 3; idle++)
			while (poll_one(world, (enum queue)queue, &wc) > 0)
				;
		world->expected_first[queue] = world->expected_last[queue];
	}
}

int world_check(struct world *world, int side, const struct end *end, struct mlx5dv_mkey_err *error)
{
	if (world->rings)
		return rings_check(world, side, end, error);
	return mlx5dv_mkey_check(world->key[side][end->key], error);
}

/* ---- configuring ----------------------------------------------------------------------------------------------- */

static void set_list(struct mlx5dv_qp_ex *dv, const struct layout *layout, uint64_t base, uint32_t key,
		     const struct ibv_mr *plain)
{
	struct mlx5dv_mr_interleaved entry[PIECES];
	struct ibv_sge sge[PIECES];

	for (uint32_t i = 0; i < layout->count; i++) {
		const struct piece *piece = &layout->piece[i];
		uint64_t address = piece->plain ? (uintptr_t)plain->addr + piece->at : base + piece->at;
		uint32_t lkey = piece->plain ? plain->lkey : key;

		sge[i] = (struct ibv_sge){.addr = address, .length = piece->bytes, .lkey = lkey};
		entry[i] = (struct mlx5dv_mr_interleaved){
			.addr = address, .bytes_count = piece->bytes, .bytes_skip = piece->skip, .lkey = lkey};
	}
	if (layout->repeat)
		mlx5dv_wr_set_mkey_layout_interleaved(dv, layout->repeat, (uint16_t)layout->count, entry);
	else
		mlx5dv_wr_set_mkey_layout_list(dv, (uint16_t)layout->count, sge);
}

static enum mlx5dv_block_size block_size(uint32_t bytes)
{
	switch (bytes) {
	case 512:
		return MLX5DV_BLOCK_SIZE_512;
	case 520:
		return MLX5DV_BLOCK_SIZE_520;
	case 4048:
		return MLX5DV_BLOCK_SIZE_4048;
	case 4096:
		return MLX5DV_BLOCK_SIZE_4096;
	default:
		return MLX5DV_BLOCK_SIZE_4160;
	}
}

/* Structures referenced by mlx5dv_sig_block_domain. */
struct described {
	struct mlx5dv_sig_block_domain domain;
	struct mlx5dv_sig_t10dif t10;
	struct mlx5dv_sig_crc crc;
};

static const struct mlx5dv_sig_block_domain *describe(const struct domain *domain, struct described *to)
{
	static const enum mlx5dv_sig_crc_type crcs[GUARDS] = {
		[GUARD_CRC32] = MLX5DV_SIG_CRC_TYPE_CRC32,
		[GUARD_CRC32C] = MLX5DV_SIG_CRC_TYPE_CRC32C,
		[GUARD_CRC64] = MLX5DV_SIG_CRC_TYPE_CRC64_XP10,
	};

	if (domain->kind == KIND_NONE)
		return NULL;
	*to = (struct described){.domain = {.block_size = block_size(domain->block)}};
	if (domain->kind == KIND_CRC) {
		to->domain.sig_type = MLX5DV_SIG_TYPE_CRC;
		to->domain.sig.crc = &to->crc;
		to->crc.type = crcs[domain->guard];
		to->crc.seed = !domain->ones ? 0 : domain->guard == GUARD_CRC64 ? UINT64_MAX : UINT32_MAX;
		return &to->domain;
	}
	to->domain.sig_type = MLX5DV_SIG_TYPE_T10DIF;
	to->domain.sig.dif = &to->t10;
	to->t10 = (struct mlx5dv_sig_t10dif){
		.bg_type = domain->guard == GUARD_T10_CRC ? MLX5DV_SIG_T10DIF_CRC : MLX5DV_SIG_T10DIF_CSUM,
		.bg = domain->ones ? 0xffff : 0,
		.app_tag = domain->app,
		.ref_tag = domain->ref,
		.flags = (uint16_t)((domain->remap ? MLX5DV_SIG_T10DIF_FLAG_REF_REMAP : 0) |
				    (domain->app_escape ? MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE : 0) |
				    (domain->app_ref_escape ? MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE : 0)),
	};
	return &to->domain;
}

static void set_signature(struct mlx5dv_qp_ex *dv, const struct signature *signature)
{
	struct described memory, wire;
	struct mlx5dv_sig_block_attr attr = {
		.mem = describe(&signature->memory, &memory),
		.wire = describe(&signature->wire, &wire),
		.flags = signature->has_copy ? MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK : 0,
		.check_mask = signature->check,
		.copy_mask = signature->copy,
	};

	mlx5dv_wr_set_mkey_sig_block(dv, &attr);
}

/* Moves the request that verbs composed to the tested ring, if there are rings. */
static void composed(struct world *world, int transport, int side, uint64_t id)
{
	if (world->rings)
		rings_post(world, transport, side, id);
}

static int give_receive(struct world *world, int transport, int side, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	if (!world->rings)
		return ibv_post_recv(world->qp[transport][side].qp, wr, &bad);
	rings_receive(world, transport, side, wr);
	return 0;
}

static void complete_configuration(struct world *world, int side, uint64_t id, bool signalled)
{
	int error = ibv_wr_complete(world->qp[RC][side].ex);

	if (error)
		world_fail("configuring a key of side %d: %s", side, strerror(error));
	composed(world, RC, side, id);
	if (!signalled)
		return;
	expect(world, send_queue(side),
	       (struct expectation){.id = id, .statuses = 1u << IBV_WC_SUCCESS, .opcode = (int)IBV_WC_DRIVER1});
}

static uint64_t start_configuration(struct world *world, int side, bool signalled)
{
	struct ibv_qp_ex *ex = world->qp[RC][side].ex;

	ibv_wr_start(ex);
	ex->wr_id = world->next_id++;
	ex->wr_flags = IBV_SEND_INLINE | (signalled ? (unsigned int)IBV_SEND_SIGNALED : 0);
	return ex->wr_id;
}

static void configure_plain(struct world *world, int side, struct mlx5dv_mkey *mkey, const struct layout *layout,
			    uint64_t base, uint32_t key)
{
	struct mlx5dv_qp_ex *dv = world->qp[RC][side].dv;
	struct mlx5dv_mkey_conf_attr attr = {0};
	uint64_t id = start_configuration(world, side, true);

	mlx5dv_wr_mkey_configure(dv, mkey, 2, &attr);
	mlx5dv_wr_set_mkey_access_flags(dv, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	set_list(dv, layout, base, key, world->mr[side]);
	complete_configuration(world, side, id, true);
}

void world_surround(struct world *world, int side, const struct end *end)
{
	const struct ibv_mr *mr = world->mr[side];

	if (end->under.count)
		configure_plain(world, side, world->under[side], &end->under, (uintptr_t)mr->addr, mr->lkey);
	if (end->over.count)
		configure_plain(world, side, world->over[side], &end->over, 0, world->key[side][end->key]->lkey);
}

static void invalidate(struct world *world, int side, uint32_t key)
{
	struct ibv_qp_ex *ex = world->qp[RC][side].ex;

	ex->wr_id = world->next_id++;
	ex->wr_flags = 0;
	ibv_wr_local_inv(ex, key);
}

void world_configure(struct world *world, int side, const struct end *end, const char *letters)
{
	const struct layout other = {.count = 1, .piece = {{.at = PLAIN_START, .bytes = OTHER_LAYOUT_BYTES}}};
	struct mlx5dv_mkey_conf_attr attr = {
		.conf_flags = strchr(letters, 'r') ? (uint32_t)MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR : 0};
	bool lays = strpbrk(letters, "lk"), signs = strpbrk(letters, "sj"), rights = strchr(letters, 'a');
	bool signalled = !strchr(letters, 'u');
	struct mlx5dv_qp_ex *dv = world->qp[RC][side].dv;
	struct mlx5dv_mkey *mkey = world->key[side][end->key];
	const struct ibv_mr *mr = world->mr[side];
	uint64_t id = start_configuration(world, side, signalled);

	if (world->rings)
		rings_configure(world, side, end, letters);
	if (strchr(letters, 'i')) {
		unsigned int flags = world->qp[RC][side].ex->wr_flags;

		invalidate(world, side, mkey->rkey);
		world->qp[RC][side].ex->wr_id = id;
		world->qp[RC][side].ex->wr_flags = flags;
	}
	mlx5dv_wr_mkey_configure(dv, mkey, (uint8_t)(lays + signs + rights), &attr);
	/* Setters may come in any order. */
	for (const char *letter = letters; *letter; letter++) {
		if (*letter == 'a')
			mlx5dv_wr_set_mkey_access_flags(dv, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
								    IBV_ACCESS_REMOTE_WRITE);
		else if (*letter == 'k')
			set_list(dv, &other, (uintptr_t)mr->addr, mr->lkey, mr);
		else if (*letter == 'l' && end->under.count)
			set_list(dv, &end->layout, 0, world->under[side]->lkey, mr);
		else if (*letter == 'l')
			set_list(dv, &end->layout, (uintptr_t)mr->addr, mr->lkey, mr);
		else if (*letter == 's' || *letter == 'j')
			set_signature(dv, *letter == 's' ? &end->signature : &other_signature);
	}
	complete_configuration(world, side, id, signalled);
}

/* ---- transferring ---------------------------------------------------------------------------------------------- */

struct transfer {
	struct world *world;
	const struct test_case *test_case;
	const struct step *step;
	uint64_t id; /* of the request, and of its receive */
	uint32_t bytes;
};

static const struct end *end_of(const struct transfer *t, int side)
{
	return side == SOURCE ? &t->test_case->source : &t->test_case->target;
}

static uint32_t key_of(const struct transfer *t, int side)
{
	const struct end *end = end_of(t, side);

	if (!end->is_key)
		return t->world->mr[side]->lkey;
	return end->over.count ? t->world->over[side]->lkey : t->world->key[side][end->key]->lkey;
}

static uint64_t address_of(const struct transfer *t, int side)
{
	const struct end *end = end_of(t, side);

	if (end->is_key)
		return t->step->start;
	return (uintptr_t)t->world->memory[side] + PLAIN_START + end->plain + t->step->start;
}

static int fill_sges(const struct transfer *t, int side, struct ibv_sge *sge)
{
	uint32_t header = end_of(t, side)->is_key ? t->test_case->header : 0, length = t->bytes - header;
	uint32_t cut = t->step->cut, lkey = key_of(t, side);
	uint64_t address = address_of(t, side);
	int count = 0;

	if (header)
		sge[count++] = (struct ibv_sge){
			.addr = (uintptr_t)t->world->memory[side], .length = header, .lkey = t->world->mr[side]->lkey};
	if (cut && cut < length) {
		sge[count++] = (struct ibv_sge){.addr = address, .length = cut, .lkey = lkey};
		address += cut;
		length -= cut;
	}
	sge[count++] = (struct ibv_sge){.addr = address, .length = length, .lkey = lkey};
	return count;
}

static void post_receive(const struct transfer *t)
{
	int side = side_of(t->step, TO);
	struct ibv_sge sge[5];
	struct ibv_recv_wr wr = {.wr_id = t->id, .sg_list = sge};
	int transport = transport_of_step(t->step), error;

	if (transport == UD)
		sge[wr.num_sge++] = (struct ibv_sge){
			.addr = (uintptr_t)t->world->grh, .length = GRH_BYTES, .lkey = t->world->grh_mr->lkey};
	if (operation_is_send(t->step->operation))
		wr.num_sge += fill_sges(t, side, sge + wr.num_sge);
	error = give_receive(t->world, transport, side, &wr);
	if (error)
		world_fail("ibv_post_recv: %s", strerror(error));
}

static void post_send(const struct transfer *t, int side, enum ibv_wr_opcode opcode)
{
	int transport = transport_of_step(t->step), error;
	struct real_qp *real = &t->world->qp[transport][side];
	struct ibv_sge sge[4];
	struct ibv_send_wr wr = {.wr_id = t->id, .sg_list = sge, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.num_sge = fill_sges(t, side, sge);
	wr.imm_data = (uint32_t)t->id;
	if (transport == UD) {
		wr.wr.ud.ah = real->ah;
		wr.wr.ud.remote_qpn = t->world->rings ? rings_number(t->world, transport, !side)
						      : t->world->qp[transport][!side].qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		wr.wr.rdma.remote_addr = address_of(t, !side);
		wr.wr.rdma.rkey = key_of(t, !side);
	}
	error = ibv_post_send(real->qp, &wr, &bad);
	if (error)
		world_fail("ibv_post_send: %s", strerror(error));
	composed(t->world, transport, side, t->id);
}

static void post_memcpy(const struct transfer *t)
{
	int from = side_of(t->step, FROM), error;
	struct real_qp *real = &t->world->qp[RC][from];

	ibv_wr_start(real->ex);
	real->ex->wr_id = t->id;
	real->ex->wr_flags = IBV_SEND_SIGNALED;
	mlx5dv_wr_memcpy(real->dv, key_of(t, !from), address_of(t, !from), key_of(t, from), address_of(t, from),
			 t->bytes);
	error = ibv_wr_complete(real->ex);
	if (error)
		world_fail("memcpy: %s", strerror(error));
	composed(t->world, RC, from, t->id);
}

static const struct {
	enum ibv_wr_opcode opcode;
	int completion;
} requests[OPERATIONS] = {
	[SEND] = {IBV_WR_SEND, IBV_WC_SEND},
	[SEND_IMM] = {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
	[WRITE] = {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
	[WRITE_IMM] = {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
	[READ] = {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
	[MEMCPY] = {0, MLX5DV_WC_MEMCPY},
	[UC_SEND] = {IBV_WR_SEND, IBV_WC_SEND},
	[UC_SEND_IMM] = {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
	[UC_WRITE] = {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
	[UC_WRITE_IMM] = {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
	[UD_SEND] = {IBV_WR_SEND, IBV_WC_SEND},
	[UD_SEND_IMM] = {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
};

/* Returns the status of the request, or that of the receive, or IBV_WC_SUCCESS if it does not complete. */
static enum ibv_wc_status status_of(enum operation operation, enum ending ending)
{
	if (ending == ENDS_WELL)
		return IBV_WC_SUCCESS;
	if (operation == MEMCPY || (ending == FROM_REFUSES ? FROM : TO) == poster(operation))
		return IBV_WC_LOC_PROT_ERR;
	return operation_is_send(operation) ? IBV_WC_REM_OP_ERR : IBV_WC_REM_ACCESS_ERR;
}

static void expect_ends(const struct transfer *t, enum ending ending)
{
	enum operation operation = t->step->operation;
	bool receives = operation_is_send(operation) || operation_has_immediate(operation);
	struct expectation expectation = {
		.id = t->id,
		.statuses = 1u << status_of(operation, ending),
		.opcode = requests[operation].completion,
		.bytes = operation == READ ? t->bytes : 0,
	};

	expect(t->world, send_queue_of(t->step, poster(operation)), expectation);
	if (!receives || (ending != ENDS_WELL && !operation_is_send(operation)) || ending == FROM_REFUSES)
		return;
	expectation.statuses = 1u << (ending == ENDS_WELL ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
	expectation.opcode = operation_is_send(operation) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
	expectation.bytes = t->bytes + (transport_of_step(t->step) == UD ? GRH_BYTES : 0);
	expect(t->world, receive_queue_of(t->step, TO), expectation);
}

/*
 * A WRITE of UC has no completion at the target: an empty message after it shows that it has arrived, with the errors it
 * found.
 */
static void follow(struct world *world, const struct step *step)
{
	uint64_t id = world->next_id++;
	struct ibv_recv_wr receive = {.wr_id = id};
	struct ibv_send_wr send = {.wr_id = id, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad_send;
	int error;

	expect(world, send_queue_of(step, FROM), (struct expectation){id, 1u << IBV_WC_SUCCESS, IBV_WC_SEND, 0});
	expect(world, receive_queue_of(step, TO), (struct expectation){id, 1u << IBV_WC_SUCCESS, IBV_WC_RECV, 0});
	error = give_receive(world, UC, side_of(step, TO), &receive);
	if (!error)
		error = ibv_post_send(world->qp[UC][side_of(step, FROM)].qp, &send, &bad_send);
	if (error)
		world_fail("following a WRITE: %s", strerror(error));
	composed(world, UC, side_of(step, FROM), id);
}

void world_transfer(struct world *world, const struct test_case *test_case, const struct step *step, enum ending ending)
{
	struct transfer t = {world, test_case, step, world->next_id++, test_case->header + step->length};
	enum operation operation = step->operation;

	expect_ends(&t, ending);
	if (operation == MEMCPY) {
		post_memcpy(&t);
		return;
	}
	if (operation_is_send(operation) || operation_has_immediate(operation))
		post_receive(&t);
	post_send(&t, side_of(step, poster(operation)), requests[operation].opcode);
	if (operation != UC_WRITE || ending != ENDS_WELL || !link_in_real_time())
		return;
	/* Another message would report errors found by this one, in profile connectx. */
	if (world->connectx)
		world->unfollowed = true;
	else
		follow(world, step);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket and the QP of datagrams, see datagram.h. */
#include "rsocket/datagram.h"
#include "core/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "rdmacm/devices.h"
#include "rdmacm/sockaddr.h"

int datagram_open(struct rsocket *rs)
{
	struct datagram *datagram;
	int count = devices_open();

	if (count <= 0)
		return count ? count : -ENODEV;
	datagram = calloc(1, sizeof(*datagram));
	if (!datagram)
		return -ENOMEM;
	datagram->last = &datagram->first;
	datagram->wake_fd = descriptor_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	rs->datagram = datagram;
	rs->fd = socket(rs->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return rs->fd < 0 || datagram->wake_fd < 0 ? -errno : 0;
}

static int datagram_qp_change_state(struct ibv_qp *qp, enum ibv_qp_state state, int more)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1, .qkey = RDMA_UDP_QKEY};

	return -softhca_ibv_modify_qp(qp, &attr, IBV_QP_STATE | more);
}

static int datagram_make_queues(struct rsocket *rs)
{
	struct datagram *datagram = rs->datagram;
	struct ibv_context *context = datagram->device->context;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD,
					.sq_sig_all = 1,
					.cap = {.max_send_wr = datagram->send_slots,
						.max_recv_wr = datagram->receive_slots,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	int error;

	datagram->completions = softhca_ibv_create_comp_channel(context);
	if (!datagram->completions)
		return -errno;
	if (fcntl(datagram->completions->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	datagram->cq = softhca_ibv_create_cq(context, (int)(datagram->send_slots + datagram->receive_slots), rs,
					     datagram->completions, 0);
	if (!datagram->cq)
		return -errno;
	attr.send_cq = datagram->cq;
	attr.recv_cq = datagram->cq;
	datagram->qp = softhca_ibv_create_qp(datagram->device->pd, &attr);
	if (!datagram->qp)
		return -errno;
	error = datagram_qp_change_state(datagram->qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	if (!error)
		error = datagram_qp_change_state(datagram->qp, IBV_QPS_RTR, 0);
	return error ? error : datagram_qp_change_state(datagram->qp, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

static int datagram_make_memory(struct rsocket *rs)
{
	struct datagram *datagram = rs->datagram;
	size_t bytes = (size_t)(datagram->receive_slots + datagram->send_slots) * datagram->slot_bytes;
	uint32_t slot;
	int error = 0;

	datagram->memory = calloc(1, bytes);
	if (!datagram->memory)
		return -ENOMEM;
	datagram->mr = softhca_ibv_reg_mr(datagram->device->pd, datagram->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!datagram->mr)
		return -errno;
	for (slot = 0; slot < datagram->receive_slots && !error; slot++)
		error = datagram_post_receive(rs, slot);
	return error;
}

static void datagram_free_queues(struct datagram *datagram)
{
	if (datagram->qp)
		softhca_ibv_destroy_qp(datagram->qp);
	if (datagram->cq) {
		softhca_ibv_ack_cq_events(datagram->cq, datagram->events_taken);
		softhca_ibv_destroy_cq(datagram->cq);
	}
	if (datagram->completions)
		softhca_ibv_destroy_comp_channel(datagram->completions);
	if (datagram->mr)
		softhca_ibv_dereg_mr(datagram->mr);
	free(datagram->memory);
	datagram->qp = NULL;
	datagram->cq = NULL;
	datagram->completions = NULL;
	datagram->mr = NULL;
	datagram->memory = NULL;
	datagram->device = NULL;
}

/* Uses the device with the socket's address or, if that is unspecified, the first with one of its family. */
static int datagram_make_bound_qp(struct rsocket *rs)
{
	struct datagram *datagram = rs->datagram;
	struct sockaddr_storage own;
	socklen_t length = sizeof(own);
	struct ibv_port_attr port;
	int error;

	if (datagram->device)
		return 0;
	if (getsockname(rs->fd, (struct sockaddr *)&own, &length))
		return -errno;
	datagram->device = device_of_address((struct sockaddr *)&own, &datagram->sgid_index);
	if (!datagram->device)
		datagram->device = device_of_host(rs->family, &datagram->sgid_index);
	/* Peers of an AF_INET6 socket may have IPv4 addresses only. */
	if (!datagram->device && rs->family == AF_INET6)
		datagram->device = device_of_host(AF_INET, &datagram->sgid_index);
	if (!datagram->device)
		return -ENODEV;
	datagram->port = address_port((struct sockaddr *)&own);
	if (softhca_ibv_query_port(datagram->device->context, 1, (struct _compat_ibv_port_attr *)&port)) {
		datagram->device = NULL;
		return -ENODEV;
	}
	/* active_mtu is an enum: 1 means 256 bytes. */
	datagram->mtu = 128u << port.active_mtu;
	datagram->slot_bytes = datagram->mtu + DATAGRAM_GRH;
	datagram->receive_slots = rs->settings.receive_entries;
	datagram->send_slots = rs->settings.send_entries;
	datagram->sends_free = datagram->send_slots;
	error = datagram_make_queues(rs);
	if (!error)
		error = datagram_make_memory(rs);
	if (error)
		datagram_free_queues(datagram);
	return error;
}

int datagram_post_receive(struct rsocket *rs, uint32_t slot)
{
	struct datagram *datagram = rs->datagram;
	struct ibv_sge sge = {.addr = (uintptr_t)datagram_slot(datagram, slot),
			      .length = datagram->slot_bytes,
			      .lkey = datagram->mr->lkey};
	struct ibv_recv_wr receive = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	return -ibv_post_recv(datagram->qp, &receive, &bad);
}

/* Binds a socket without a port, because replies and headers need one. */
int datagram_make_qp(struct rsocket *rs)
{
	struct sockaddr_storage own;
	socklen_t length = sizeof(own);

	if (getsockname(rs->fd, (struct sockaddr *)&own, &length))
		return -errno;
	if (!address_port((struct sockaddr *)&own) && bind(rs->fd, (struct sockaddr *)&own, length))
		return -errno;
	return datagram_make_bound_qp(rs);
}

int datagram_bind(struct rsocket *rs, const struct sockaddr *address, socklen_t length)
{
	if (bind(rs->fd, address, length))
		return -errno;
	return datagram_make_bound_qp(rs);
}

int datagram_connect(struct rsocket *rs, const struct sockaddr *address, socklen_t length)
{
	struct sockaddr_storage to;
	struct datagram_peer *peer;

	if (!address || length < sizeof(sa_family_t) || !address_size(address) || length < address_size(address))
		return -REFUSE(hca_of_id(NULL), "rconnect", EINVAL, RULE_RSOCKET_ADDRESS, length,
			       address && length >= sizeof(sa_family_t) ? address->sa_family : 0);
	if (connect(rs->fd, address, length))
		return -errno;
	address_copy(&to, address);
	peer = datagram_map(rs, &to) ? datagram_peer_at(rs, (struct sockaddr *)&to) : NULL;
	if (!peer)
		return -ENOMEM;
	rs->datagram->connected = peer;
	return datagram_make_bound_qp(rs);
}

void datagram_close(struct rsocket *rs)
{
	struct datagram *datagram = rs->datagram;

	if (datagram->device) {
		datagram_free_peers(rs);
		datagram_free_queues(datagram);
	}
	datagram_free_peers(rs);
	while (datagram->first) {
		struct datagram_arrived *arrived = datagram->first;

		datagram->first = arrived->next;
		free(arrived);
	}
	descriptor_close(datagram->wake_fd);
	if (rs->fd >= 0)
		close(rs->fd);
	free(datagram);
	rs->datagram = NULL;
}

void datagram_forget(struct rsocket *rs)
{
	if (rs->datagram->completions)
		descriptor_close(rs->datagram->completions->fd);
	descriptor_close(rs->datagram->wake_fd);
}

uint32_t datagram_descriptors(struct rsocket *rs, struct pollfd *descriptors)
{
	struct datagram *datagram = rs->datagram;

	descriptors[0] = (struct pollfd){.fd = rs->fd, .events = POLLIN};
	descriptors[1] =
		(struct pollfd){.fd = datagram->completions ? datagram->completions->fd : -1, .events = POLLIN};
	descriptors[2] = (struct pollfd){.fd = datagram->wake_fd, .events = POLLIN};
	return 3;
}

void datagram_woken(struct rsocket *rs)
{
	uint64_t count;

	while (read(rs->datagram->wake_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

void datagram_notified(struct rsocket *rs)
{
	struct datagram *datagram = rs->datagram;
	struct ibv_cq *cq;
	void *context;

	if (!datagram->completions || softhca_ibv_get_cq_event(datagram->completions, &cq, &context))
		return;
	datagram->armed = false;
	datagram->events_taken++;
}

bool datagram_arm(struct rsocket *rs)
{
	struct datagram *datagram = rs->datagram;

	if (!datagram->cq || datagram->armed)
		return false;
	datagram->armed = !ibv_req_notify_cq(datagram->cq, 0);
	return true;
}

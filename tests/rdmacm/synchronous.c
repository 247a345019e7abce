/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ids without a channel (rdma_create_id(3)), rdma_create_ep(3), rdma_get_request(3), rdma_destroy_ep(3): the calls block until
 * done. Two threads, as in rdma_client(1) and rdma_server(1). Expected behaviour: rdma-cm 2.3.
 */
#include "support.h"

#include <pthread.h>

static struct ibv_qp_init_attr attributes(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}, .sq_sig_all = 1};
}

struct server {
	struct rdma_cm_id *listener;
	bool rejects;
	pthread_t thread;
	bool good;
};

static bool serve(struct server *server)
{
	char *memory = calloc(1, 64);
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	bool good;

	if (rdma_get_request(server->listener, &id))
		return false;
	good = id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST && id->channel != server->listener->channel;
	good &= id->event->param.conn.private_data_len == 56;
	if (server->rejects) {
		good &= !rdma_reject(id, NULL, 0);
		rdma_destroy_ep(id);
		free(memory);
		return good;
	}
	/* The QP exists, created from the listener's attributes. */
	mr = rdma_reg_msgs(id, memory, 64);
	good &= mr && !rdma_post_recv(id, NULL, memory, 64, mr);
	good &= !rdma_accept(id, NULL) && id->event->event == RDMA_CM_EVENT_ESTABLISHED;
	good &= rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS && !strcmp(memory, "question");
	strcpy(memory, "answer");
	good &= !rdma_post_send(id, NULL, memory, 64, mr, 0) && rdma_get_send_comp(id, &wc) == 1;
	good &= !rdma_disconnect(id) && id->event->event == RDMA_CM_EVENT_DISCONNECTED;
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	free(memory);
	return good;
}

static void *run(void *argument)
{
	struct server *server = argument;

	server->good = serve(server);
	return NULL;
}

static void begin_server(struct server *server, bool rejects)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *found;
	struct ibv_qp_init_attr attr = attributes();

	assert_success(rdma_getaddrinfo("127.0.0.1", NULL, &hints, &found));
	server->rejects = rejects;
	assert_success(rdma_create_ep(&server->listener, found, NULL, &attr));
	rdma_freeaddrinfo(found);
	assert_success(rdma_listen(server->listener, 0));
	assert_int_equal(pthread_create(&server->thread, NULL, run, server), 0);
}

static void end_server(struct server *server)
{
	assert_int_equal(pthread_join(server->thread, NULL), 0);
	assert_true(server->good);
	rdma_destroy_ep(server->listener);
}

static struct rdma_cm_id *new_client(const struct server *server)
{
	struct ibv_qp_init_attr attr = attributes();
	struct rdma_addrinfo *found;
	struct rdma_cm_id *id;
	char port[8];

	snprintf(port, sizeof(port), "%u", port_of(server->listener));
	assert_success(rdma_getaddrinfo("127.0.0.1", port, NULL, &found));
	assert_success(rdma_create_ep(&id, found, NULL, &attr));
	rdma_freeaddrinfo(found);
	assert_non_null(id->qp);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

TEST(test_exchange)
{
	struct server server;
	struct rdma_cm_id *id;
	char *memory = calloc(2, 64);
	struct ibv_mr *mr;
	struct ibv_wc wc;

	begin_server(&server, false);
	id = new_client(&server);
	strcpy(memory, "question");
	mr = rdma_reg_msgs(id, memory, 128);
	assert_non_null(mr);
	assert_success(rdma_post_recv(id, NULL, memory + 64, 64, mr));
	assert_success(rdma_connect(id, NULL));
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	assert_success(rdma_post_send(id, NULL, memory, 64, mr, 0));
	assert_int_equal(rdma_get_send_comp(id, &wc), 1);
	assert_int_equal(rdma_get_recv_comp(id, &wc), 1);
	assert_string_equal(memory + 64, "answer");
	assert_success(rdma_disconnect(id));
	assert_int_equal(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
	assert_success(rdma_dereg_mr(mr));
	rdma_destroy_ep(id);
	end_server(&server);
	free(memory);
}

TEST(test_rejected)
{
	struct server server;
	struct rdma_cm_id *id;

	begin_server(&server, true);
	id = new_client(&server);
	assert_errno(rdma_connect(id, NULL), ECONNREFUSED);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(id->event->status, 28);
	rdma_destroy_ep(id);
	end_server(&server);
}

/* rdma_destroy_ep(3) leaves no object in the program's domain, which could not be freed otherwise (ibv_dealloc_pd(3)). */
TEST(test_destroyed)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct rdma_event_channel *channel = new_channel();
	struct ibv_qp_init_attr attr = attributes();
	struct ibv_context **devices = rdma_get_devices(NULL);
	struct ibv_pd *pd = ibv_alloc_pd(devices[0]);
	struct rdma_addrinfo *found;
	struct rdma_cm_id *id;

	assert_non_null(pd);
	assert_success(rdma_getaddrinfo("127.0.0.1", "7471", NULL, &found));
	assert_success(rdma_create_ep(&id, found, pd, &attr));
	assert_success(rdma_create_srq(id, pd, &srq));
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	rdma_destroy_ep(id);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	/* It can be made asynchronous (rdma_create_ep(3), NOTES). */
	assert_success(rdma_create_ep(&id, found, NULL, NULL));
	assert_success(rdma_migrate_id(id, channel));
	assert_ptr_equal(id->channel, channel);
	assert_null(id->event);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(found);
	rdma_free_devices(devices);
	rdma_destroy_event_channel(channel);
}

TEST(test_refused)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *listener = new_listener(channel, RDMA_PS_TCP), *id, *child;

	/* It has a channel. */
	assert_errno(rdma_get_request(listener, &child), EINVAL);
	assert_success(rdma_destroy_id(listener));
	id = new_id(NULL, RDMA_PS_TCP);
	assert_non_null(id->channel);
	assert_errno(rdma_get_request(id, &child), EINVAL);
	assert_errno(rdma_create_ep(&child, NULL, NULL, NULL), EINVAL);
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

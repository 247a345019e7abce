/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_create_id(3), rdma_destroy_id(3), rdma_migrate_id(3), rdma_set_option(3), rdma_notify(3), rdma_get_devices(3), and the
 * layout of structures that programs read. Expected values: rdma-cm 1.3, 2.2, 2.4, 2.7.
 */
#include "support.h"

#include <pthread.h>

/* Offsets on x86-64 (rdma-cm 1.3). */
_Static_assert(sizeof(struct rdma_cm_id) == 416, "size of an id");
_Static_assert(offsetof(struct rdma_cm_id, qp) == 24, "where the QP is");
_Static_assert(offsetof(struct rdma_cm_id, port_num) == 348, "where the port is");
_Static_assert(offsetof(struct rdma_cm_id, event) == 352, "where the event is");
_Static_assert(offsetof(struct rdma_cm_id, qp_type) == 408, "where the type is");
_Static_assert(sizeof(struct rdma_cm_event) == 80, "size of an event");
_Static_assert(offsetof(struct rdma_cm_event, param) == 24, "where the parameter is");

TEST(test_members)
{
	static const struct {
		enum rdma_port_space space;
		enum ibv_qp_type type;
	} spaces[] = {{RDMA_PS_TCP, IBV_QPT_RC},
		      {RDMA_PS_IB, IBV_QPT_RC},
		      {RDMA_PS_UDP, IBV_QPT_UD},
		      {RDMA_PS_IPOIB, IBV_QPT_UD}};
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id;
	int count; /* any address */

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		assert_success(rdma_create_id(channel, &id, &count, spaces[i].space));
		assert_ptr_equal(id->channel, channel);
		assert_ptr_equal(id->context, &count);
		assert_int_equal(id->ps, spaces[i].space);
		assert_int_equal(id->qp_type, spaces[i].type);
		assert_null(id->verbs);
		assert_null(id->qp);
		assert_null(id->event);
		assert_success(rdma_destroy_id(id));
	}
	assert_errno(rdma_create_id(channel, &id, NULL, (enum rdma_port_space)0x1234), EINVAL);
	rdma_destroy_event_channel(channel);
}

TEST(test_devices)
{
	struct ibv_context **first, **second;
	int count, again;

	first = rdma_get_devices(&count);
	second = rdma_get_devices(&again);
	assert_non_null(first);
	assert_int_equal(count, again);
	assert_ptr_equal(first[0], second[0]);
	rdma_free_devices(first);
	/* Programs keep using the contexts. */
	assert_string_equal(ibv_get_device_name(second[0]->device), "mlx5_0");
	rdma_free_devices(second);
	second = rdma_get_devices(NULL);
	assert_non_null(second);
	rdma_free_devices(second);
}

TEST(test_options)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP), *udp = new_id(channel, RDMA_PS_UDP);
	struct ibv_path_data path = {.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL};
	uint8_t byte = 3;
	int number = 1;

	assert_errno(rdma_set_option(id, 7, 0, &number, sizeof(number)), ENOSYS);
	assert_errno(rdma_set_option(id, RDMA_OPTION_ID, 9, &number, sizeof(number)), ENOSYS);
	assert_errno(rdma_set_option(id, RDMA_OPTION_ID, -1, &number, sizeof(number)), ENOSYS);
	assert_errno(rdma_set_option(id, RDMA_OPTION_IB, 9, &number, sizeof(number)), ENOSYS);
	assert_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &number, sizeof(number)), EINVAL);
	assert_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &byte, 1), EINVAL);
	assert_errno(rdma_set_option(udp, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), EINVAL);
	assert_success(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1));
	assert_errno(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, 7), EINVAL);
	assert_errno(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)), EINVAL);
	/* A path set by the program replaces rdma_resolve_route(3). */
	resolve_address(id, 7471);
	path.flags = IBV_PATH_FLAG_GMP;
	assert_errno(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)), EINVAL);
	path.flags |= IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	assert_success(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)));
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(id->route.num_paths, 1);
	/* Only a listening id may no longer change this. */
	assert_success(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &number, sizeof(number)));
	assert_success(rdma_destroy_id(id));
	id = new_listener(channel, RDMA_PS_TCP);
	assert_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &number, sizeof(number)), EINVAL);
	assert_success(rdma_destroy_id(id));
	assert_success(rdma_destroy_id(udp));
	rdma_destroy_event_channel(channel);
}

TEST(test_migration)
{
	struct rdma_event_channel *first = new_channel(), *second = new_channel();
	struct rdma_cm_id *id = new_id(first, RDMA_PS_TCP);

	assert_success(rdma_resolve_addr(id, NULL, loopback(7471), TIMEOUT_MS));
	assert_true(has_event(first, 0));
	assert_success(rdma_migrate_id(id, second));
	assert_ptr_equal(id->channel, second);
	assert_false(has_event(first, 0));
	expect_event(second, RDMA_CM_EVENT_ADDR_RESOLVED);
	/* Moved to its own channel: calls are synchronous from now on. */
	assert_success(rdma_migrate_id(id, NULL));
	assert_errno(rdma_migrate_id(id, NULL), EINVAL);
	assert_success(rdma_resolve_route(id, TIMEOUT_MS));
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	/* Moved back: the event that it held is acknowledged. */
	assert_success(rdma_migrate_id(id, first));
	assert_ptr_equal(id->channel, first);
	assert_null(id->event);
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(first);
	rdma_destroy_event_channel(second);
}

struct migration {
	struct rdma_cm_id *id;
	struct rdma_event_channel *to;
	bool done; /* atomic */
};

static void *migrate(void *argument)
{
	struct migration *migration = argument;
	int result = rdma_migrate_id(migration->id, migration->to);

	__atomic_store_n(&migration->done, true, __ATOMIC_RELEASE);
	return result ? migration : NULL;
}

/* Migration waits until all events of the id are acknowledged. */
TEST(test_migration_waits)
{
	struct migration migration = {.to = new_channel()};
	struct rdma_event_channel *from = new_channel();
	struct rdma_cm_event *event;
	pthread_t thread;
	void *failed;

	migration.id = new_id(from, RDMA_PS_TCP);
	assert_success(rdma_resolve_addr(migration.id, NULL, loopback(7471), TIMEOUT_MS));
	event = next_event(from, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(pthread_create(&thread, NULL, migrate, &migration), 0);
	usleep(100000);
	assert_false(__atomic_load_n(&migration.done, __ATOMIC_ACQUIRE));
	assert_success(rdma_ack_cm_event(event));
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_ptr_equal(migration.id->channel, migration.to);
	assert_success(rdma_destroy_id(migration.id));
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(migration.to);
}

/* An established connection moves (ucmatose -m), and new children of a listener start on its channel. */
TEST(test_migration_of_connection)
{
	struct rdma_event_channel *other = new_channel();
	struct rdma_cm_event *event;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	assert_success(rdma_migrate_id(ends.listener, other));
	assert_success(rdma_connect(ends.client, NULL));
	event = next_event(other, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_ptr_equal(ends.server->channel, other);
	assert_success(rdma_ack_cm_event(event));
	new_qp(ends.server);
	assert_success(rdma_accept(ends.server, NULL));
	expect_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(other, RDMA_CM_EVENT_ESTABLISHED);
	assert_success(rdma_migrate_id(ends.server, ends.server_channel));
	assert_success(rdma_disconnect(ends.client));
	expect_event(ends.server_channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_errno(rdma_notify(ends.server, IBV_EVENT_COMM_EST), EINVAL);
	end(&ends);
	rdma_destroy_event_channel(other);
}

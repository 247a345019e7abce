/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 800 to 815, 865 and 866: ids of librdmacm, their states, events and options. */
#include "../rdmacm/support.h"
#include "rule_cases.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/undeclared_rdmacm.h"

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static void open_id(enum rdma_port_space space)
{
	channel = new_channel();
	id = new_id(channel, space);
}

static void close_id(void)
{
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* ---- states ----------------------------------------------------------------------------------------------------- */

RULE_CASE(RDMACM_ID_STATE)
{
	open_id(RDMA_PS_TCP);
	assert_errno(rdma_resolve_route(id, TIMEOUT_MS), EINVAL);
	expect_refusal(RDMACM_ID_STATE,
		       "rdma_resolve_route → EINVAL: the id is in state IDLE, and the call needs RESOLVED");
	close_id();
}

RULE_CASE(RDMACM_ID_STATES)
{
	open_id(RDMA_PS_TCP);
	resolve_address(id, 7471);
	assert_errno(rdma_listen(id, 1), EINVAL);
	expect_refusal(RDMACM_ID_STATES,
		       "rdma_listen → EINVAL: the id is in state RESOLVED, and the call needs IDLE or BOUND");
	close_id();
}

/* The child makes the explanation. */
RULE_CASE(RDMACM_OF_PARENT)
{
	struct softhca_explanation *newest =
		mmap(NULL, sizeof(*newest), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child;

	assert_true(newest != MAP_FAILED);
	open_id(RDMA_PS_TCP);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(rdma_bind_addr(id, loopback(0)) != -1 || errno != EBADF ||
		      softhca_explanations(client.context, 0, newest, 1) != 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	expect_explanation(
		newest, RDMACM_OF_PARENT,
		" rdma_bind_addr → EBADF: the object at 0x%lx was created before fork(2), by the parent process, and cannot be used here",
		(unsigned long)(uintptr_t)id);
	munmap(newest, sizeof(*newest));
	close_id();
}

RULE_CASE(RDMACM_PORT_SPACE)
{
	struct rdma_cm_id *none;

	channel = new_channel();
	assert_errno(rdma_create_id(channel, &none, NULL, (enum rdma_port_space)0x77), EINVAL);
	expect_refusal(RDMACM_PORT_SPACE, "rdma_create_id → EINVAL: 0x77 is not a port space");
	rdma_destroy_event_channel(channel);
}

RULE_CASE(RDMACM_MIGRATE_SYNCHRONOUS)
{
	assert_success(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	assert_errno(rdma_migrate_id(id, NULL), EINVAL);
	expect_refusal(RDMACM_MIGRATE_SYNCHRONOUS, "rdma_migrate_id → EINVAL: the id is already synchronous");
	assert_success(rdma_destroy_id(id));
}

RULE_CASE(RDMACM_NOT_SYNCHRONOUS)
{
	struct rdma_cm_id *child;

	channel = new_channel();
	id = new_listener(channel, RDMA_PS_TCP);
	assert_errno(rdma_get_request(id, &child), EINVAL);
	expect_refusal(RDMACM_NOT_SYNCHRONOUS,
		       "rdma_get_request → EINVAL: the listener has an event channel of the program");
	close_id();
}

RULE_CASE(RDMACM_UNBOUND)
{
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1}, .qp_type = IBV_QPT_RC};

	open_id(RDMA_PS_TCP);
	assert_errno(rdma_create_qp(id, NULL, &attr), EINVAL);
	expect_refusal(RDMACM_UNBOUND, "rdma_create_qp → EINVAL: the id has no device yet");
	close_id();
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

RULE_CASE(RDMACM_NO_EVENT)
{
	assert_errno(rdma_ack_cm_event(NULL), EINVAL);
	expect_refusal(RDMACM_NO_EVENT, "rdma_ack_cm_event → EINVAL: the event is NULL");
}

RULE_CASE(RDMACM_NULL)
{
	channel = new_channel();
	assert_errno(rdma_get_cm_event(channel, NULL), EINVAL);
	expect_refusal(RDMACM_NULL,
		       "rdma_get_cm_event → EINVAL: the arguments are 0x%lx and 0x0, but neither may be NULL",
		       (unsigned long)(uintptr_t)channel);
	assert_errno(rdma_create_ep(&id, NULL, NULL, NULL), EINVAL);
	expect_refusal(RDMACM_NULL, "rdma_create_ep → EINVAL: the arguments are 0x%lx and 0x0, but neither may be NULL",
		       (unsigned long)(uintptr_t)&id);
	rdma_destroy_event_channel(channel);
}

/* A listener gets an event other than a connection request (rdma_write_cm_event() of later versions). */
RULE_CASE(RDMACM_OTHER_EVENT)
{
	struct rdma_cm_id *child;

	assert_success(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	assert_success(rdma_bind_addr(id, loopback(0)));
	assert_success(rdma_listen(id, 1));
	assert_success(rdma_write_cm_event(id, (enum rdma_cm_event_type)RDMA_CM_EVENT_USER_, -5, 0));
	assert_errno(rdma_get_request(id, &child), 5);
	expect_refusal(RDMACM_OTHER_EVENT,
		       "rdma_get_request → EIO: event %u with status -5 arrived at the listener instead of a request",
		       RDMA_CM_EVENT_USER_);
	assert_success(rdma_destroy_id(id));
}

RULE_CASE(RDMACM_EVENT_TYPE)
{
	open_id(RDMA_PS_TCP);
	assert_errno(rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), EINVAL);
	expect_refusal(RDMACM_EVENT_TYPE, "rdma_write_cm_event → EINVAL: a program may not write event %u",
		       RDMA_CM_EVENT_ESTABLISHED);
	close_id();
}

/* ---- options ---------------------------------------------------------------------------------------------------- */

RULE_CASE(RDMACM_OPTION)
{
	int value = 1;

	open_id(RDMA_PS_TCP);
	assert_errno(rdma_set_option(id, 7, 3, &value, sizeof(value)), ENOSYS);
	expect_refusal(RDMACM_OPTION, "rdma_set_option → ENOSYS: option 3 of level 7 does not exist");
	close_id();
}

RULE_CASE(RDMACM_OPTION_SIZE)
{
	int value = 1;

	open_id(RDMA_PS_TCP);
	assert_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, sizeof(value)), EINVAL);
	expect_refusal(RDMACM_OPTION_SIZE, "rdma_set_option → EINVAL: the value of option 0 has 4 bytes and must have "
					   "1, or a multiple if it is a list");
	close_id();
}

RULE_CASE(RDMACM_REUSE_ADDRESS)
{
	int value = 1;

	channel = new_channel();
	id = new_listener(channel, RDMA_PS_TCP);
	assert_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &value, sizeof(value)), EINVAL);
	expect_refusal(
		RDMACM_REUSE_ADDRESS,
		"rdma_set_option → EINVAL: the id is in state LISTEN, in which its address cannot become shared");
	close_id();
}

RULE_CASE(RDMACM_ACK_TIMEOUT)
{
	uint8_t value = 14;

	open_id(RDMA_PS_UDP);
	assert_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, sizeof(value)), EINVAL);
	expect_refusal(RDMACM_ACK_TIMEOUT, "rdma_set_option → EINVAL: an id of type UD has no acknowledgement timeout");
	close_id();
}

RULE_CASE(RDMACM_NO_PATH)
{
	struct ibv_path_data path = {.flags = IBV_PATH_FLAG_GMP};

	open_id(RDMA_PS_TCP);
	resolve_address(id, 7471);
	assert_errno(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)), EINVAL);
	expect_refusal(RDMACM_NO_PATH, "rdma_set_option → EINVAL: none of the 1 paths has all flags 0x%x",
		       IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL);
	close_id();
}

RULE_CASE(RDMACM_ECE)
{
	struct ibv_ece none = {.vendor_id = 0};

	open_id(RDMA_PS_TCP);
	assert_errno(rdma_set_local_ece(id, &none), EINVAL);
	expect_refusal(
		RDMACM_ECE,
		"rdma_set_local_ece → EINVAL: ECE is set and queried for an id without a QP, from a vendor, with comp_mask 0; this id has a QP: no, vendor 0x0, comp_mask 0x0");
	close_id();
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* librdmacm requests and events for which memory is exhausted. */
#include "test_case.h"

#include <arpa/inet.h>

#include "beyond.h"
#include "cm/hello.h"
#include "rdmacm/manager.h"
#include "rdmacm/objects.h"

/* Makes a listener at any address or a connected id, at port 7471; the other end has port 40000. */
static void make_id(struct user_cm_id *id, struct user_cm_channel *channel, enum id_state state)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(7471)};
	struct sockaddr_in other = {.sin_family = AF_INET, .sin_port = htons(40000)};

	*channel = (struct user_cm_channel){0};
	*id = (struct user_cm_id){.base = {.ps = RDMA_PS_TCP, .qp_type = IBV_QPT_RC},
				  .channel = channel,
				  .state = state,
				  .connecting = state == ID_CONNECT,
				  .backlog = 1,
				  .port.number = 7471};
	memcpy(&id->port.source, &own, sizeof(own));
	memcpy(&id->path.source, &own, sizeof(own));
	memcpy(&id->path.destination, &other, sizeof(other));
}

BEYOND_CASE(RDMACM_REQUEST_NO_MEMORY)
{
	struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)};
	struct cm_message message = {.kind = CM_REQ};
	struct cm_event event = {.kind = CM_EVENT_REQUEST, .message = &message};
	struct user_cm_channel channel;
	enum cm_verdict verdict;
	struct user_cm_id id;
	uint16_t reason = 0;
	void *owner = NULL;

	make_id(&id, &channel, ID_LISTEN);
	message.req.service_id = cm_service_id(RDMA_PS_TCP, 7471);
	assert_int_equal(
		cm_hello_pack((struct sockaddr *)&source, (struct sockaddr *)&source, message.req.private_data), 0);
	no_memory = true;
	verdict = handle_request(&id, NULL, &event, &owner, &reason);
	no_memory = false;
	assert_int_equal(verdict, CM_DROP);
	expect_line(NULL, RULE_RDMACM_REQUEST_NO_MEMORY,
		    "mlx5_0 rdma_listen: not enough memory for a request for port 7471: it was dropped, and its sender "
		    "repeats it. [876 ");
}

BEYOND_CASE(RDMACM_EVENT_NO_MEMORY)
{
	struct cm_event event = {.kind = CM_EVENT_ESTABLISHED};
	struct user_cm_channel channel;
	struct user_cm_id id;

	make_id(&id, &channel, ID_CONNECT);
	no_memory = true;
	handle_event(&id, &event);
	no_memory = false;
	expect_line(
		NULL, RULE_RDMACM_EVENT_NO_MEMORY,
		"mlx5_0 rdma_get_cm_event: not enough memory for an event of the connection between ports 7471 and 40000: the program does not get it. [877 ");
}

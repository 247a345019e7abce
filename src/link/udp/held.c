/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that wait for others: an acknowledgement for the program's reply, requests for further ones (DESIGN.md). At most
 * one socket of the process has any.
 */
#include <string.h>

#include "core/cancellation.h"
#include "observe/counters.h"
#include "progress/progress.h"
#include "link/udp/parts.h"
#include "wire/routes.h"

/* Values chosen for speed. */
enum {
	/* consecutive answers after which the next one is waited for */
	UDP_HELD_AFTER = 4,
	/* ns within which each of these must come: its thread may have lost its processor */
	UDP_HELD_ANSWER_NS = 500000,
	/* ns: a program that polls again before it answers does not get arrivals younger than this */
	UDP_HELD_FRESH_NS = 2000,
	/* ns after which the device thread sends a held acknowledgement because the program makes no call */
	UDP_HELD_LATEST_NS = 1000000,
};

uint32_t udp_held_flow;

static struct {
	struct udp_socket *socket; /* atomic; the one in which packets wait, or NULL; written under its lock */
	struct timer timer;
	bool armed;        /* atomic */
	uint64_t since_ns; /* atomic; that of socket->held; 0: requests wait */
} holder;

static struct timers *held_timers(void)
{
	return &first_device()->timers;
}

static void held_timer_expired(struct timer *timer)
{
	(void)timer;
	__atomic_store_n(&holder.armed, false, __ATOMIC_SEQ_CST);
	if (!udp_holding())
		return;
	/* Usually these are newer packets than those for which the timer was armed. */
	udp_held_release(UDP_HELD_ANSWER_NS);
	udp_kept_release(UDP_HELD_ANSWER_NS);
	if (udp_holding() && !__atomic_exchange_n(&holder.armed, true, __ATOMIC_SEQ_CST))
		timer_arm(held_timers(), &holder.timer, clock_now_ns() + UDP_HELD_LATEST_NS / 2);
}

void udp_held_begin(void)
{
	timer_init(&holder.timer, held_timer_expired);
	__atomic_store_n(&holder.armed, false, __ATOMIC_SEQ_CST);
}

/* ---- whether to wait ------------------------------------------------------------------------------------------- */

void udp_held_note_request(struct udp_socket *socket)
{
	struct udp_answers *answers = &socket->answers;

	if (!answers->due)
		return;
	answers->due = false;
	answers->row = clock_now_ns() - answers->acknowledged_ns <= UDP_HELD_ANSWER_NS
			       ? answers->row + (answers->row < UDP_HELD_AFTER)
			       : 0;
}

/* Records that an acknowledgement is about to leave. Returns true if the program is expected to reply soon. */
static bool answer_is_expected(struct udp_socket *socket, uint64_t now_ns)
{
	struct udp_answers *answers = &socket->answers;

	/* Nothing was sent in reply to the previous one. */
	if (answers->due)
		answers->row = 0;
	answers->due = true;
	answers->acknowledged_ns = now_ns;
	/* Do not hold for a program that sleeps (DESIGN.md). */
	return answers->row == UDP_HELD_AFTER && !socket->no_trains && !progress_on_thread();
}

/* ---- holding --------------------------------------------------------------------------------------------------- */

static bool holder_become(struct udp_socket *socket, uint32_t key, uint64_t now_ns)
{
	struct udp_socket *none = NULL;

	if (!__atomic_compare_exchange_n(&holder.socket, &none, socket, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return false;
	socket->held.since_ns = now_ns;
	__atomic_store_n(&udp_held_flow, key, __ATOMIC_SEQ_CST);
	__atomic_store_n(&link_holding, routes->udp(), __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&holder.armed, true, __ATOMIC_SEQ_CST))
		return true;
	if (!timer_arm(held_timers(), &holder.timer, now_ns + UDP_HELD_LATEST_NS))
		return true;
	/* Without the timer no thread would send it. */
	__atomic_store_n(&holder.armed, false, __ATOMIC_SEQ_CST);
	udp_held_gone(socket);
	return false;
}

bool udp_held_keep(struct udp_socket *socket, uint32_t key)
{
	uint64_t now_ns = clock_now_ns();

	if (!answer_is_expected(socket, now_ns) || !holder_become(socket, key, now_ns))
		return false;
	__atomic_store_n(&holder.since_ns, now_ns, __ATOMIC_RELAXED);
	return true;
}

bool udp_kept_wait(struct udp_socket *socket, uint32_t key)
{
	if (__atomic_load_n(&holder.socket, __ATOMIC_RELAXED) == socket)
		return true;
	if (!holder_become(socket, key, clock_now_ns()))
		return false;
	__atomic_store_n(&holder.since_ns, 0, __ATOMIC_RELAXED);
	return true;
}

struct udp_socket *udp_held_socket(void)
{
	return __atomic_load_n(&holder.socket, __ATOMIC_SEQ_CST);
}

void udp_held_gone(struct udp_socket *socket)
{
	socket->held.length = 0;
	__atomic_store_n(&link_holding, NULL, __ATOMIC_SEQ_CST);
	__atomic_store_n(&udp_held_flow, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&holder.socket, NULL, __ATOMIC_SEQ_CST);
}

bool udp_held_just_now(void)
{
	return udp_holding() && !progress_on_thread() &&
	       clock_now_ns() - __atomic_load_n(&holder.since_ns, __ATOMIC_RELAXED) < UDP_HELD_FRESH_NS;
}

void udp_held_release(uint64_t age_ns)
{
	WITHOUT_CANCELLATION;
	struct udp_socket *socket = __atomic_load_n(&holder.socket, __ATOMIC_SEQ_CST);
	bool sent = false;

	if (!socket)
		return;
	pthread_mutex_lock(&socket->lock);
	if (socket->held.length && clock_now_ns() - socket->held.since_ns >= age_ns) {
		socket->answers.row = 0;
		socket->held.send(socket);
		sent = true;
	}
	pthread_mutex_unlock(&socket->lock);
	if (sent)
		udp_socket_forget(socket, 1);
}

void udp_held_after_fork(void)
{
	link_holding = NULL;
	udp_held_flow = 0;
	holder.socket = NULL;
	holder.armed = false;
}

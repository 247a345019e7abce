/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv4 identifications of other implementations: the receiver accepts each packet with an ICRC that matches one of them. */
#include "test_case.h"

#include "../../model/choose.h"
#include "../support/udp_stranger.h"

TEST(every_identification_of_a_train)
{
	uint8_t packet[MOST_PACKET];

	for (uint16_t identification = 0; identification < 64; identification++) {
		size_t length = write_packet(packet, 0x0a, 0, 8u * identification, 8, 8, identification);

		send_bytes(packet, length, 0);
		expect_written(0, 8u * identification, 8);
		wait_for(1);
		psn++;
	}
	expect_no_other_change();
}

/* Makes a stranger that is new to the receiver. @discover: IP_PMTUDISC_DO or _DONT. */
static void change_stranger(int discover)
{
	close(stranger);
	stranger = stranger_open(AF_INET, 0);
	assert_int_equal(setsockopt(stranger, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(int)), 0);
	may_fragment = discover == IP_PMTUDISC_DONT;
}

/* A sender that increments from any start and permits fragmentation: all of its packets are accepted. */
TEST(a_foreign_count)
{
	uint8_t packet[MOST_PACKET];

	for (uint32_t i = 0; i < 300; i++) {
		if (i % 200 == 0)
			change_stranger(i ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO);
		send_bytes(packet, write_packet(packet, 0x0a, 0, 8 * i, 8, 8, (uint16_t)(65400 + i)), 0);
		expect_written(0, 8 * i, 8);
		wait_for(1);
		psn++;
	}
	expect_no_other_change();
	change_stranger(IP_PMTUDISC_DO);
}

/*
 * Identifications as Linux generates them (ip_idents_reserve in net/ipv4/route.c): one counter for a pair of addresses,
 * shared by all sockets. After @silence ticks without a packet the counter also skips a random number of
 * identifications, less than @silence.
 */
struct linux_counter {
	uint32_t next;
	struct choose choose;
	uint32_t
		not_expected; /* packets with an identification other than 0, as expected of softhca's single packets */
};

static uint16_t next_identification(struct linux_counter *counter, uint32_t silence)
{
	if (silence)
		counter->next += (uint32_t)choose_below(&counter->choose, silence);
	return (uint16_t)counter->next++;
}

/* 100 to 1000 ticks a second, as CONFIG_HZ permits; silences of 1 s and of 60 s. */
static const uint32_t silences[] = {100, 250, 1000, 6000, 15000, 60000};

/* Sends @packets WRITEs of one packet each with identifications of @counter, and expects all of them to be executed. */
static void send_counted(struct linux_counter *counter, uint8_t opcode, uint32_t packets)
{
	uint8_t packet[MOST_PACKET];

	for (uint32_t i = 0; i < packets; i++) {
		uint16_t identification = next_identification(counter, 0);

		counter->not_expected += identification != 0;
		send_bytes(packet, write_packet(packet, opcode, i, 8 * i, 8, 8, identification), 0);
		expect_written(i, 8 * i, 8);
	}
	wait_for(packets);
	expect_no_other_change();
	psn += packets;
}

/* Sends packets of @opcode, a WRITE only, from 16 sockets of one Linux host and after silences, and expects each to arrive. */
static void send_as_linux(uint8_t opcode)
{
	enum { SOCKETS = 16, ROUNDS = 20, MOST_BURST = 32 };
	struct linux_counter counter = {.next = 65000, .choose = choose_for(1, opcode)};
	uint8_t packet[MOST_PACKET];
	uint64_t bad = counted(COUNTER_UDP_BAD_ICRC), solved = counted(COUNTER_UDP_ICRC_15_BITS);
	int first = stranger, sockets[SOCKETS];

	may_fragment = false;
	for (int i = 0; i < SOCKETS; i++)
		sockets[i] = stranger_open(AF_INET, 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < SOCKETS; i++) {
			stranger = sockets[i];
			send_counted(&counter, opcode, 1 + (uint32_t)choose_below(&counter.choose, MOST_BURST));
		}
	}
	/* One socket with identifications close together for a long time. */
	stranger = sockets[0];
	for (size_t i = 0; i < sizeof(silences) / sizeof(silences[0]); i++) {
		for (int burst = 0; burst < 10; burst++)
			send_counted(&counter, opcode, MOST_BURST);
		next_identification(&counter, silences[i]);
	}
	for (int i = 0; i < SOCKETS; i++)
		close(sockets[i]);
	stranger = first;
	assert_int_equal(counted(COUNTER_UDP_BAD_ICRC), bad);
	assert_int_equal(counted(COUNTER_UDP_ICRC_15_BITS) - solved, counter.not_expected);
	/* With the identification that softhca uses, all 32 bits can be checked. */
	send_bytes(packet, write_packet(packet, opcode, 0, 0, 8, 8, 0), 0);
	expect_written(0, 0, 8);
	wait_for(1);
	assert_int_equal(counted(COUNTER_UDP_ICRC_15_BITS) - solved, counter.not_expected);
}

TEST(identifications_of_linux_rc)
{
	send_as_linux(0x0a);
}

/* UC has no retransmission: a dropped packet is a lost message. */
TEST_WITH(identifications_of_linux_uc, open_receiver_uc, close_receiver)
{
	send_as_linux(0x2a);
}

int main(void)
{
	return run_stranger();
}

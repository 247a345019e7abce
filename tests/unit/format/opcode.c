/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of packet opcodes against the names in Wireshark 4.0 (infiniband.bth.opcode), for the transports of the
 * device. The name of an opcode determines its message, place and extension headers (IBTA table 38; annex A14: every
 * request of XRC names its SRQ). Our own opcodes follow.
 */
#include "test_case.h"

#include "process/commands.h"
#include "format/opcode.h"

static const struct {
	uint8_t code;
	const char *name;
} opcodes[] = {
	{0, "RC SEND First"},
	{1, "RC SEND Middle"},
	{2, "RC SEND Last"},
	{3, "RC SEND Last with Immediate"},
	{4, "RC SEND Only"},
	{5, "RC SEND Only with Immediate"},
	{6, "RC RDMA WRITE First"},
	{7, "RC RDMA WRITE Middle"},
	{8, "RC RDMA WRITE Last"},
	{9, "RC RDMA WRITE Last with Immediate"},
	{10, "RC RDMA WRITE Only"},
	{11, "RC RDMA WRITE Only with Immediate"},
	{12, "RC RDMA READ Request"},
	{13, "RC RDMA READ response First"},
	{14, "RC RDMA READ response Middle"},
	{15, "RC RDMA READ response Last"},
	{16, "RC RDMA READ response Only"},
	{17, "RC Acknowledge"},
	{18, "RC ATOMIC Acknowledge"},
	{19, "RC CmpSwap"},
	{20, "RC FetchAdd"},
	{22, "RC SEND Last with Invalidate"},
	{23, "RC SEND Only with Invalidate"},
	{29, "RC ATOMIC WRITE"}, /* annex A19 */
	{32, "UC SEND First"},
	{33, "UC SEND Middle"},
	{34, "UC SEND Last"},
	{35, "UC SEND Last with Immediate"},
	{36, "UC SEND Only"},
	{37, "UC SEND Only with Immediate"},
	{38, "UC RDMA WRITE First"},
	{39, "UC RDMA WRITE Middle"},
	{40, "UC RDMA WRITE Last"},
	{41, "UC RDMA WRITE Last with Immediate"},
	{42, "UC RDMA WRITE Only"},
	{43, "UC RDMA WRITE Only with Immediate"},
	{100, "UD SEND only"},
	{101, "UD SEND only with Immediate"},
	{129, "Congestion Notification"}, /* annex A17.9.3 */
	{160, "XRC SEND First"},
	{161, "XRC SEND Middle"},
	{162, "XRC SEND Last"},
	{163, "XRC SEND Last with Immediate"},
	{164, "XRC SEND Only"},
	{165, "XRC SEND Only with Immediate"},
	{166, "XRC RDMA WRITE First"},
	{167, "XRC RDMA WRITE Middle"},
	{168, "XRC RDMA WRITE Last"},
	{169, "XRC RDMA WRITE Last with Immediate"},
	{170, "XRC RDMA WRITE Only"},
	{171, "XRC RDMA WRITE Only with Immediate"},
	{172, "XRC RDMA READ Request"},
	{173, "XRC RDMA READ response First"},
	{174, "XRC RDMA READ response Middle"},
	{175, "XRC RDMA READ response Last"},
	{176, "XRC RDMA READ response Only"},
	{177, "XRC Acknowledge"},
	{178, "XRC ATOMIC Acknowledge"},
	{179, "XRC CmpSwap"},
	{180, "XRC FetchAdd"},
	{182, "XRC SEND Last with Invalidate"},
	{183, "XRC SEND Only with Invalidate"},
	{189, "XRC ATOMIC WRITE"}, /* annex A19 */
	/* From here on in the manufacturer range: our own, named in the same way. */
	{192, "DC SEND First"},
	{193, "DC SEND Middle"},
	{194, "DC SEND Last"},
	{195, "DC SEND Last with Immediate"},
	{196, "DC SEND Only"},
	{197, "DC SEND Only with Immediate"},
	{198, "DC RDMA WRITE First"},
	{199, "DC RDMA WRITE Middle"},
	{200, "DC RDMA WRITE Last"},
	{201, "DC RDMA WRITE Last with Immediate"},
	{202, "DC RDMA WRITE Only"},
	{203, "DC RDMA WRITE Only with Immediate"},
	{204, "DC RDMA READ Request"},
	{205, "DC RDMA READ response First"},
	{206, "DC RDMA READ response Middle"},
	{207, "DC RDMA READ response Last"},
	{208, "DC RDMA READ response Only"},
	{209, "DC Acknowledge"},
	{210, "DC ATOMIC Acknowledge"},
	{211, "RC Masked CmpSwap"},
	{212, "RC Masked FetchAdd"},
	{214, "DC SEND Last with Invalidate"},
	{215, "DC SEND Only with Invalidate"},
	{216, "DC CmpSwap"},
	{217, "DC FetchAdd"},
	{218, "DC Masked CmpSwap"},
	{219, "DC Masked FetchAdd"},
	{220, "DC Disconnect"},
	{221, "DC ATOMIC WRITE"},
	{243, "XRC Masked CmpSwap"},
	{244, "XRC Masked FetchAdd"},
	{246, "UC SEND Last with Invalidate"},
	{247, "UC SEND Only with Invalidate"},
};

#define COUNT (sizeof(opcodes) / sizeof(opcodes[0]))

/* Codes of RC and XRC that IBTA table 38 and annex A19 reserve, and FLUSH. */
static const uint8_t unsupported[] = {0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1e, 0x1f,
				      0xb5, 0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbe, 0xbf};

static bool says(const char *name, const char *word)
{
	return strstr(name, word) != NULL;
}

static uint8_t transport_of_name(const char *name)
{
	if (!strncmp(name, "XRC", 3))
		return IBV_QPT_XRC_SEND;
	if (!strncmp(name, "DC", 2))
		return QP_TYPE_DCI;
	if (!strncmp(name, "RC", 2))
		return IBV_QPT_RC;
	if (says(name, "Congestion"))
		return TRANSPORT_NONE;
	return !strncmp(name, "UC", 2) ? IBV_QPT_UC : IBV_QPT_UD;
}

static uint8_t message_of_name(const char *name)
{
	if (says(name, "READ Request"))
		return MESSAGE_READ_REQUEST;
	if (says(name, "READ response"))
		return MESSAGE_READ_RESPONSE;
	if (says(name, "ATOMIC Acknowledge"))
		return MESSAGE_ATOMIC_ACKNOWLEDGE;
	if (says(name, "Acknowledge"))
		return MESSAGE_ACKNOWLEDGE;
	if (says(name, "CmpSwap"))
		return says(name, "Masked") ? MESSAGE_MASKED_COMPARE_SWAP : MESSAGE_COMPARE_SWAP;
	if (says(name, "FetchAdd"))
		return says(name, "Masked") ? MESSAGE_MASKED_FETCH_ADD : MESSAGE_FETCH_ADD;
	if (says(name, "ATOMIC WRITE"))
		return MESSAGE_ATOMIC_WRITE;
	if (says(name, "Disconnect"))
		return MESSAGE_DISCONNECT;
	if (says(name, "Congestion"))
		return MESSAGE_CONGESTION;
	if (says(name, "SEND"))
		return says(name, "Invalidate")  ? MESSAGE_SEND_INVALIDATE
		       : says(name, "Immediate") ? MESSAGE_SEND_IMM
						 : MESSAGE_SEND;
	return says(name, "Immediate") ? MESSAGE_WRITE_IMM : MESSAGE_WRITE;
}

static uint8_t place_of_name(const char *name)
{
	if (says(name, "First"))
		return PLACE_FIRST;
	if (says(name, "Middle"))
		return PLACE_MIDDLE;
	return says(name, "Last") ? PLACE_LAST : PLACE_ONLY;
}

static uint16_t headers_of_name(const char *name)
{
	bool begins = place_of_name(name) & PLACE_FIRST, response = says(name, "response");
	uint16_t headers = 0;

	if (transport_of_name(name) == IBV_QPT_UD)
		headers |= HEADER_DETH;
	if (transport_of_name(name) == IBV_QPT_XRC_SEND && !response && !says(name, "Acknowledge"))
		headers |= HEADER_XRCETH;
	if (transport_of_name(name) == QP_TYPE_DCI && !response && !says(name, "Acknowledge"))
		headers |= HEADER_DCETH;
	if (says(name, "READ Request") || (says(name, "WRITE") && begins))
		headers |= HEADER_RETH;
	if (says(name, "CmpSwap") || says(name, "FetchAdd"))
		headers |= HEADER_ATOMICETH;
	/* The middle packet of a READ response has no AETH. */
	if (says(name, "Acknowledge") || (response && place_of_name(name) != PLACE_MIDDLE))
		headers |= HEADER_AETH;
	if (says(name, "ATOMIC Acknowledge"))
		headers |= HEADER_ATOMICACKETH;
	if (says(name, "Immediate"))
		headers |= HEADER_IMMDT;
	if (says(name, "Invalidate"))
		headers |= HEADER_IETH;
	if (says(name, "SEND") || says(name, "WRITE") || says(name, "Masked") || says(name, "Congestion") || response)
		headers |= HEADER_PAYLOAD;
	return headers;
}

static const char *name_of(unsigned int code)
{
	for (size_t i = 0; i < COUNT; i++)
		if (opcodes[i].code == code)
			return opcodes[i].name;
	return NULL;
}

TEST(table)
{
	for (unsigned int code = 0; code < 256; code++) {
		const struct packet_opcode *opcode = &packet_opcodes[code];
		const char *name = name_of(code);

		if (memchr(unsupported, (int)code, sizeof(unsupported))) {
			assert_int_equal(opcode->message, MESSAGE_UNSUPPORTED);
			assert_int_equal(opcode->transport, code >> 5 ? IBV_QPT_XRC_SEND : IBV_QPT_RC);
			assert_int_equal(opcode->headers, HEADER_PAYLOAD);
			continue;
		}
		if (!name != !opcode->name)
			fail_msg("opcode %u: \"%s\", the list has \"%s\"", code, opcode->name ? opcode->name : "none",
				 name ? name : "none");
		if (!name)
			continue;
		assert_int_equal(opcode->transport, transport_of_name(name));
		assert_int_equal(opcode->message, message_of_name(name));
		assert_int_equal(opcode->place, place_of_name(name));
		assert_int_equal(opcode->headers, headers_of_name(name));
	}
}

/* The reverse: each opcode is found by its properties, and no other. */
TEST(look_up)
{
	unsigned int found = 0;

	for (int transport = 0; transport < 32; transport++) {
		for (int message = MESSAGE_NONE; message < MESSAGE_COUNT; message++) {
			for (int place = PLACE_MIDDLE; place <= PLACE_ONLY; place++) {
				int code = packet_opcode_of((enum ibv_qp_type)transport, (enum message)message,
							    (enum packet_place)place);

				if (code < 0)
					continue;
				found++;
				assert_non_null(name_of((unsigned int)code));
				assert_int_equal(transport_of_name(name_of((unsigned int)code)), transport);
				assert_int_equal(message_of_name(name_of((unsigned int)code)), message);
				assert_int_equal(place_of_name(name_of((unsigned int)code)), place);
			}
		}
	}
	assert_int_equal(found, COUNT);
}

/* Every message that has a first packet has the others: a link that cuts a message finds an opcode for each packet. */
TEST(every_message_can_be_cut)
{
	static const struct {
		enum message whole, begun;
	} messages[] = {
		{MESSAGE_SEND, MESSAGE_SEND},
		{MESSAGE_SEND_IMM, MESSAGE_SEND},
		{MESSAGE_SEND_INVALIDATE, MESSAGE_SEND},
		{MESSAGE_WRITE, MESSAGE_WRITE},
		{MESSAGE_WRITE_IMM, MESSAGE_WRITE},
		{MESSAGE_READ_RESPONSE, MESSAGE_READ_RESPONSE},
	};

	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		for (int transport = IBV_QPT_RC; transport <= (int)QP_TYPE_DCI; transport++) {
			if (transport == IBV_QPT_UD)
				continue;
			if (packet_opcode_of(transport, messages[i].whole, PLACE_ONLY) < 0)
				continue;
			assert_true(packet_opcode_of(transport, messages[i].begun, PLACE_FIRST) >= 0);
			assert_true(packet_opcode_of(transport, messages[i].begun, PLACE_MIDDLE) >= 0);
			assert_true(packet_opcode_of(transport, messages[i].whole, PLACE_LAST) >= 0);
		}
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The language of fault scripts: the meaning of each statement, and where and how a wrong one is rejected. */
#include "test_case.h"

#include "filter/faults.h"

#define ALL_TRANSPORTS ((1u << FAULT_TRANSPORTS) - 1)
#define ALL_KINDS ((1u << FAULT_KINDS) - 1)
#define CM_KINDS (0x1ffu << FAULT_CM_REQ) /* nine messages */

static struct fault_script script;
static struct fault_error error;

/* Parses a script of one rule. */
static const struct fault_rule *rule(const char *text)
{
	int result = fault_script_parse(&script, text, &error);

	if (result)
		fail_msg("%s: line %u, column %u: %s", text, error.line, error.column, error.text);
	assert_int_equal(script.count, 1);
	return &script.rule[0];
}

TEST(the_example_of_the_documents)
{
	const char *text = "drop 1%; duplicate 0.5%; reorder 2% by 3; corrupt payload 0.1%; corrupt frame 0.1%; "
			   "delay 50us..2ms; at packet 1000 of qp 0x4001 drop 5; seed 7";
	static const enum fault_action actions[] = {FAULT_DROP,          FAULT_DUPLICATE,
						    FAULT_REORDER,       FAULT_CORRUPT_PAYLOAD,
						    FAULT_CORRUPT_FRAME, FAULT_DELAY,
						    FAULT_DROP};
	static const uint32_t shares[] = {1000000, 500000, 2000000, 100000, 100000, FAULT_ALWAYS, FAULT_ALWAYS};
	const struct fault_rule *rules = script.rule;

	assert_int_equal(fault_script_parse(&script, text, &error), 0);
	assert_true(script.seeded);
	assert_int_equal(script.seed, 7);
	assert_int_equal(script.count, 7);
	for (int i = 0; i < 7; i++) {
		assert_int_equal(rules[i].action, actions[i]);
		assert_int_equal(rules[i].share, shares[i]);
		assert_int_equal(rules[i].transports, ALL_TRANSPORTS);
		assert_int_equal(rules[i].first, i == 6 ? 1000 : 1);
		assert_int_equal(rules[i].of_qp, i == 6);
		assert_false(rules[i].to_qp);
	}
	assert_int_equal(rules[2].by, 3);
	assert_int_equal(rules[5].least_ns, 50000);
	assert_int_equal(rules[5].most_ns, 2000000);
	assert_int_equal(rules[6].sender, 0x4001);
	assert_int_equal(rules[6].count, 5);
	assert_string_equal(rules[0].text, "drop 1%");
	assert_string_equal(rules[6].text, "at packet 1000 of qp 0x4001 drop 5");
}

TEST(blanks_comments_and_lines)
{
	assert_int_equal(fault_script_parse(&script, "", &error), 0);
	assert_int_equal(script.count, 0);
	assert_false(script.seeded);
	assert_int_equal(fault_script_parse(&script, " ;;\n\n # nothing; drop\n;", &error), 0);
	assert_int_equal(script.count, 0);
	assert_int_equal(fault_script_parse(&script, "drop 1 % # of all; twice\r\n\tduplicate 2%\n;seed 0x10;drop 3%#",
					    &error),
			 0);
	assert_int_equal(script.count, 3);
	assert_int_equal(script.seed, 16);
	assert_int_equal(script.rule[2].share, 3000000);
	assert_string_equal(script.rule[0].text, "drop 1 %");
	assert_string_equal(script.rule[1].text, "duplicate 2%");
}

TEST(amounts)
{
	assert_int_equal(rule("drop")->share, FAULT_ALWAYS);
	assert_int_equal(rule("drop")->count, UINT64_MAX);
	assert_int_equal(rule("drop 0%")->share, 0);
	assert_int_equal(rule("drop 100%")->share, FAULT_ALWAYS);
	assert_int_equal(rule("drop 100.0%")->share, FAULT_ALWAYS);
	assert_int_equal(rule("drop 0.000001%")->share, 1);
	assert_int_equal(rule("drop 12.345678%")->share, 12345678);
	assert_int_equal(rule("drop 7")->share, FAULT_ALWAYS);
	assert_int_equal(rule("drop 7")->count, 7);
	assert_int_equal(rule("drop 7")->first, 1);
}

TEST(numbers_of_packets)
{
	assert_int_equal(rule("at packet 9 drop")->first, 9);
	assert_int_equal(rule("at packet 9 drop")->count, 1);
	assert_int_equal(rule("at packet 9 drop 3")->count, 3);
	assert_int_equal(rule("at packet 9 drop 50%")->count, 1);
	assert_int_equal(rule("at packet 9 drop 50%")->share, FAULT_ALWAYS / 2);
	assert_int_equal(rule("from packet 9 drop")->first, 9);
	assert_int_equal(rule("from packet 9 drop")->count, UINT64_MAX);
	assert_int_equal(rule("from packet 9 drop 3")->count, 3);
	assert_int_equal(rule("from packet 9 for 4 packets drop 10%")->count, 4);
	assert_int_equal(rule("for 4 packets drop")->first, 1);
	assert_int_equal(rule("for 4 packets drop")->count, 4);
	assert_int_equal(rule("for 1 packet drop")->count, 1);
}

TEST(conditions)
{
	assert_int_equal(rule("on rc drop")->transports, 1u << FAULT_RC);
	assert_int_equal(rule("on uc, ud,xrc drop")->transports, 1u << FAULT_UC | 1u << FAULT_UD | 1u << FAULT_XRC);
	assert_int_equal(rule("on dc drop")->transports, 1u << FAULT_DC);
	assert_int_equal(rule("drop")->kinds, ALL_KINDS);
	assert_int_equal(rule("of send drop")->kinds, 1u << FAULT_SEND | CM_KINDS);
	assert_int_equal(rule("of write drop")->kinds, 1u << FAULT_WRITE);
	assert_int_equal(rule("of read drop")->kinds, 1u << FAULT_READ);
	assert_int_equal(rule("of read response drop")->kinds, 1u << FAULT_READ_RESPONSE);
	assert_int_equal(rule("of atomic drop")->kinds, 1u << FAULT_ATOMIC);
	assert_int_equal(rule("of atomic response drop")->kinds, 1u << FAULT_ATOMIC_RESPONSE);
	assert_int_equal(rule("of ack drop")->kinds, 1u << FAULT_ACK);
	assert_int_equal(rule("of nak drop")->kinds, 1u << FAULT_NAK);
	assert_int_equal(rule("of rnr nak drop")->kinds, 1u << FAULT_RNR_NAK);
	assert_int_equal(rule("of request drop")->kinds, 1u << FAULT_SEND | CM_KINDS | 1u << FAULT_WRITE |
								 1u << FAULT_READ | 1u << FAULT_ATOMIC |
								 1u << FAULT_DISCONNECT);
	assert_int_equal(rule("of response drop")->kinds, 1u << FAULT_READ_RESPONSE | 1u << FAULT_ATOMIC_RESPONSE |
								  1u << FAULT_ACK | 1u << FAULT_NAK |
								  1u << FAULT_RNR_NAK);
	assert_int_equal(rule("of cnp drop")->kinds, 1u << FAULT_CNP);
	assert_int_equal(rule("of nak, rnr nak drop")->kinds, 1u << FAULT_NAK | 1u << FAULT_RNR_NAK);
	assert_int_equal(rule("of cm drop")->kinds, CM_KINDS);
	assert_int_equal(rule("of cm req drop")->kinds, 1u << FAULT_CM_REQ);
	assert_int_equal(rule("of cm mra drop")->kinds, 1u << FAULT_CM_MRA);
	assert_int_equal(rule("of cm rej drop")->kinds, 1u << FAULT_CM_REJ);
	assert_int_equal(rule("of cm rep drop 50%")->kinds, 1u << FAULT_CM_REP);
	assert_int_equal(rule("of cm rtu drop")->kinds, 1u << FAULT_CM_RTU);
	assert_int_equal(rule("of cm dreq, cm drep drop")->kinds, 1u << FAULT_CM_DREQ | 1u << FAULT_CM_DREP);
	assert_int_equal(rule("of cm sidr req drop")->kinds, 1u << FAULT_CM_SIDR_REQ);
	assert_int_equal(rule("of cm sidr rep, write drop")->kinds, 1u << FAULT_CM_SIDR_REP | 1u << FAULT_WRITE);
	/* A list ends where there is no comma. */
	assert_int_equal(rule("of send rnr 1%")->action, FAULT_RNR);
	assert_true(rule("of qp 66 to qp 0xffffff drop")->of_qp);
	assert_int_equal(script.rule[0].sender, 66);
	assert_true(script.rule[0].to_qp);
	assert_int_equal(script.rule[0].destination, 0xffffff);
	assert_int_equal(rule("of qp 1 of write on rc at packet 3 drop")->kinds, 1u << FAULT_WRITE);
}

TEST(actions)
{
	assert_int_equal(rule("duplicate 3%")->action, FAULT_DUPLICATE);
	assert_int_equal(rule("reorder 3%")->by, 1);
	assert_int_equal(rule("reorder by 4")->by, 4);
	assert_int_equal(rule("reorder by 4")->share, FAULT_ALWAYS);
	assert_int_equal(rule("corrupt payload")->kinds,
			 1u << FAULT_SEND | CM_KINDS | 1u << FAULT_WRITE | 1u << FAULT_READ_RESPONSE);
	assert_int_equal(rule("corrupt frame 2")->action, FAULT_CORRUPT_FRAME);
	assert_int_equal(rule("kill")->action, FAULT_KILL);
	assert_int_equal(rule("at packet 100 kill")->count, 1);
	assert_int_equal(rule("rnr 10%")->transports, 1u << FAULT_RC | 1u << FAULT_XRC | 1u << FAULT_DC);
	assert_int_equal(rule("rnr 10%")->kinds, 1u << FAULT_SEND | 1u << FAULT_WRITE);
}

TEST(delays)
{
	assert_int_equal(rule("delay 7ns")->least_ns, 7);
	assert_int_equal(rule("delay 7ns")->most_ns, 7);
	assert_int_equal(rule("delay 1.5us..1s")->least_ns, 1500);
	assert_int_equal(script.rule[0].most_ns, 1000000000);
	assert_int_equal(rule("delay 0.000000001s 5%")->least_ns, 1);
	assert_int_equal(script.rule[0].share, 5000000);
	assert_int_equal(rule("delay 1 ms .. 2 ms 3")->count, 3);
	assert_int_equal(rule("delay 3600s")->least_ns, UINT64_C(3600000000000));
}

static void wrong(const char *text, uint32_t line, uint32_t column, const char *message)
{
	int result = fault_script_parse(&script, text, &error);

	if (!result)
		fail_msg("%s was taken", text);
	assert_int_equal(result, -EINVAL);
	if (error.line != line || error.column != column || strcmp(error.text, message))
		fail_msg("%s: got line %u, column %u: %s\nexpected line %u, column %u: %s", text, error.line,
			 error.column, error.text, line, column, message);
}

#define STATEMENT                                                                                                         \
	"expected seed, a condition (on, of, to, at, from, for) or an action (drop, duplicate, reorder, corrupt, delay, " \
	"rnr, kill), not "
#define KINDS                                                                                                                       \
	"expected qp, send, write, read, read response, atomic, atomic response, ack, nak, rnr nak, cnp, cm, request or response, " \
	"not "
#define END "expected \";\" or the end of the line, not "

TEST(errors)
{
	wrong("foo", 1, 1, STATEMENT "\"foo\"");
	wrong("Drop", 1, 1, STATEMENT "\"Drop\"");
	wrong("drop 1%; foo", 1, 10, STATEMENT "\"foo\"");
	wrong("drop 1%\n\n  foo", 3, 3, STATEMENT "\"foo\"");
	wrong("# comment\n\tdrop 1% # more\n\t7", 3, 2, STATEMENT "\"7\"");
	wrong("on rc", 1, 6, STATEMENT "the end of the script");
	wrong("on rc;", 1, 6, STATEMENT "\";\"");
	wrong("on rc\ndrop", 1, 6, STATEMENT "the end of the line");
	wrong("!", 1, 1, STATEMENT "\"!\"");
	wrong("\xc3\xa4", 1, 1, STATEMENT "byte 0xc3");
	wrong("abcdefghijklmnopqrstuvwxyz", 1, 1, STATEMENT "\"abcdefghijklmnopqrstuvwx...\"");
	wrong("on rd drop", 1, 4, "expected rc, uc, ud, xrc or dc, not \"rd\"");
	wrong("on rc, drop", 1, 8, "expected rc, uc, ud, xrc or dc, not \"drop\"");
	wrong("on rc on uc drop", 1, 7, "this was already given");
	wrong("of foo drop", 1, 4, KINDS "\"foo\"");
	wrong("of rnr drop", 1, 8, "expected \"nak\", not \"drop\"");
	wrong("of cm sidr drop", 1, 12, "expected \"req\" or \"rep\", not \"drop\"");
	wrong("of cm lap drop", 1, 7, STATEMENT "\"lap\"");
	wrong("of send of write drop", 1, 12, "this was already given");
	wrong("of qp x drop", 1, 7, "expected the number of a QP, 0 to 0xffffff, not \"x\"");
	wrong("of qp 0x1000000 drop", 1, 7, "expected the number of a QP, 0 to 0xffffff, not \"0x1000000\"");
	wrong("of qp 1 of qp 2 drop", 1, 12, "this was already given");
	wrong("to send drop", 1, 4, "expected \"qp\", not \"send\"");
	wrong("to qp 1 to qp 2 drop", 1, 12, "this was already given");
	wrong("at 5 drop", 1, 4, "expected \"packet\", not \"5\"");
	wrong("at packet 0 drop", 1, 11, "expected the number of a packet, from 1, not \"0\"");
	wrong("at packet 1.5 drop", 1, 11, "expected the number of a packet, from 1, not \"1.5\"");
	wrong("at packet 99999999999999999999 drop", 1, 11,
	      "expected the number of a packet, from 1, not \"99999999999999999999\"");
	wrong("at packet 1 from packet 2 drop", 1, 13, "this was already given");
	wrong("for packets drop", 1, 5, "expected how many packets, from 1, not \"packets\"");
	wrong("for 3 drop", 1, 7, "expected \"packets\", not \"drop\"");
	wrong("for 3 packets for 4 packets drop", 1, 15, "this was already given");
	wrong("for 3 packets drop 4", 1, 20, "\"for\" already gives the number of packets");
	wrong("drop 101%", 1, 6, "expected a share of 0% to 100%, not \"101\"");
	wrong("drop 100.1%", 1, 6, "expected a share of 0% to 100%, not \"100.1\"");
	wrong("drop 99999999999999999999%", 1, 6, "expected a share of 0% to 100%, not \"99999999999999999999\"");
	wrong("drop -1%", 1, 6, END "\"-\"");
	wrong("drop 1.5", 1, 9, "expected \"%\", not the end of the script");
	wrong("drop 0", 1, 6, "expected a share (1%) or how many packets, from 1, not \"0\"");
	wrong("drop 1% of send", 1, 9, END "\"of\"");
	wrong("drop 1%%", 1, 8, END "\"%\"");
	wrong("corrupt 1%", 1, 9, "expected \"payload\" or \"frame\", not \"1\"");
	wrong("reorder 1% by", 1, 14, "expected how many packets overtake, 1 to 1000, not the end of the script");
	wrong("reorder by 0", 1, 12, "expected how many packets overtake, 1 to 1000, not \"0\"");
	wrong("reorder by 1001", 1, 12, "expected how many packets overtake, 1 to 1000, not \"1001\"");
	wrong("delay", 1, 6, "expected a time, such as 50us, not the end of the script");
	wrong("delay 5", 1, 8, "expected ns, us, ms or s, not the end of the script");
	wrong("delay 5%", 1, 8, "expected ns, us, ms or s, not \"%\"");
	wrong("delay 5us..", 1, 12, "expected a time, such as 50us, not the end of the script");
	wrong("delay 5us..4us", 1, 12, "expected a time not shorter than the first, not \"4\"");
	wrong("delay 3601s", 1, 7, "expected a time of at most one hour, not \"3601\"");
	wrong("kill 1%", 1, 6, END "\"1\"");
	wrong("on ud rnr 1%", 1, 7, "expected an action that can happen to these packets, not \"rnr\"");
	wrong("of ack rnr 1%", 1, 8, "expected an action that can happen to these packets, not \"rnr\"");
	wrong("of ack corrupt payload 1%", 1, 8,
	      "expected an action that can happen to these packets, not \"corrupt\"");
	wrong("seed", 1, 5, "expected a number of at most 64 bits, not the end of the script");
	wrong("seed x", 1, 6, "expected a number of at most 64 bits, not \"x\"");
	wrong("seed 18446744073709551616", 1, 6, "expected a number of at most 64 bits, not \"18446744073709551616\"");
	wrong("seed 1; seed 2", 1, 9, "this was already given");
}

TEST(as_many_rules_as_fit)
{
	char text[(FAULT_RULES + 1) * 5 + 1] = "";

	for (int i = 0; i < FAULT_RULES; i++)
		strcat(text, "drop;");
	assert_int_equal(fault_script_parse(&script, text, &error), 0);
	assert_int_equal(script.count, FAULT_RULES);
	strcat(text, "drop;");
	wrong(text, 1, FAULT_RULES * 5 + 1, "a script has at most 64 rules");
}

TEST(largest_seed)
{
	assert_int_equal(fault_script_parse(&script, "seed 0xffffffffffffffff", &error), 0);
	assert_true(script.seed == UINT64_MAX);
}

TEST(files)
{
	char path[] = "/tmp/softhca-faults-XXXXXX", message[512], want[256];
	static char large[FAULT_TEXT_BYTES];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "# file\ndrop 3\n", 14), 14);
	assert_int_equal(fault_script_read(&script, path, &error, message, sizeof(message)), 0);
	assert_int_equal(script.rule[0].count, 3);
	assert_int_equal(write(fd, "oops", 4), 4);
	assert_int_equal(fault_script_read(&script, path, &error, message, sizeof(message)), -EINVAL);
	snprintf(want, sizeof(want), "%s: line 3, column 1: expected seed", path);
	assert_memory_equal(message, want, strlen(want));
	/* A file that is too large is rejected rather than read in part. */
	memset(large, '\n', sizeof(large));
	assert_int_equal(pwrite(fd, large, sizeof(large), 0), sizeof(large));
	assert_int_equal(fault_script_read(&script, path, &error, message, sizeof(message)), -EFBIG);
	assert_int_equal(error.line, 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, "drop\0junk", 9, 0), 9);
	assert_int_equal(fault_script_read(&script, path, &error, message, sizeof(message)), -EILSEQ);
	close(fd);
	unlink(path);
	/* An argument that is not a file is a script. */
	assert_int_equal(fault_script_read(&script, path, &error, message, sizeof(message)), -EINVAL);
	assert_non_null(strstr(message, "line 1, column 1: expected seed"));
	assert_non_null(strstr(message, "(and no file of that name exists)"));
	assert_int_equal(fault_script_read(&script, "/tmp", &error, message, sizeof(message)), -EISDIR);
	assert_int_equal(fault_script_read(&script, "drop 1%", &error, message, sizeof(message)), 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading of a fault script, and its effect on a frame; see faults.h. */
#include "filter/faults.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "wire/routes.h"

#define FLOWS 256 /* size of the hash table; a power of two */

struct faults {
	struct fault_script script;
	uint64_t seed;
	uint64_t frames;
	uint64_t candidates[FAULT_RULES], applied[FAULT_RULES];
	struct fault_flow *flow[FLOWS];
};

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Returns 1 with the file's text in @text, 0 if it does not exist, or a negative errno. */
static int script_read_file(const char *path, char *text, size_t size)
{
	struct stat status;
	size_t length;
	FILE *file;
	int error;

	if (stat(path, &status))
		return 0;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	file = fopen(path, "re");
	if (!file)
		return -errno;
	length = fread(text, 1, size, file);
	error = ferror(file) ? -EIO : length == size ? -EFBIG : memchr(text, 0, length) ? -EILSEQ : 0;
	fclose(file);
	text[length < size ? length : size - 1] = '\0';
	return error ? error : 1;
}

int fault_script_read(struct fault_script *script, const char *setting, struct fault_error *error, char *message,
		      size_t size)
{
	const char *hint = strpbrk(setting, " ;\n") ? "" : " (and no file of that name exists)";
	char *text = malloc(FAULT_TEXT_BYTES);
	int file = text ? script_read_file(setting, text, FAULT_TEXT_BYTES) : -ENOMEM, result;

	*error = (struct fault_error){.line = 0};
	if (file < 0) {
		snprintf(message, size, "%.200s: %s", setting, strerror(-file));
		free(text);
		return file;
	}
	result = fault_script_parse(script, file ? text : setting, error);
	if (result)
		snprintf(message, size, "%.200s%sline %" PRIu32 ", column %" PRIu32 ": %s%s", file ? setting : "",
			 file ? ": " : "", error->line, error->column, error->text, file ? "" : hint);
	free(text);
	return result;
}

/* ---- decisions ------------------------------------------------------------------------------------------------- */

struct faults *faults_new(const struct fault_script *script, uint64_t seed, size_t device)
{
	struct faults *faults = calloc(1, sizeof(*faults));

	if (!faults)
		return NULL;
	faults->script = *script;
	if (!script->seeded)
		faults->script.seed = seed;
	/* Makes the devices of a process differ. */
	faults->seed = faults->script.seed + device * UINT64_C(0x632be59bd9b4e019);
	return faults;
}

void faults_free(struct faults *faults)
{
	if (!faults)
		return;
	for (size_t i = 0; i < FLOWS; i++) {
		struct fault_flow *flow;

		while ((flow = faults->flow[i])) {
			faults->flow[i] = flow->next;
			free(flow);
		}
	}
	free(faults);
}

const struct fault_script *faults_script(const struct faults *faults)
{
	return &faults->script;
}

uint64_t faults_frames(const struct faults *faults)
{
	return faults->frames;
}

static struct fault_flow *flow_of(struct faults *faults, uint32_t sender)
{
	struct fault_flow **bucket = &faults->flow[sender % FLOWS], *flow;

	for (flow = *bucket; flow; flow = flow->next)
		if (flow->sender == sender)
			return flow;
	flow = calloc(1, sizeof(*flow) + faults->script.count * sizeof(flow->seen[0]));
	if (!flow)
		return NULL;
	flow->sender = sender;
	flow->next = *bucket;
	*bucket = flow;
	return flow;
}

/* The finalizer of splitmix64. */
static uint64_t bits_mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/*
 * Returns 64 bits for frame @number of a rule. The slot in the QP number varies between runs, so only the part from the
 * order of QP creation counts. Requests and answers get different bits, because both ends of a connection often have
 * the same part.
 */
static uint64_t rule_draw(const struct faults *faults, uint32_t rule, const struct fault_subject *subject,
			  uint64_t number)
{
	bool answers = subject->kind >= FAULT_READ_RESPONSE && subject->kind <= FAULT_CNP;
	uint64_t place = (subject->sender & ((1u << HOST_SLOT_BITS) - 1)) << 8 | rule << 1 | answers;

	return bits_mix(bits_mix(bits_mix(faults->seed) + place) + number * UINT64_C(0x9e3779b97f4a7c15));
}

static bool rule_is_about(const struct fault_rule *rule, const struct fault_subject *subject)
{
	return rule->transports >> subject->transport & 1 && rule->kinds >> subject->kind & 1 &&
	       (!rule->of_qp || rule->sender == subject->sender) &&
	       (!rule->to_qp || rule->destination == subject->destination) &&
	       (rule->action != FAULT_CORRUPT_PAYLOAD || subject->payload);
}

/* @random: for the effect of the rule. */
static bool rule_applies(struct faults *faults, uint32_t i, const struct fault_subject *subject,
			 struct fault_flow *flow, uint64_t *random)
{
	const struct fault_rule *rule = &faults->script.rule[i];
	uint64_t number;

	if (!rule_is_about(rule, subject))
		return false;
	number = ++flow->seen[i];
	if (number < rule->first || number - rule->first >= rule->count)
		return false;
	faults->candidates[i]++;
	*random = rule_draw(faults, i, subject, number);
	if (*random % FAULT_ALWAYS >= rule->share)
		return false;
	faults->applied[i]++;
	*random = bits_mix(*random);
	return true;
}

static void rule_apply(const struct fault_rule *rule, uint64_t random, struct fault_verdict *verdict)
{
	switch (rule->action) {
	case FAULT_DROP:
		verdict->drop = true;
		break;
	case FAULT_DUPLICATE:
		verdict->copies++;
		break;
	case FAULT_REORDER:
		verdict->overtake += rule->by;
		break;
	case FAULT_CORRUPT_PAYLOAD:
		verdict->corrupt_payload = true;
		verdict->payload_draw = random;
		break;
	case FAULT_CORRUPT_FRAME:
		verdict->corrupt_frame = true;
		verdict->frame_draw = random;
		break;
	case FAULT_DELAY:
		verdict->delay_ns += rule->least_ns + random % (rule->most_ns - rule->least_ns + 1);
		break;
	case FAULT_KILL:
		verdict->kill = true;
		break;
	case FAULT_RNR:
	case FAULT_ACTIONS:
		break;
	}
}

void faults_decide(struct faults *faults, const struct fault_subject *subject, struct fault_verdict *verdict)
{
	struct fault_flow *flow = flow_of(faults, subject->sender);
	uint64_t random;

	*verdict = (struct fault_verdict){.flow = flow};
	faults->frames++;
	for (uint32_t i = 0; flow && i < faults->script.count; i++)
		if (faults->script.rule[i].action != FAULT_RNR && rule_applies(faults, i, subject, flow, &random))
			rule_apply(&faults->script.rule[i], random, verdict);
}

bool faults_refuse(struct faults *faults, const struct fault_subject *subject)
{
	struct fault_flow *flow = flow_of(faults, subject->sender);
	bool refuse = false;
	uint64_t random;

	for (uint32_t i = 0; flow && i < faults->script.count; i++)
		if (faults->script.rule[i].action == FAULT_RNR)
			refuse |= rule_applies(faults, i, subject, flow, &random);
	return refuse;
}

void faults_summary(const struct faults *faults, void (*put)(void *argument, const char *line), void *argument)
{
	char line[FAULT_RULE_TEXT + 100];

	snprintf(line, sizeof(line), "faults: %" PRIu64 " frames, seed %" PRIu64, faults->frames, faults->script.seed);
	put(argument, line);
	for (uint32_t i = 0; i < faults->script.count; i++) {
		snprintf(line, sizeof(line), "faults: %s: %" PRIu64 " of %" PRIu64, faults->script.rule[i].text,
			 faults->applied[i], faults->candidates[i]);
		put(argument, line);
	}
}

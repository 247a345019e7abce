/* SPDX-License-Identifier: BSD-2-Clause */
/* From the table commands.def. Constant data. */
#ifndef SOFTHCA_TOOL_COMMANDS_H
#define SOFTHCA_TOOL_COMMANDS_H

#include <stdbool.h>

/* COMMAND_RUN, … */
enum command {
#define COMMAND(NAME, ...) COMMAND_##NAME,
#include "tool/commands.def"
	COMMAND_COUNT
};

/* OPTION_RUN_NO_PRESENCE, …: options that are not settings. */
enum own_option {
#define OPTION(COMMAND, NAME, ...) OPTION_##COMMAND##_##NAME,
#include "tool/commands.def"
	OWN_OPTION_COUNT
};

struct command_info {
	const char *name;
	bool settings; /* accepts all settings as options */
	const char *arguments, *doc, *example;
};

struct own_option_info {
	enum command command;
	const char *name, *value, *doc; /* value: "" if the option takes none */
};

extern const struct command_info command_infos[COMMAND_COUNT];
extern const struct own_option_info own_option_infos[OWN_OPTION_COUNT];

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of commands.def. */
#include "tool/commands.h"

#define SETTINGS true
#define NOTHING false

const struct command_info command_infos[COMMAND_COUNT] = {
#define COMMAND(NAME, name, takes, arguments, doc, example) [COMMAND_##NAME] = {name, takes, arguments, doc, example},
#include "tool/commands.def"
};

const struct own_option_info own_option_infos[OWN_OPTION_COUNT] = {
#define OPTION(command, NAME, name, value, doc) [OPTION_##command##_##NAME] = {COMMAND_##command, name, value, doc},
#include "tool/commands.def"
};

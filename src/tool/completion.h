/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the completion scripts. One thread. */
#ifndef SOFTHCA_TOOL_COMPLETION_H
#define SOFTHCA_TOOL_COMPLETION_H

#include "tool/tool.h"

enum { COMPLETION_BYTES = 4096 };

struct completion_value {
	char words[COMPLETION_BYTES]; /* separated by blanks */
	bool files, directories;
	bool optional; /* only after = */
};

enum completion_arguments {
	COMPLETION_NONE,
	COMPLETION_FILES,
	COMPLETION_RULES,
	COMPLETION_PROGRAM,
	COMPLETION_HOST, /* a host, then a program */
};

void completion_of_setting(enum setting setting, struct completion_value *value);
void completion_of_option(const struct own_option_info *info, struct completion_value *value);

/** Writes allowed first arguments, separated by blanks. */
void completion_words(enum command command, char words[COMPLETION_BYTES]);

enum completion_arguments completion_arguments(enum command command);

void completion_print_bash(void);
void completion_print_zsh(void);
void completion_print_fish(void);

#endif

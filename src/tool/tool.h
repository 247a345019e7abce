/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the commands. One thread; the process exits after one command, so nothing is freed. */
#ifndef SOFTHCA_TOOL_TOOL_H
#define SOFTHCA_TOOL_TOOL_H

#include "core/settings.h"
#include "tool/commands.h"

struct ibv_device;

enum exit_status {
	EXIT_WRONG_USE = 2,
	EXIT_CANNOT_RUN = 126, /* as env(1) and shells */
	EXIT_NOT_FOUND = 127,
};

/** Prints "softhca: …" on stderr and exits. */
_Noreturn void tool_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * Fills @settings from the environment and then from options in @argv (from index 1), and @own, by enum own_option,
 * from those of @command (value, or "" without one). Returns the index of the first argument, after "--" if present.
 * Exits with EXIT_WRONG_USE on an unknown option or a bad value, also in the environment; on --help prints the help.
 * @own may be NULL.
 */
int options_parse(enum command command, int argc, char **argv, struct settings *settings, const char *own[]);

/** As options_parse(), but exits with EXIT_WRONG_USE if there is an argument. */
void options_parse_all(enum command command, int argc, char **argv, struct settings *settings, const char *own[]);

/**
 * Parses options, anywhere, of a command without settings. Moves the arguments to @argv[1] and following; returns their
 * number.
 */
int own_options_parse(enum command command, int argc, char **argv, const char *own[]);

/** Converts a name of a table: DEVICE_NAME becomes device-name. Truncates to @size, > 0. */
void option_word(const char *name, char *out, size_t size);
/** Writes the name of an option, without dashes. */
void option_name(enum setting setting, char *out, size_t size);

/** Puts settings from options into the environment, with their origin (SETTINGS_FROM_OPTIONS). */
void options_export(const struct settings *settings);

/** Print a screen with the commands; everything; one command with an example. */
void help_print_short(void);
void help_print(void);
void help_print_command(enum command command);

/** Best suggestion so far for a misspelt word; initially only @wanted is set. */
struct suggestion {
	const char *wanted;
	bool found;
	uint32_t mistakes;
};

/** Returns true if @word is more similar than words of earlier calls. */
bool suggestion_is_better(struct suggestion *suggestion, const char *word);

/** Returns an absolute path, in the build tree or installed; exits if there is none. */
const char *library_directory(void);

/** As library_directory(), for src/tool/python. */
const char *script_directory(void);

/** Exits with one line unless PATH has python3. */
void python_require(const char *what);

/** Replaces this process by script @name of src/tool/python. Without python3, exits with one line. */
_Noreturn void python_run(const char *name, int count, char **arguments);

/** As python_run(), but waits for a child that writes to @out. Returns true if it succeeded. */
bool python_wait(const char *name, int count, char **arguments, int out);

/** Puts softhca's libraries first in LD_LIBRARY_PATH. */
void library_path_export(void);

/**
 * Shows this process, and the program that replaces it, character devices in /dev/infiniband and files in
 * /sys/class/infiniband, as far as the kernel allows. Otherwise programs that use UCX report it. Single-threaded
 * callers only.
 */
void presence_make(const struct settings *settings);

/** Checks for a character device for each of @devices. */
bool presence_nodes_exist(uint32_t devices);

/**
 * If @settings have a timeline, or @report (a page) or @error_status is not NULL, returns in a child that is to become
 * the program @command, with an absolute path of the timeline. The original process waits for it, makes trace and page,
 * and ends as the program, or with @error_status if anything was explained.
 */
void run_and_collect(struct settings *settings, char *const command[], const char *report, const char *error_status);

/** Exits with one line if an output cannot be opened. Creates no files. */
void outputs_check(const struct settings *settings);

/** Sets what the user left to default as `softhca run` does; @presence: with files of the device. */
void run_defaults(struct settings *settings, bool presence);

/** Replaces each %p by the number of this process. Exits with one line about @option if the result is too long. */
void output_path(const char *option, const char *path, char *out, size_t size);

/** Print a rule as an object; all rules as an array. */
void rule_print_json(int number);
void rules_print_json(void);

/* Parts of softhca info. Those called …_json write members of an object, each after a comma. */

/** Print usable links; @settings: of the port. */
void links_print(const struct settings *settings);
void links_print_json(const struct settings *settings);
/** Print listening processes, and numbers of connections. */
void listeners_print(void);
void listeners_print_json(void);
void counters_print(void);
void counters_print_json(void);
/** Returns the name of an enum ibv_gid_type. */
const char *info_gid_type_name(uint32_t type);
/** @devices: NULL-terminated. Returns 0, or a negative errno if a device cannot be queried. */
int info_print_json(const struct settings *settings, struct ibv_device **devices);

/* @argv[0] is the command's name. Each returns the exit status, or becomes the program. */
int command_run(int argc, char **argv);
int command_env(int argc, char **argv);
int command_info(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_top(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_decode(int argc, char **argv);
int command_encode(int argc, char **argv);
int command_timeline(int argc, char **argv);
int command_report(int argc, char **argv);
int command_hosts(int argc, char **argv);
int command_on(int argc, char **argv);
int command_data(int argc, char **argv);
int command_completion(int argc, char **argv);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions shared by the commands of softhca. One thread; the process exits after one command, so nothing is freed.
 * Exit status: 0, 1 (failed), 2 (wrong usage: one line on stderr explains it).
 */
#ifndef SOFTHCA_TOOL_TOOL_H
#define SOFTHCA_TOOL_TOOL_H

#include "core/settings.h"
#include "tool/commands.h"

struct ibv_device;

enum exit_status {
	EXIT_WRONG_USE = 2,
	EXIT_CANNOT_RUN = 126, /* as env(1) and the shell */
	EXIT_NOT_FOUND = 127,
};

/** Prints "softhca: …" as one line on stderr and exits with @status. */
_Noreturn void tool_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * Fills @settings from the environment and then from the options in @argv (from index 1): --name value, --name=value
 * for each setting, and the own options of @command into @own (by enum own_option; value, or "" of those that have none). Stops
 * after "--" or at the first argument that is not an option and returns its index. Exits with EXIT_WRONG_USE on an unknown option
 * or a bad value, also one in the environment; on --help prints the help. @own may be NULL if the command has no own options.
 */
int options_parse(enum command command, int argc, char **argv, struct settings *settings, const char *own[]);

/** Parses as options_parse() for a command that takes only options: exits with EXIT_WRONG_USE if there is an argument. */
void options_parse_all(enum command command, int argc, char **argv, struct settings *settings, const char *own[]);

/**
 * Parses the own options of a command without settings, which may stand anywhere. Moves the arguments to @argv[1] and following
 * and returns their number.
 */
int own_options_parse(enum command command, int argc, char **argv, const char *own[]);

/**
 * Writes the @name of a table to @out in the form of command lines: DEVICE_NAME becomes device-name. Truncated to
 * @size, which is > 0.
 */
void option_word(const char *name, char *out, size_t size);
/** Writes the option of @setting, without its dashes, to @out. */
void option_name(enum setting setting, char *out, size_t size);

/** Puts the settings that are options into the environment, with their origin (SETTINGS_FROM_OPTIONS). */
void options_export(const struct settings *settings);

/** Print the help: a screen with the commands; all commands, options and settings; one command with an example. */
void help_print_short(void);
void help_print(void);
void help_print_command(enum command command);

/** The best suggestion so far for a misspelt word; begins with all members 0 except @wanted. */
struct suggestion {
	const char *wanted;
	bool found;
	uint32_t mistakes;
};

/** Returns true if @word is similar to the wanted word, and more so than the words of earlier calls. */
bool suggestion_is_better(struct suggestion *suggestion, const char *word);

/**
 * Returns the absolute path of the directory with softhca's libraries, in the build tree or installed; exits if there
 * is none.
 */
const char *library_directory(void);

/** Returns the absolute path of the directory with the Python parts of the command. As library_directory(). */
const char *script_directory(void);

/** Exits with one line unless PATH has a python3, which @what needs. */
void python_require(const char *what);

/**
 * Runs the part @name of the command that is written in Python (src/tool/python) in the place of this process, with @count
 * @arguments. It exits as a command does. Without python3 this exits with one line.
 */
_Noreturn void python_run(const char *name, int count, char **arguments);

/** As python_run(), in a child that writes to descriptor @out, and waits for it. Returns true if it succeeded. */
bool python_wait(const char *name, int count, char **arguments, int out);

/** Puts softhca's libraries first in LD_LIBRARY_PATH, for programs that this process starts. */
void library_path_export(void);

/**
 * Shows this process, and the program that replaces it, a character device in /dev/infiniband and files in
 * /sys/class/infiniband for each device by @settings, as far as the kernel allows. If it does not, programs that use
 * UCX report it. Called by a single-threaded process.
 */
void presence_make(const struct settings *settings);

/** Returns true if /dev/infiniband has a character device for each of @devices. */
bool presence_nodes_exist(uint32_t devices);

/**
 * Implements options of `softhca run`. If @settings have a timeline, or @report (a page) or @error_status is not NULL,
 * returns in a child that is to become the program @command, with an absolute path of the timeline. The original
 * process waits for the child, makes the trace and the page, and ends as the program has ended, or with @error_status
 * if anything was explained.
 */
void run_and_collect(struct settings *settings, char *const command[], const char *report, const char *error_status);

/** Exits with one line if an output that @settings name cannot be opened. Creates no files. */
void outputs_check(const struct settings *settings);

/**
 * Writes @path to @out and replaces each %p by the number of this process. Exits with one line about @option if the
 * result is too long.
 */
void output_path(const char *option, const char *path, char *out, size_t size);

/** Prints the rule @number as an object, and all rules as an array of such objects. */
void rule_print_json(int number);
void rules_print_json(void);

/* Parts of softhca info. Those called ..._json write members of an object, each after a comma. */

/** Print which links can be used here, and how; @settings: of the port. */
void links_print(const struct settings *settings);
void links_print_json(const struct settings *settings);
/** Print which processes of this host listen for connections, and how many connections each has. */
void listeners_print(void);
void listeners_print_json(void);
/** Print the names of the counters and their meaning. */
void counters_print(void);
void counters_print_json(void);
/** Returns the name of a type of GIDs (enum ibv_gid_type). */
const char *info_gid_type_name(uint32_t type);
/**
 * Prints all of softhca info as an object. @devices: NULL-terminated. Returns 0, or a negative errno if a device cannot be
 * queried.
 */
int info_print_json(const struct settings *settings, struct ibv_device **devices);

/*
 * The commands; @argv[0] is the command's name. Each returns the exit status, or replaces this process by the program.
 */
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

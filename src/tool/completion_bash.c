/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca completion bash. */
#include <stdio.h>
#include <string.h>

#include "tool/completion.h"

static void bash_print_commands(void)
{
	printf("\tlocal commands='");
	for (int i = 0; i < COMMAND_COUNT; i++)
		printf("%s ", command_infos[i].name);
	puts("help --help --version'");
}

static void bash_print_options(enum command command)
{
	char name[64];

	for (int i = 0; i < OWN_OPTION_COUNT; i++)
		if (own_option_infos[i].command == command)
			printf("--%s ", own_option_infos[i].name);
	for (int i = 0; command_infos[command].settings && i < SETTING_COUNT; i++) {
		option_name(i, name, sizeof(name));
		printf("--%s ", name);
	}
	printf("--help");
}

/* Sets `options`, `words` (allowed first arguments) and `kind` (of the other arguments). */
static void bash_print_commands_case(void)
{
	static const char *const kinds[] = {"", "files", "rules", "program", "hosts"};
	char words[COMPLETION_BYTES];

	puts("\tcase ${COMP_WORDS[1]} in");
	for (int i = 0; i < COMMAND_COUNT; i++) {
		printf("\t%s)\n\t\toptions='", command_infos[i].name);
		bash_print_options(i);
		completion_words(i, words);
		printf("'\n\t\twords='%s' kind=%s\n\t\t;;\n", words, kinds[completion_arguments(i)]);
	}
	puts("\tesac");
}

static void bash_print_value(const struct completion_value *value)
{
	printf("takes=%s files=%s values='%s'\n\t\t;;\n", value->optional ? "$equals" : "1",
	       value->directories ? "-d"
	       : value->files     ? "-f"
				  : "",
	       value->words);
}

/* Sets `values` of `option`, and `files`, the option of compgen that offers them. */
static void bash_print_values_case(void)
{
	struct completion_value value;
	char name[64];

	puts("\tcase ${COMP_WORDS[1]}:$option in");
	for (int i = 0; i < OWN_OPTION_COUNT; i++) {
		const struct own_option_info *info = &own_option_infos[i];

		if (!*info->value)
			continue;
		completion_of_option(info, &value);
		printf("\t%s:--%s)\n\t\t", command_infos[info->command].name, info->name);
		bash_print_value(&value);
	}
	for (int i = 0; i < SETTING_COUNT; i++) {
		option_name(i, name, sizeof(name));
		completion_of_setting(i, &value);
		printf("\t*:--%s)\n\t\t", name);
		bash_print_value(&value);
	}
	puts("\tesac");
}

/* For bash, "=" is a separate word (COMP_WORDBREAKS). */
static const char before[] = "# bash completion for softhca; made by `softhca completion`.\n"
			     "_softhca()\n"
			     "{\n"
			     "\tlocal word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}\n"
			     "\tlocal options= words= kind= takes= values= files= first= equals=\n";
static const char first_word[] = "\tif ((COMP_CWORD == 1)); then\n"
				 "\t\tCOMPREPLY=($(compgen -W \"$commands\" -- \"$word\"))\n"
				 "\t\treturn\n"
				 "\tfi\n"
				 "\tif [[ $word == = ]]; then\n"
				 "\t\tword= equals=1\n"
				 "\telif [[ $option == = ]]; then\n"
				 "\t\toption=${COMP_WORDS[COMP_CWORD - 2]} equals=1\n"
				 "\tfi\n";
/* Arguments begin at the first word that is not an option or its value. */
static const char loop_begins[] = "\tlocal last=$option at\n"
				  "\tfor ((at = 2; at < COMP_CWORD; at++)); do\n"
				  "\t\toption=${COMP_WORDS[at]}\n"
				  "\t\tif [[ $option == -- ]]; then\n"
				  "\t\t\tfirst=$((at + 1))\n"
				  "\t\t\tbreak\n"
				  "\t\telif [[ ${COMP_WORDS[1]} == hosts && $option =~ ^[0-9]+$ ]]; then\n"
				  "\t\t\tcontinue\n"
				  "\t\telif [[ $option != -* || $option == - ]]; then\n"
				  "\t\t\tfirst=$at\n"
				  "\t\t\tbreak\n"
				  "\t\tfi\n"
				  "\t\ttakes=\n"
				  "\t\t_softhca_values\n"
				  "\t\tif [[ ${COMP_WORDS[at + 1]} == = ]]; then\n"
				  "\t\t\t((at += 2))\n"
				  "\t\telif [[ $takes ]]; then\n"
				  "\t\t\t((at++))\n"
				  "\t\tfi\n"
				  "\tdone\n"
				  "\toption=$last takes= values= files=\n"
				  "\tif [[ ! $first || $kind != program ]]; then\n"
				  "\t\t_softhca_values\n"
				  "\tfi\n";
static const char after[] =
	"\tif [[ $takes ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
	"\t\tif [[ $files ]]; then\n"
	"\t\t\tCOMPREPLY+=($(compgen $files -- \"$word\"))\n"
	"\t\tfi\n"
	"\telif [[ $kind == program && $first && $COMP_CWORD -gt $first ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n"
	"\telif [[ $word == -* && ! ( $kind == program && $first ) ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
	"\telif [[ $kind == program ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -c -- \"$word\") $(compgen -f -- \"$word\"))\n"
	"\telif [[ $kind == rules ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" explain 2>/dev/null | awk '{print $2}')\" -- \"${word^^}\"))\n"
	"\telif [[ $words && ! $first ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
	"\telif [[ $kind == files ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n"
	"\telif [[ $kind == hosts && ! $first ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(seq -f h%.0f \"${SOFTHCA_HOST_COUNT:-0}\")\" -- \"$word\"))\n"
	"\telif [[ $kind == hosts ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -c -- \"$word\") $(compgen -f -- \"$word\"))\n"
	"\telse\n"
	"\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
	"\tfi\n"
	"}\n"
	"\n"
	"complete -o filenames -F _softhca softhca";

void completion_print_bash(void)
{
	puts("# Sets takes, values and files for the option $option of the command line.");
	puts("_softhca_values()\n{");
	bash_print_values_case();
	puts("}\n");
	fputs(before, stdout);
	bash_print_commands();
	fputs(first_word, stdout);
	bash_print_commands_case();
	fputs(loop_begins, stdout);
	puts(after);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings: which values are accepted, which are rejected and with what message, and the reported origin of a value. */
#include "test_case.h"

#include "core/settings.h"

static struct settings settings;
static char error[256];

static int setup(void **state)
{
	(void)state;
	for (int i = 0; i < SETTING_COUNT; i++)
		unsetenv(setting_info(i)->variable);
	unsetenv(SETTINGS_FROM_OPTIONS);
	settings_default(&settings);
	memset(error, 0, sizeof(error));
	return 0;
}

static int set(enum setting setting, const char *text)
{
	return setting_parse(&settings, setting, text, ORIGIN_OPTION, error, sizeof(error));
}

TEST(defaults)
{
	assert_int_equal(settings.profile, PROFILE_MAN);
	assert_int_equal(settings.devices, 1);
	assert_string_equal(settings.device_name, "mlx5_");
	assert_string_equal(settings.explain, "off");
	assert_int_equal(settings.seed, 0);
	assert_int_equal(settings.gids, GIDS_AUTO);
	assert_int_equal(settings.link, LINK_AUTO);
	assert_int_equal(settings.mtu, 0);
	for (int i = 0; i < SETTING_COUNT; i++)
		assert_int_equal(settings.origin[i], ORIGIN_DEFAULT);
}

/* The text of each default, which the documents print, must parse to the default value. */
TEST(default_texts_are_the_defaults)
{
	struct settings parsed;
	char text[4096];

	memset(&parsed, 0x5a, sizeof(parsed));
	for (int i = 0; i < SETTING_COUNT; i++) {
		const char *fallback = setting_info(i)->fallback;

		assert_int_equal(setting_parse(&parsed, i, fallback, ORIGIN_DEFAULT, error, sizeof(error)), 0);
		setting_format(&settings, i, text, sizeof(text));
		assert_string_equal(text, fallback);
		setting_format(&parsed, i, text, sizeof(text));
		assert_string_equal(text, fallback);
	}
}

TEST(choices)
{
	assert_int_equal(set(SETTING_PROFILE, "connectx"), 0);
	assert_int_equal(settings.profile, PROFILE_CONNECTX);
	assert_int_equal(settings.origin[SETTING_PROFILE], ORIGIN_OPTION);
	assert_int_equal(set(SETTING_PROFILE, "man"), 0);
	assert_int_equal(settings.profile, PROFILE_MAN);
	/* A word of another setting, a prefix, different case. */
	assert_int_equal(set(SETTING_PROFILE, "auto"), -EINVAL);
	assert_int_equal(set(SETTING_PROFILE, "connect"), -EINVAL);
	assert_int_equal(set(SETTING_PROFILE, "Man"), -EINVAL);
	assert_int_equal(set(SETTING_LINK, "local"), 0);
	assert_int_equal(settings.link, LINK_LOCAL);
	assert_int_equal(set(SETTING_GIDS, "loopback"), 0);
	assert_int_equal(settings.gids, GIDS_LOOPBACK);
}

TEST(numbers)
{
	static const char *const refused[] = {
		"", "0", "17", "-1", " 1", "1 ", "+1", "1x", "0x", "a", "1.", "0x1g", "18446744073709551617"};

	assert_int_equal(set(SETTING_DEVICES, "16"), 0);
	assert_int_equal(settings.devices, 16);
	assert_int_equal(set(SETTING_DEVICES, "0x3"), 0);
	assert_int_equal(settings.devices, 3);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_int_equal(set(SETTING_DEVICES, refused[i]), -EINVAL);
		assert_int_equal(settings.devices, 3);
	}
	assert_int_equal(set(SETTING_SEED, "18446744073709551615"), 0);
	assert_true(settings.seed == UINT64_MAX);
	assert_int_equal(set(SETTING_SEED, "18446744073709551616"), -EINVAL);
	assert_int_equal(set(SETTING_SEED, "0xffffffffffffffff"), 0);
	assert_int_equal(set(SETTING_SEED, "0x10000000000000000"), -EINVAL);
	/* Decimal, never octal. */
	assert_int_equal(set(SETTING_SEED, "010"), 0);
	assert_true(settings.seed == 10);
}

TEST(powers_of_two)
{
	assert_int_equal(set(SETTING_MTU, "1024"), 0);
	assert_int_equal(settings.mtu, 1024);
	assert_int_equal(set(SETTING_MTU, "256"), 0);
	assert_int_equal(set(SETTING_MTU, "1500"), -EINVAL);
	assert_int_equal(set(SETTING_MTU, "128"), -EINVAL);
	assert_int_equal(set(SETTING_MTU, "8192"), -EINVAL);
	assert_int_equal(settings.mtu, 256);
	assert_int_equal(set(SETTING_MTU, "0"), -EINVAL);
	assert_int_equal(set(SETTING_MTU, "auto"), 0);
	assert_int_equal(settings.mtu, 0);
}

TEST(texts)
{
	char path[4097];

	assert_int_equal(set(SETTING_DEVICE_NAME, "rocep1s0-"), 0);
	assert_string_equal(settings.device_name, "rocep1s0-");
	assert_int_equal(set(SETTING_DEVICE_NAME, "1234567890123456789012345678901"), 0);
	assert_int_equal(set(SETTING_DEVICE_NAME, "12345678901234567890123456789012"), -EINVAL);
	assert_int_equal(set(SETTING_DEVICE_NAME, "a/b"), -EINVAL);
	assert_int_equal(set(SETTING_DEVICE_NAME, "a b"), -EINVAL);
	assert_int_equal(set(SETTING_DEVICE_NAME, ""), -EINVAL);
	assert_int_equal(set(SETTING_DEVICE_NAME, "\xc3\xa4"), -EINVAL);
	assert_string_equal(settings.device_name, "1234567890123456789012345678901");

	memset(path, 'p', sizeof(path));
	path[4096] = '\0';
	assert_int_equal(set(SETTING_EXPLAIN, path), -EINVAL);
	path[4095] = '\0';
	assert_int_equal(set(SETTING_EXPLAIN, path), 0);
	assert_string_equal(settings.explain, path);
}

/* One line that names the variable, the value and the allowed values. */
TEST(refusals_name_the_allowed_values)
{
	assert_int_equal(set(SETTING_PROFILE, "hardware"), -EINVAL);
	assert_string_equal(error, "SOFTHCA_PROFILE: bad value \"hardware\" (expected: man, connectx)");
	assert_int_equal(settings.origin[SETTING_PROFILE], ORIGIN_DEFAULT);
	assert_int_equal(set(SETTING_DEVICES, "99"), -EINVAL);
	assert_string_equal(error, "SOFTHCA_DEVICES: bad value \"99\" (expected: 1 to 16)");
	assert_int_equal(set(SETTING_MTU, "1500"), -EINVAL);
	assert_string_equal(error, "SOFTHCA_MTU: bad value \"1500\" (expected: auto or a power of two, 256 to 4096)");
}

/* For any contents of the environment, the message stays one line of printable text. */
TEST(refusals_stay_one_line)
{
	char tiny[8];

	assert_int_equal(set(SETTING_PROFILE, "a\nb\x1b[31m"), -EINVAL);
	assert_string_equal(error, "SOFTHCA_PROFILE: bad value \"a?b?[31m\" (expected: man, connectx)");
	assert_int_equal(setting_parse(&settings, SETTING_PROFILE, "x", ORIGIN_OPTION, tiny, sizeof(tiny)), -EINVAL);
	assert_string_equal(tiny, "SOFTHCA");
}

TEST(environment_and_origin)
{
	assert_int_equal(setting_from_environment(&settings, SETTING_MTU, error, sizeof(error)), 0);
	assert_int_equal(settings.origin[SETTING_MTU], ORIGIN_DEFAULT);

	setenv("SOFTHCA_MTU", "512", 1);
	assert_int_equal(setting_from_environment(&settings, SETTING_MTU, error, sizeof(error)), 0);
	assert_int_equal(settings.mtu, 512);
	assert_int_equal(settings.origin[SETTING_MTU], ORIGIN_ENVIRONMENT);

	/* Names are compared as whole words. */
	setenv("SOFTHCA_RUN_OPTIONS", "DEVICE_NAME,MTUS,XMTU", 1);
	assert_int_equal(setting_from_environment(&settings, SETTING_MTU, error, sizeof(error)), 0);
	assert_int_equal(settings.origin[SETTING_MTU], ORIGIN_ENVIRONMENT);
	setenv("SOFTHCA_RUN_OPTIONS", "DEVICE_NAME,MTU", 1);
	assert_int_equal(setting_from_environment(&settings, SETTING_MTU, error, sizeof(error)), 0);
	assert_int_equal(settings.origin[SETTING_MTU], ORIGIN_OPTION);

	setenv("SOFTHCA_DEVICES", "none", 1);
	assert_int_equal(setting_from_environment(&settings, SETTING_DEVICES, error, sizeof(error)), -EINVAL);
	assert_int_equal(settings.devices, 1);
	assert_int_equal(settings.origin[SETTING_DEVICES], ORIGIN_DEFAULT);
	setenv("SOFTHCA_DEVICES", "", 1);
	assert_int_equal(setting_from_environment(&settings, SETTING_DEVICES, error, sizeof(error)), 0);
}

/* Programs change the variables of the real libraries at run time. */
TEST(variables_are_read_when_asked)
{
	unsetenv("MLX5_CQE_SIZE");
	unsetenv("MLX_CQ_ALLOC_TYPE");
	assert_null(variable_get(VARIABLE_MLX5_CQE_SIZE));
	setenv("MLX5_CQE_SIZE", "128", 1);
	assert_string_equal(variable_get(VARIABLE_MLX5_CQE_SIZE), "128");
	setenv("MLX5_CQE_SIZE", "64", 1);
	assert_string_equal(variable_get(VARIABLE_MLX5_CQE_SIZE), "64");
	setenv("MLX_QP_ALLOC_TYPE", "HUGE", 1);
	assert_string_equal(variable_get(VARIABLE_MLX_QP_ALLOC_TYPE), "HUGE");
	assert_null(variable_get(VARIABLE_MLX_CQ_ALLOC_TYPE));
}

int main(void)
{
	return run_cases(.setup = setup);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Libraries that register providers are tolerated: a linked one (its constructor runs before main), one loaded later,
 * and the distribution's own libefa.so.1. None of them adds a device. Argument: the library to load.
 */
#include <dlfcn.h>
#include "test_case.h"

#include "abi/undeclared.h"

int provider_registrations(void);
extern bool verbs_allow_disassociate_destroy;

static const char *late_library;

TEST(test_constructor_before_main)
{
	assert_int_equal(provider_registrations(), 1);
	/* Library and program use the same object, wherever the linker placed it. */
	assert_true(verbs_allow_disassociate_destroy);
}

TEST(test_loaded_later)
{
	void *library = dlopen(late_library, RTLD_NOW | RTLD_LOCAL);
	int (*registrations)(void);

	if (!library)
		fail_msg("%s", dlerror());
	registrations = (int (*)(void))dlsym(library, "provider_registrations");
	assert_non_null(registrations);
	assert_int_equal(registrations(), 1);
	assert_int_equal(dlclose(library), 0);
}

TEST(test_libefa)
{
	void *library = dlopen("libefa.so.1", RTLD_NOW | RTLD_LOCAL);
	const char *error = library ? NULL : dlerror();

	if (error && strstr(error, "libefa.so.1: cannot open shared object file"))
		skip();
	if (error)
		fail_msg("%s", error);
}

/*
 * Providers older and newer than libefa's: the older one is not touched, the newer one gets memory for the members it
 * writes.
 */
TEST(test_other_calls)
{
	static const char *const nodes[] = {"IBVERBS_PRIVATE_57", "IBVERBS_PRIVATE_59", "IBVERBS_PRIVATE_64",
					    "IBVERBS_PRIVATE_65"};
	void (*register_driver)(const char *, void *) =
		(void (*)(const char *, void *))dlvsym(RTLD_DEFAULT, "ibv_register_driver", "IBVERBS_1.1");

	assert_non_null(register_driver);
	register_driver("usnic_verbs", NULL);
	verbs_register_driver_34(NULL);
	verbs_register_driver_57(NULL);
	verbs_register_driver_59(NULL);
	verbs_register_driver_64(NULL);
	verbs_register_driver_65(NULL);
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		unsigned int (*count)(unsigned int, void *) =
			(unsigned int (*)(unsigned int, void *))dlvsym(RTLD_DEFAULT, "__ioctl_final_num_attrs",
								       nodes[i]);

		assert_non_null(count);
		assert_int_equal(count(7, NULL), 7);
	}
	assert_int_equal(__ioctl_final_num_attrs(7, NULL), 7);
}

TEST(test_no_device_added)
{
	int count = -1;
	struct ibv_device **list = ibv_get_device_list(&count);

	assert_non_null(list);
	assert_true(count >= 1);
	for (int i = 0; i < count; i++)
		assert_memory_equal(ibv_get_device_name(list[i]), "mlx5_", 5);
	assert_null(list[count]);
	ibv_free_device_list(list);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	late_library = argv[1];
	return run_cases();
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A library such as libefa.so.1: registers a provider from its constructor. Part of the test abi/provider. */
#include <stdbool.h>

struct verbs_device_ops;

void verbs_register_driver_34(const struct verbs_device_ops *ops);
extern bool verbs_allow_disassociate_destroy;

/* The number of times the constructor ran: static, so each copy of this library has its own count. */
static int registrations;

__attribute__((visibility("default"))) int provider_registrations(void);

int provider_registrations(void)
{
	return registrations;
}

__attribute__((constructor)) static void register_provider(void)
{
	/* The real structure is private; reading this one would be out of bounds. */
	static const char operations[1];

	verbs_register_driver_34((const struct verbs_device_ops *)operations);
	verbs_allow_disassociate_destroy = true;
	registrations++;
}

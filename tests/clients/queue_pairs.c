/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A preload for dpdk-test: limits a crypto device to a few queue pairs, and makes them small. Each of the 697 cases of
 * cryptodev_mlx5_autotest creates all that the driver offers, 128 with 4096 keys each: most of a minute. The driver, which does
 * not call these functions, is unchanged.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>

enum { QUEUE_PAIRS = 2, DESCRIPTORS = 64 };

/* The beginnings of structures of rte_cryptodev.h (DPDK 22.11). */
struct info {
	const char *driver_name;
	uint8_t driver_id;
	void *device;
	uint64_t feature_flags;
	const void *capabilities;
	unsigned int max_nb_queue_pairs;
};

struct config {
	int socket_id;
	uint16_t nb_queue_pairs;
};

struct queue_pair {
	uint32_t nb_descriptors;
	void *session_pool;
};

#pragma GCC visibility push(default)
void rte_cryptodev_info_get(uint8_t id, struct info *info);
int rte_cryptodev_configure(uint8_t id, struct config *config);
int rte_cryptodev_queue_pair_setup(uint8_t id, uint16_t number, const struct queue_pair *attr, int socket);
#pragma GCC visibility pop

void rte_cryptodev_info_get(uint8_t id, struct info *info)
{
	void (*next)(uint8_t, struct info *) = (void (*)(uint8_t, struct info *))dlsym(RTLD_NEXT, __func__);

	next(id, info);
	if (info->max_nb_queue_pairs > QUEUE_PAIRS)
		info->max_nb_queue_pairs = QUEUE_PAIRS;
}

int rte_cryptodev_configure(uint8_t id, struct config *config)
{
	int (*next)(uint8_t, struct config *) = (int (*)(uint8_t, struct config *))dlsym(RTLD_NEXT, __func__);

	return config && config->nb_queue_pairs > QUEUE_PAIRS ? -EINVAL : next(id, config);
}

int rte_cryptodev_queue_pair_setup(uint8_t id, uint16_t number, const struct queue_pair *attr, int socket)
{
	int (*next)(uint8_t, uint16_t, const struct queue_pair *, int) =
		(int (*)(uint8_t, uint16_t, const struct queue_pair *, int))dlsym(RTLD_NEXT, __func__);
	struct queue_pair small;

	if (!attr || attr->nb_descriptors <= DESCRIPTORS)
		return next(id, number, attr, socket);
	small = *attr;
	small.nb_descriptors = DESCRIPTORS;
	return next(id, number, &small, socket);
}

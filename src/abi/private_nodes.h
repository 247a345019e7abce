/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private nodes of libibverbs.so.1, IBVERBS_PRIVATE_N: rdma-core's own programs and providers link to that of their
 * release. N is the first release that has the node: 34 for rdma-core 34 to 56, 57 for 57 and 58, 59 for 59 to 63, 64,
 * 65.
 *
 * AFTER_N(…) expands to AGAIN(M, …) for each node M after N. The including file defines AGAIN.
 */
#ifndef SOFTHCA_ABI_PRIVATE_NODES_H
#define SOFTHCA_ABI_PRIVATE_NODES_H

#define AFTER_34(...) AGAIN(57, __VA_ARGS__) AFTER_57(__VA_ARGS__)
#define AFTER_57(...) AGAIN(59, __VA_ARGS__) AFTER_59(__VA_ARGS__)
#define AFTER_59(...) AGAIN(64, __VA_ARGS__) AFTER_64(__VA_ARGS__)
#define AFTER_64(...) AGAIN(65, __VA_ARGS__) AFTER_65(__VA_ARGS__)
#define AFTER_65(...)

#endif

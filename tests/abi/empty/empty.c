/* SPDX-License-Identifier: BSD-2-Clause */
/* A libibverbs.so.1, and a librdmacm.so.1, that have none of the symbols, for abi/linkage to prove that it would see. */
typedef int empty;

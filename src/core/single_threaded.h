/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * __libc_single_threaded (glibc from 2.32 on): true while the process has one thread, which then needs no locked
 * instructions. With other C libraries, such as musl, every process counts as multithreaded.
 */
#ifndef SOFTHCA_CORE_SINGLE_THREADED_H
#define SOFTHCA_CORE_SINGLE_THREADED_H

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded 0
#endif

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of type 1 that the server of program.h owns and binds by ibv_bind_mw(3), and the client uses. */
#ifndef SOFTHCA_TESTS_API_SUPPORT_WINDOW_H
#define SOFTHCA_TESTS_API_SUPPORT_WINDOW_H

#include "support/program.h"

enum {
	BIND_WR_ID = 0xb14d,
	/* A range of the memory away from any boundary. */
	WINDOW_START = 4096,
	WINDOW_LENGTH = 4096,
};

/** Returns a signalled bind of [@start, +@length) of the server's memory to server.mr. */
struct ibv_mw_bind bind_request(size_t start, size_t length, unsigned int access);

/** Returns [@start, +@length) of the server's memory through the current rkey of @mw. */
struct view window_view(const struct ibv_mw *mw, size_t start, size_t length);

/** Binds on pair.server and polls the success. Returns the window as the client sees it. */
#define bind_window(mw, start, length, access) bind_window_(HERE, mw, start, length, access)
struct view bind_window_(struct place place, struct ibv_mw *mw, size_t start, size_t length, unsigned int access);

/**
 * Expects the bind to be posted and to fail: MW_BIND_ERR, the QP in ERR. Makes a new pair and restores the old rkey of
 * the window, as NOTES of ibv_bind_mw(3) require.
 */
#define expect_bind_fails(mw, bind) expect_bind_fails_(HERE, mw, bind)
void expect_bind_fails_(struct place place, struct ibv_mw *mw, struct ibv_mw_bind bind);

/** Expects WRITE, READ and FETCH_ADD at the beginning of @window to fail with REM_ACCESS_ERR. */
#define expect_no_remote_access(window) expect_no_remote_access_(HERE, window)
void expect_no_remote_access_(struct place place, struct view window);

#endif

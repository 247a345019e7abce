/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softhca_draw_mkey(): draws a key on request, as it is at that moment. tests/tool/keys.py compares the layouts in
 * drawings.
 */
#include <fcntl.h>

#include "softhca.h"
#include "support/key_checks.h"

static struct layout layout;
static char drawing[300000];

/* Writes a drawing of the key to `drawing`. */
static void draw(struct ibv_context *context, uint32_t key, enum softhca_drawing format)
{
	char name[] = "/tmp/softhca-drawing-XXXXXX";
	int fd = mkstemp(name);
	ssize_t length;

	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(softhca_draw_mkey(context, key, fd, format), 0);
	length = pread(fd, drawing, sizeof(drawing) - 1, 0);
	close(fd);
	assert_true(length > 0);
	drawing[length] = '\0';
}

static void expect_words(const char *word)
{
	if (!strstr(drawing, word))
		fail_msg("\"%s\" is not in\n%s", word, drawing);
}

static void expect_no_words(const char *word)
{
	if (strstr(drawing, word))
		fail_msg("\"%s\" is in\n%s", word, drawing);
}

TEST(no_such_drawing)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	assert_int_equal(softhca_draw_mkey(server.context, mkey->rkey, STDOUT_FILENO, 2), EINVAL);
	assert_int_equal(softhca_draw_mkey(server.context, mkey->rkey, -1, SOFTHCA_DRAWING_TEXT), EBADF);
	assert_int_equal(softhca_draw_mkey(NULL, mkey->rkey, -1, SOFTHCA_DRAWING_TEXT), EBADF);
	assert_int_equal(softhca_draw_mkey(server.context, 0, STDOUT_FILENO, SOFTHCA_DRAWING_TEXT), ENOENT);
	assert_int_equal(softhca_draw_mkey(NULL, 0, STDOUT_FILENO, SOFTHCA_DRAWING_TEXT), ENOENT);
}

TEST(every_state)
{
	struct ibv_sge list[] = {side_sge(&server, 100, 200), side_sge(&server, 3, 7)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct ibv_send_wr invalidate = {
		.wr_id = 4, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = mkey->rkey};
	char address[64];

	draw(server.context, mkey->rkey, SOFTHCA_DRAWING_TEXT);
	expect_words("not configured yet");
	expect_no_words("range of the key");
	lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, list);
	draw(NULL, mkey->rkey, SOFTHCA_DRAWING_TEXT);
	expect_words("list of 2 entries");
	expect_words("[0x0, +207)");
	snprintf(address, sizeof(address), "--> 0x%lx", (unsigned long)side_address(&server, 3));
	expect_words(address);
	expect_no_words("!!");
	draw(server.context, mkey->rkey, SOFTHCA_DRAWING_SVG);
	expect_words("<svg xmlns=\"http://www.w3.org/2000/svg\"");
	expect_words("</svg>\n");
	post_send(&pair.server, &invalidate);
	expect_completion(&pair.server, 4, IBV_WC_LOCAL_INV);
	draw(server.context, mkey->rkey, SOFTHCA_DRAWING_TEXT);
	expect_words("invalidated: it gives no access");
}

/* A drawing shows which request was refused and how far it got, until the key is configured again. */
TEST(refused_requests)
{
	struct ibv_sge list[] = {side_sge(&server, 100, 200), side_sge(&server, 3, 8)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, list);

	expect_write(&pair, client_memory(16), view_part(key, 208 - 6, 16), IBV_WC_REM_ACCESS_ERR);
	draw(server.context, mkey->rkey, SOFTHCA_DRAWING_TEXT);
	/* 208 - 6 = 202 = 0xca: the first 6 of the 16 bytes are the last of entry 1, the other 10 are outside. */
	expect_words(" ! +0xc8    8 bytes");
	expect_words("!! +0xd0   10 bytes");
	expect_words("past the end of the range");
	expect_words("   +0x0   200 bytes");
	expect_words("[7 KEY_RANGE; ");
	expect_words("wanted: remote write of [0xca, +16)");
	lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, list);
	draw(server.context, mkey->rkey, SOFTHCA_DRAWING_TEXT);
	expect_no_words("!!");
	expect_no_words("wanted");
}

/* Once the region under an entry is deregistered, the drawing of the layout shows it, before any request fails. */
TEST(memory_that_is_gone)
{
	struct ibv_mr *mr = side_register(&server, 4096, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge list[] = {{side_address(&server, 4096), 64, mr->lkey}, side_sge(&server, 3, 8)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	char gone[64];

	snprintf(gone, sizeof(gone), "<-- no key 0x%x", mr->lkey);
	lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, list);
	draw(server.context, mkey->rkey, SOFTHCA_DRAWING_TEXT);
	expect_no_words(gone);
	side_deregister(&server, mr);
	draw(server.context, mkey->rkey, SOFTHCA_DRAWING_TEXT);
	expect_words(gone);
}

TEST(regions)
{
	draw(server.context, server.mr->rkey, SOFTHCA_DRAWING_TEXT);
	expect_words("memory region");
	expect_words("memory of the process");
	expect_no_words("!!");
}

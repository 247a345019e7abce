/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys and the model of their layouts, see mkey.h. */
#include "support/mkey.h"

static void append(struct layout *layout, const struct side *side, uint64_t address)
{
	if (layout->length == LAYOUT_BYTES)
		fail_at(HERE, "a layout has more than %d bytes", LAYOUT_BYTES);
	layout->at[layout->length++] = (uint32_t)(address - side_address(side, 0));
}

void layout_of_list(struct layout *layout, const struct side *side, uint16_t count, const struct ibv_sge *sge)
{
	layout->length = 0;
	for (uint16_t e = 0; e < count; e++)
		for (uint32_t b = 0; b < sge[e].length; b++)
			append(layout, side, sge[e].addr + b);
}

void layout_of_interleaved(struct layout *layout, const struct side *side, uint32_t repeat, uint16_t count,
			   const struct mlx5dv_mr_interleaved *data)
{
	layout->length = 0;
	for (uint32_t i = 0; i < repeat; i++)
		for (uint16_t e = 0; e < count; e++)
			for (uint32_t b = 0; b < data[e].bytes_count; b++)
				append(layout, side,
				       data[e].addr + i * ((uint64_t)data[e].bytes_count + data[e].bytes_skip) + b);
}

struct view view_key(struct side *side, const struct mlx5dv_mkey *mkey, const struct layout *layout)
{
	return (struct view){.side = side, .key = mkey->lkey, .map = layout->at, .length = layout->length};
}

void batch_start(struct endpoint *endpoint, uint64_t wr_id, unsigned int flags)
{
	ibv_wr_start(endpoint->ex);
	endpoint->ex->wr_id = wr_id;
	endpoint->ex->wr_flags = flags;
}

void batch_write(struct endpoint *endpoint, uint64_t wr_id, unsigned int flags, struct view source, struct view target)
{
	endpoint->ex->wr_id = wr_id;
	endpoint->ex->wr_flags = flags;
	ibv_wr_rdma_write(endpoint->ex, target.key, target.address);
	ibv_wr_set_sge(endpoint->ex, source.key, source.address, (uint32_t)source.length);
}

void batch_send(struct endpoint *endpoint, uint64_t wr_id, unsigned int flags, struct view source)
{
	endpoint->ex->wr_id = wr_id;
	endpoint->ex->wr_flags = flags;
	ibv_wr_send(endpoint->ex);
	ibv_wr_set_sge(endpoint->ex, source.key, source.address, (uint32_t)source.length);
}

void configure_start(struct endpoint *endpoint, struct mlx5dv_mkey *mkey, uint8_t setters)
{
	struct mlx5dv_mkey_conf_attr attr = {0};

	batch_start(endpoint, CONFIGURE_WR_ID, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	mlx5dv_wr_mkey_configure(endpoint->dv, mkey, setters, &attr);
}

void configure_complete_(struct place place, struct endpoint *endpoint)
{
	expect_error_(place, "ibv_wr_complete()", ibv_wr_complete(endpoint->ex), 0);
	expect_completion_(place, endpoint, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
}

void expect_batch_refused_(struct place place, struct endpoint *endpoint, int error)
{
	expect_error_(place, "ibv_wr_complete()", ibv_wr_complete(endpoint->ex), error);
	expect_nothing_posted_(place, endpoint);
}

int configure_list(struct endpoint *endpoint, enum way way, struct mlx5dv_mkey *mkey, uint32_t access, uint16_t count,
		   const struct ibv_sge *sge)
{
	if (way == BY_MR_CALL) {
		batch_start(endpoint, CONFIGURE_WR_ID, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
		mlx5dv_wr_mr_list(endpoint->dv, mkey, access, count, (struct ibv_sge *)sge);
	} else {
		configure_start(endpoint, mkey, 2);
		mlx5dv_wr_set_mkey_access_flags(endpoint->dv, access);
		mlx5dv_wr_set_mkey_layout_list(endpoint->dv, count, sge);
	}
	return ibv_wr_complete(endpoint->ex);
}

int configure_interleaved(struct endpoint *endpoint, enum way way, struct mlx5dv_mkey *mkey, uint32_t access,
			  uint32_t repeat, uint16_t count, const struct mlx5dv_mr_interleaved *data)
{
	if (way == BY_MR_CALL) {
		batch_start(endpoint, CONFIGURE_WR_ID, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
		mlx5dv_wr_mr_interleaved(endpoint->dv, mkey, access, repeat, count,
					 (struct mlx5dv_mr_interleaved *)data);
	} else {
		configure_start(endpoint, mkey, 2);
		mlx5dv_wr_set_mkey_access_flags(endpoint->dv, access);
		mlx5dv_wr_set_mkey_layout_interleaved(endpoint->dv, repeat, count, data);
	}
	return ibv_wr_complete(endpoint->ex);
}

struct view lay_list_(struct place place, struct endpoint *endpoint, enum way way, struct mlx5dv_mkey *mkey,
		      struct layout *layout, uint16_t count, const struct ibv_sge *sge)
{
	expect_error_(place, "ibv_wr_complete()", configure_list(endpoint, way, mkey, KEY_ACCESS, count, sge), 0);
	expect_completion_(place, endpoint, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	layout_of_list(layout, endpoint->side, count, sge);
	return view_key(endpoint->side, mkey, layout);
}

struct view lay_interleaved_(struct place place, struct endpoint *endpoint, enum way way, struct mlx5dv_mkey *mkey,
			     struct layout *layout, uint32_t repeat, uint16_t count,
			     const struct mlx5dv_mr_interleaved *data)
{
	expect_error_(place, "ibv_wr_complete()",
		      configure_interleaved(endpoint, way, mkey, KEY_ACCESS, repeat, count, data), 0);
	expect_completion_(place, endpoint, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	layout_of_interleaved(layout, endpoint->side, repeat, count, data);
	return view_key(endpoint->side, mkey, layout);
}

struct mlx5dv_mr_interleaved side_interleaved(const struct side *side, size_t offset, uint32_t bytes, uint32_t skip)
{
	return (struct mlx5dv_mr_interleaved){
		.addr = side_address(side, offset),
		.bytes_count = bytes,
		.bytes_skip = skip,
		.lkey = side->mr->lkey,
	};
}

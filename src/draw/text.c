/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes pictures as text. */
#include "draw/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/limits.h"

static bool drawing_reserve(struct drawing *drawing, size_t more)
{
	size_t wanted = drawing->length + more + 1, size = drawing->size ? drawing->size : 8192;
	char *bytes;

	if (wanted <= drawing->size)
		return true;
	while (size < wanted)
		size *= 2;
	if (size > LIMIT_DRAWING_BYTES)
		return false;
	bytes = realloc(drawing->bytes, size);
	if (!bytes)
		return false;
	drawing->bytes = bytes;
	drawing->size = size;
	return true;
}

void drawing_add(struct drawing *drawing, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (drawing->failed || length < 0 || !drawing_reserve(drawing, (size_t)length)) {
		drawing->failed = true;
		return;
	}
	va_start(args, format);
	vsnprintf(drawing->bytes + drawing->length, drawing->size - drawing->length, format, args);
	va_end(args);
	drawing->length += (size_t)length;
}

size_t words_columns(const char *text)
{
	size_t columns = 0;

	for (; *text; text++)
		columns += (*text & 0xc0) != 0x80;
	return columns;
}

static size_t wider_column(size_t width, const char *text)
{
	size_t columns = words_columns(text);

	return columns > width ? columns : width;
}

/* Pads @text to @width columns. */
static void text_add_padded(struct drawing *drawing, const char *text, size_t width)
{
	size_t columns = words_columns(text);

	drawing_add(drawing, "%s%*s", text, (int)(width > columns ? width - columns : 0), "");
}

static const char *sign_of(enum picture_mark mark)
{
	return mark == MARK_REFUSED ? "!!" : mark == MARK_TOUCHED ? " !" : "  ";
}

/* Removes trailing blanks. */
static void end_line(struct drawing *drawing)
{
	while (!drawing->failed && drawing->length && drawing->bytes[drawing->length - 1] == ' ')
		drawing->length--;
	drawing_add(drawing, "\n");
}

static void text_add_facts(const struct picture *picture, struct drawing *drawing)
{
	for (uint32_t i = 0; i < picture->facts; i++)
		drawing_add(drawing, "  %-12s %s\n", picture->fact[i].name, picture->fact[i].value);
}

static void text_add_row(const struct picture *picture, const struct picture_row *row, size_t offset, size_t size,
			 size_t note, struct drawing *drawing)
{
	drawing_add(drawing, "%s ", sign_of(row->mark));
	if (row->kind == ROW_ELIDED) {
		drawing_add(drawing, "%s", row->size);
		end_line(drawing);
		return;
	}
	text_add_padded(drawing, row->offset, offset);
	drawing_add(drawing, "  %*s  ", (int)size, row->size);
	text_add_padded(drawing, row->note, note);
	if (row->kind == ROW_PIECE)
		drawing_add(drawing, "%s--> %s", note ? "  " : "", row->memory);
	if (row->region < PICTURE_REGIONS)
		drawing_add(drawing, " %s", picture->region[row->region].name);
	if (*row->problem)
		drawing_add(drawing, "  <-- %s", row->problem);
	end_line(drawing);
}

static void text_add_rows(const struct picture *picture, struct drawing *drawing)
{
	size_t offset = 0, size = 0, note = 0;

	if (!picture->rows)
		return;
	for (uint32_t i = 0; i < picture->rows; i++) {
		const struct picture_row *row = &picture->row[i];

		if (row->kind == ROW_ELIDED)
			continue;
		offset = wider_column(offset, row->offset);
		size = wider_column(size, row->size);
		note = wider_column(note, row->note);
	}
	drawing_add(drawing, "\nrange of the key, with its memory\n");
	for (uint32_t i = 0; i < picture->rows; i++)
		text_add_row(picture, &picture->row[i], offset, size, note, drawing);
}

static void text_add_regions(const struct picture *picture, struct drawing *drawing)
{
	uint32_t last = PICTURE_REGIONS;

	if (picture->slots)
		drawing_add(drawing, "\nmemory, by address\n");
	for (uint32_t i = 0; i < picture->slots; i++) {
		const struct picture_slot *slot = &picture->slot[i];
		const struct picture_region *region = &picture->region[slot->region];

		if (slot->region != last)
			drawing_add(drawing, "%s %s %s%s%s\n", region->bad ? "!!" : "  ", region->name, region->range,
				    *region->range && *region->rights ? "  " : "", region->rights);
		last = slot->region;
		if (slot->row == PICTURE_ROWS)
			drawing_add(drawing, "     … %s\n", slot->gap);
		else
			drawing_add(drawing, "%s   %s  %s  %s\n", sign_of(picture->row[slot->row].mark),
				    picture->row[slot->row].memory, picture->row[slot->row].size,
				    picture->row[slot->row].offset);
	}
}

static void text_add_block(const struct picture_block *block, const size_t width[], struct drawing *drawing)
{
	drawing_add(drawing, "%s ", sign_of(block->mark));
	text_add_padded(drawing, block->number, width[0]);
	drawing_add(drawing, "  ");
	if (block->kind != ROW_ELIDED) {
		text_add_padded(drawing, block->memory, width[1]);
		drawing_add(drawing, "%s", *block->memory_field ? " + " : "   ");
		text_add_padded(drawing, block->memory_field, width[2]);
		drawing_add(drawing, "  |  ");
		text_add_padded(drawing, block->wire, width[3]);
		drawing_add(drawing, "%s%s", *block->wire_field ? " + " : "   ", block->wire_field);
		if (*block->problem)
			drawing_add(drawing, "  <-- %s", block->problem);
	}
	end_line(drawing);
}

static void text_add_blocks(const struct picture *picture, struct drawing *drawing)
{
	size_t width[] = {0, 0, 0, 0};

	if (!picture->blocks)
		return;
	for (uint32_t i = 0; i < picture->blocks; i++) {
		const struct picture_block *block = &picture->block[i];

		if (block->kind == ROW_ELIDED)
			continue;
		width[0] = wider_column(width[0], block->number);
		width[1] = wider_column(width[1], block->memory);
		width[2] = wider_column(width[2], block->memory_field);
		width[3] = wider_column(width[3], block->wire);
	}
	drawing_add(drawing, "\nblocks: in memory | on the wire\n");
	for (uint32_t i = 0; i < picture->blocks; i++)
		text_add_block(&picture->block[i], width, drawing);
}

static void text_add_failures(const struct picture *picture, struct drawing *drawing)
{
	if (picture->failures)
		drawing_add(drawing, "\nrefused accesses and errors, latest first\n");
	for (uint32_t i = 0; i < picture->failures; i++) {
		drawing_add(drawing, "!! %s\n", picture->failure[i].line);
		if (picture->failure[i].more)
			drawing_add(drawing, "   … and %u more\n", picture->failure[i].more);
		if (*picture->failure[i].access)
			drawing_add(drawing, "   wanted: %s\n", picture->failure[i].access);
	}
}

void picture_write_text(const struct picture *picture, struct drawing *drawing)
{
	drawing_add(drawing, "%s: %s\n", picture->title, picture->state);
	text_add_facts(picture, drawing);
	text_add_rows(picture, drawing);
	text_add_regions(picture, drawing);
	text_add_blocks(picture, drawing);
	if (picture->uses)
		drawing_add(drawing, "\nused by\n");
	for (uint32_t i = 0; i < picture->uses; i++)
		drawing_add(drawing, "   %s\n", picture->use[i].line);
	text_add_failures(picture, drawing);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes pictures as SVG. Each part is placed at `y` and advances it. */
#include "draw/svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "draw/svg_style.h"
#include "draw/words.h"

enum {
	WIDTH = 1000,
	MARGIN = 24,
	LINE = 18,
	VALUE_X = 132,
	VALUE_COLUMNS = 114, /* monospaced, between VALUE_X and the margin */
	CARD_COLUMNS = 126,

	ROW = 24,
	GAP = 4, /* height of the space between two rows */
	WANT_X = 34,
	LEFT_X = 50,
	LEFT_WIDTH = 372,
	RIGHT_X = 660,
	RIGHT_WIDTH = 306,
	REGION_PAD = 10,
	REGION_COLUMNS = 52,

	NUMBER_X = 50,
	MEMORY_X = 104,
	DATA_WIDTH = 142,
	WIRE_X = 544,
	FIELD_WIDTH = 284,
};

struct canvas {
	const struct picture *picture;
	struct drawing *out;
	int y;
	int row_y[PICTURE_ROWS];
	int slot_y[PICTURE_SLOTS];
};

/* ---- parts ---------------------------------------------------------------------------------------------------- */

/* Adds at most @columns characters, escaped for XML. Control characters, which XML does not allow, become "?". */
static void svg_add_escaped(struct drawing *out, const char *text, size_t columns)
{
	for (; *text; text++) {
		bool begins = (*text & 0xc0) != 0x80;

		if (begins && !columns--)
			return;
		if (*text == '&')
			drawing_add(out, "&amp;");
		else if (*text == '<')
			drawing_add(out, "&lt;");
		else if (*text == '>')
			drawing_add(out, "&gt;");
		else if ((unsigned char)*text < ' ' || *text == 0x7f)
			drawing_add(out, "?");
		else
			drawing_add(out, "%c", *text);
	}
}

static void svg_add_text(struct canvas *canvas, int x, int y, const char *class, const char *text)
{
	if (!*text)
		return;
	drawing_add(canvas->out, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, class);
	svg_add_escaped(canvas->out, text, SIZE_MAX);
	drawing_add(canvas->out, "</text>\n");
}

static void svg_add_text_end(struct canvas *canvas, int x, int y, const char *class, const char *text)
{
	drawing_add(canvas->out, "<text x=\"%d\" y=\"%d\" class=\"%s\" text-anchor=\"end\">", x, y, class);
	svg_add_escaped(canvas->out, text, SIZE_MAX);
	drawing_add(canvas->out, "</text>\n");
}

static void svg_add_box(struct canvas *canvas, int x, int y, int width, int height, const char *class)
{
	drawing_add(canvas->out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" class=\"%s\"/>\n", x, y,
		    width, height, class);
}

/* Returns the end of the first line, of at most @columns: after a word if possible. */
static const char *line_end(const char *text, size_t columns)
{
	const char *at = text, *end = NULL;

	for (size_t count = 0; *at; at++) {
		if ((*at & 0xc0) == 0x80)
			continue;
		if (count++ == columns)
			return end ? end : at;
		if (*at == ' ')
			end = at;
	}
	return at;
}

static void svg_add_lines(struct canvas *canvas, int x, const char *class, const char *text, size_t columns)
{
	while (*text) {
		const char *end = line_end(text, columns);

		drawing_add(canvas->out, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, canvas->y, class);
		for (; text < end; text++)
			svg_add_escaped(canvas->out, (const char[]){*text, '\0'}, 2);
		drawing_add(canvas->out, "</text>\n");
		canvas->y += LINE;
		while (*text == ' ')
			text++;
	}
}

static const char *entry_class(const struct picture_row *row, char kind, char class[4])
{
	class[0] = kind;
	class[1] = (char)('0' + row->colour % ENTRY_COLOUR_COUNT);
	class[2] = '\0';
	return class;
}

/* ---- head ----------------------------------------------------------------------------------------------------- */

static void svg_add_head(struct canvas *canvas)
{
	const struct picture *picture = canvas->picture;

	canvas->y = 40;
	svg_add_text(canvas, MARGIN, canvas->y, "h", picture->title);
	svg_add_text_end(canvas, WIDTH - MARGIN, canvas->y, picture->live ? "k g" : "k r", picture->state);
	canvas->y += 28;
	for (uint32_t i = 0; i < picture->facts; i++) {
		svg_add_text(canvas, MARGIN, canvas->y, "q", picture->fact[i].name);
		if (!*picture->fact[i].value)
			canvas->y += LINE;
		svg_add_lines(canvas, VALUE_X, "m", picture->fact[i].value, VALUE_COLUMNS);
	}
	canvas->y += 10;
}

/* ---- range and memory ------------------------------------------------------------------------------------------ */

static void place_rows(struct canvas *canvas, int *y)
{
	for (uint32_t i = 0; i < canvas->picture->rows; i++) {
		canvas->row_y[i] = *y;
		*y += ROW + GAP;
	}
}

static int lines_of(const char *text, size_t columns)
{
	int lines = 0;

	while (*text) {
		text = line_end(text, columns);
		lines++;
		while (*text == ' ')
			text++;
	}
	return lines;
}

static int header_height(const struct picture_region *region)
{
	return (1 + lines_of(region->range, REGION_COLUMNS) + lines_of(region->rights, REGION_COLUMNS)) * LINE + 6;
}

static void place_slots(struct canvas *canvas, int *y)
{
	const struct picture *picture = canvas->picture;

	for (uint32_t i = 0; i < picture->slots; i++) {
		const struct picture_slot *slot = &picture->slot[i];

		if (!i || picture->slot[i - 1].region != slot->region)
			*y += (i ? REGION_PAD + 12 : 0) + header_height(&picture->region[slot->region]);
		canvas->slot_y[i] = *y;
		*y += slot->row == PICTURE_ROWS ? LINE + 2 : ROW + GAP;
	}
	*y += REGION_PAD;
}

static void svg_add_region(struct canvas *canvas, uint32_t first, uint32_t end)
{
	const struct picture_region *region = &canvas->picture->region[canvas->picture->slot[first].region];
	int top = canvas->slot_y[first] - header_height(region);
	int bottom = canvas->slot_y[end - 1] + ROW + REGION_PAD, y = canvas->y;

	svg_add_box(canvas, RIGHT_X - REGION_PAD, top - 4, RIGHT_WIDTH + 2 * REGION_PAD, bottom - top,
		    region->bad ? "box bad" : "box");
	svg_add_text(canvas, RIGHT_X, top + 12, region->bad ? "k r" : "k", region->name);
	canvas->y = top + 12 + LINE;
	svg_add_lines(canvas, RIGHT_X, "s q", region->range, REGION_COLUMNS);
	svg_add_lines(canvas, RIGHT_X, region->bad ? "s r" : "s q", region->rights, REGION_COLUMNS);
	canvas->y = y;
}

static void svg_add_regions(struct canvas *canvas)
{
	const struct picture *picture = canvas->picture;
	uint32_t first = 0;

	for (uint32_t i = 1; i <= picture->slots; i++) {
		if (i < picture->slots && picture->slot[i].region == picture->slot[first].region)
			continue;
		svg_add_region(canvas, first, i);
		first = i;
	}
}

static void svg_add_band(struct canvas *canvas, const struct picture_row *row, int left, int right)
{
	const int from = LEFT_X + LEFT_WIDTH, to = RIGHT_X, middle = (from + to) / 2;
	char class[4];

	drawing_add(canvas->out,
		    "<path d=\"M%d %dC%d %d %d %d %d %dV%dC%d %d %d %d %d %dZ\" class=\"%s\" opacity=\"%s\"/>\n", from,
		    left, middle, left, middle, right, to, right, right + ROW, middle, right + ROW, middle, left + ROW,
		    from, left + ROW, row->mark == MARK_REFUSED ? "badband" : entry_class(row, 'b', class),
		    row->mark == MARK_REFUSED ? ".45" : ".22");
}

static void svg_add_slot(struct canvas *canvas, const struct picture_slot *slot, int y)
{
	const struct picture_row *row = &canvas->picture->row[slot->row];
	char class[4];

	if (slot->row == PICTURE_ROWS) {
		svg_add_text(canvas, RIGHT_X + 8, y + 13, "s q", "⋮");
		svg_add_text(canvas, RIGHT_X + 24, y + 13, "s q", slot->gap);
		return;
	}
	svg_add_box(canvas, RIGHT_X, y, RIGHT_WIDTH, ROW,
		    row->mark == MARK_REFUSED ? "bad" : entry_class(row, 'e', class));
	svg_add_text(canvas, RIGHT_X + 8, y + 16, "m", row->memory);
	svg_add_text_end(canvas, RIGHT_X + RIGHT_WIDTH - 8, y + 16, "m", row->size);
}

static void svg_add_slots(struct canvas *canvas)
{
	for (uint32_t i = 0; i < canvas->picture->slots; i++) {
		const struct picture_slot *slot = &canvas->picture->slot[i];

		if (slot->row != PICTURE_ROWS)
			svg_add_band(canvas, &canvas->picture->row[slot->row], canvas->row_y[slot->row],
				     canvas->slot_y[i]);
		svg_add_slot(canvas, slot, canvas->slot_y[i]);
	}
}

static void svg_add_row(struct canvas *canvas, const struct picture_row *row, int y)
{
	char class[4];

	if (row->kind == ROW_ELIDED) {
		svg_add_box(canvas, LEFT_X, y, LEFT_WIDTH, ROW, "dots");
		svg_add_text(canvas, LEFT_X + 8, y + 16, "q", row->size);
		return;
	}
	svg_add_box(canvas, LEFT_X, y, LEFT_WIDTH, ROW,
		    row->mark == MARK_REFUSED ? "bad"
		    : row->kind == ROW_PIECE  ? entry_class(row, 'e', class)
					      : "dots");
	svg_add_text(canvas, LEFT_X + 8, y + 16, "m", row->offset);
	svg_add_text(canvas, LEFT_X + 106, y + 16, "s q", row->note);
	svg_add_text_end(canvas, LEFT_X + LEFT_WIDTH - 8, y + 16, "m", row->size);
	svg_add_text(canvas, LEFT_X + LEFT_WIDTH + 8, y + 16, row->mark == MARK_REFUSED ? "s r halo" : "s halo",
		     row->problem);
}

/* Adds a bar next to the rows that the refused access covers. */
static void svg_add_want(struct canvas *canvas)
{
	const struct picture *picture = canvas->picture;
	int top = -1, bottom = -1;

	for (uint32_t i = 0; i < picture->rows; i++) {
		const struct picture_row *row = &picture->row[i];

		if (row->mark == MARK_NONE)
			continue;
		if (top < 0)
			top = canvas->row_y[i] + row->first * ROW / 1000;
		bottom = canvas->row_y[i] + row->last * ROW / 1000;
	}
	if (top < 0)
		return;
	if (bottom < top + 3)
		bottom = top + 3;
	drawing_add(canvas->out, "<rect x=\"%d\" y=\"%d\" width=\"5\" height=\"%d\" rx=\"2\" class=\"want\"/>\n",
		    WANT_X, top, bottom - top);
	drawing_add(
		canvas->out,
		"<text transform=\"translate(%d %d) rotate(-90)\" text-anchor=\"end\" class=\"s r\">wanted</text>\n",
		WANT_X - 5, top);
}

static void svg_add_map(struct canvas *canvas)
{
	const struct picture *picture = canvas->picture;
	int left = canvas->y + 22, right = canvas->y + 22;

	if (!picture->rows)
		return;
	place_rows(canvas, &left);
	place_slots(canvas, &right);
	svg_add_text(canvas, LEFT_X, canvas->y + 6, "k", "range of the key");
	if (picture->slots)
		svg_add_text(canvas, RIGHT_X, canvas->y + 6, "k", "memory, by address");
	svg_add_regions(canvas);
	svg_add_slots(canvas);
	for (uint32_t i = 0; i < picture->rows; i++)
		svg_add_row(canvas, &picture->row[i], canvas->row_y[i]);
	svg_add_want(canvas);
	canvas->y = (left > right ? left : right) + 28;
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

static void svg_add_side(struct canvas *canvas, int x, const struct picture_block *block, const char *data,
			 const char *field)
{
	const char *class = block->mark == MARK_REFUSED ? "bad" : "e0";

	svg_add_box(canvas, x, canvas->y, DATA_WIDTH, ROW, class);
	svg_add_text(canvas, x + 8, canvas->y + 16, "s", data);
	if (!*field)
		return;
	svg_add_box(canvas, x + DATA_WIDTH, canvas->y, FIELD_WIDTH, ROW, block->mark == MARK_REFUSED ? "bad" : "field");
	svg_add_text(canvas, x + DATA_WIDTH + 8, canvas->y + 16, "s", field);
}

static void svg_add_block(struct canvas *canvas, const struct picture_block *block)
{
	if (block->kind == ROW_ELIDED) {
		svg_add_text(canvas, MEMORY_X, canvas->y + 15, "q", block->number);
		canvas->y += ROW;
		return;
	}
	if (block->mark != MARK_NONE)
		drawing_add(canvas->out,
			    "<rect x=\"%d\" y=\"%d\" width=\"5\" height=\"%d\" rx=\"2\" class=\"want\"/>\n", WANT_X,
			    canvas->y, ROW);
	svg_add_text(canvas, NUMBER_X, canvas->y + 16, block->mark == MARK_REFUSED ? "m r" : "m", block->number);
	svg_add_side(canvas, MEMORY_X, block, block->memory, block->memory_field);
	svg_add_side(canvas, WIRE_X, block, block->wire, block->wire_field);
	canvas->y += ROW + GAP;
	if (!*block->problem)
		return;
	svg_add_text(canvas, MEMORY_X, canvas->y + 12, "m r", block->problem);
	canvas->y += LINE + GAP;
}

static void svg_add_blocks(struct canvas *canvas)
{
	const struct picture *picture = canvas->picture;

	if (!picture->blocks)
		return;
	svg_add_text(canvas, NUMBER_X, canvas->y, "k", "block");
	svg_add_text(canvas, MEMORY_X, canvas->y, "k", "in memory");
	svg_add_text(canvas, WIRE_X, canvas->y, "k", "on the wire");
	canvas->y += 12;
	for (uint32_t i = 0; i < picture->blocks; i++)
		svg_add_block(canvas, &picture->block[i]);
	canvas->y += 28;
}

/* ---- uses and failures ---------------------------------------------------------------------------------------- */

static void svg_add_uses(struct canvas *canvas)
{
	if (!canvas->picture->uses)
		return;
	svg_add_text(canvas, MARGIN, canvas->y, "k", "used by");
	canvas->y += 22;
	for (uint32_t i = 0; i < canvas->picture->uses; i++)
		svg_add_lines(canvas, MARGIN + 12, "m", canvas->picture->use[i].line, CARD_COLUMNS);
	canvas->y += 14;
}

static void svg_add_failure(struct canvas *canvas, const struct picture_failure *failure)
{
	char wanted[200] = "";
	int lines;

	if (failure->more)
		snprintf(wanted, sizeof(wanted), "… and %u more%s", failure->more, *failure->access ? "; " : "");
	if (*failure->access)
		SAY_MORE(wanted, "wanted: %s", failure->access);
	lines = lines_of(failure->line, CARD_COLUMNS) + lines_of(wanted, CARD_COLUMNS);
	svg_add_box(canvas, MARGIN, canvas->y - 2, WIDTH - 2 * MARGIN, lines * LINE + 14, "card");
	canvas->y += 17;
	svg_add_lines(canvas, MARGIN + 12, "m", failure->line, CARD_COLUMNS);
	svg_add_lines(canvas, MARGIN + 12, "m r", wanted, CARD_COLUMNS);
	canvas->y += 8;
}

static void svg_add_failures(struct canvas *canvas)
{
	if (!canvas->picture->failures)
		return;
	svg_add_text(canvas, MARGIN, canvas->y, "k r", "refused accesses and errors, latest first");
	canvas->y += 14;
	for (uint32_t i = 0; i < canvas->picture->failures; i++)
		svg_add_failure(canvas, &canvas->picture->failure[i]);
	canvas->y += 10;
}

void picture_write_svg(const struct picture *picture, struct drawing *drawing)
{
	struct drawing body = {.length = 0};
	struct canvas canvas = {.picture = picture, .out = &body};

	svg_add_head(&canvas);
	svg_add_map(&canvas);
	svg_add_blocks(&canvas);
	svg_add_uses(&canvas);
	svg_add_failures(&canvas);
	drawing_add(drawing,
		    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
		    "role=\"img\">\n<title>",
		    WIDTH, canvas.y, WIDTH, canvas.y);
	svg_add_escaped(drawing, picture->title, SIZE_MAX);
	drawing_add(drawing, "</title>\n%s<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n%s</svg>\n", svg_style,
		    WIDTH, canvas.y, body.bytes ? body.bytes : "");
	drawing->failed |= body.failed;
	free(body.bytes);
}

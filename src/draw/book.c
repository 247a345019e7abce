/* SPDX-License-Identifier: BSD-2-Clause */
/* Records the uses of keys and draws them. */
#include "draw/book.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/epoch.h"
#include "core/limits.h"
#include "hca/hca.h"
#include "observe/key_observer.h"
#include "draw/files.h"
#include "draw/svg.h"
#include "draw/text.h"
#include "draw/words.h"
#include "mkey/refused.h"

#define BUCKETS 256

/* A key in its current configuration. The book has one record per key index. */
struct key_record {
	struct key_record *next;
	uint32_t index;
	uint64_t serial, version; /* those of the mapping */
	bool drawn;               /* counted among the drawn keys */
	bool changed;             /* used since it was drawn */
	struct key_uses uses;
};

struct key_book {
	pthread_mutex_t lock;
	char directory[PATH_MAX];
	struct key_record *bucket[BUCKETS];
	uint32_t drawings, refused; /* keys drawn within LIMIT_DRAWINGS and LIMIT_DRAWINGS_REFUSED */
	uint64_t left_out;
	int error; /* error of the last file that could not be written; 0: none */
};

static bool key_record_matches(const struct key_record *record, const struct mapping *map)
{
	return record->serial == map->serial && record->version == map->version;
}

/* The lock is held. */
static struct key_record *key_record_find(const struct key_book *book, uint32_t index)
{
	struct key_record *record = book->bucket[index % BUCKETS];

	while (record && record->index != index)
		record = record->next;
	return record;
}

/* Creates the record if needed; returns NULL without memory. The lock is held. */
static struct key_record *key_record_of(struct key_book *book, const struct mkey *key)
{
	const struct mapping *map = mkey_mapping(key);
	struct key_record *record = key_record_find(book, key->index);

	if (!record) {
		record = calloc(1, sizeof(*record));
		if (!record)
			return NULL;
		record->index = key->index;
		record->next = book->bucket[key->index % BUCKETS];
		book->bucket[key->index % BUCKETS] = record;
	} else if (key_record_matches(record, map)) {
		return record;
	}
	record->serial = map->serial;
	record->version = map->version;
	record->drawn = record->changed = false;
	record->uses = (struct key_uses){0};
	return record;
}

/* Returns false if the limit was reached. The lock is held. */
static bool key_record_reserve_place(struct key_book *book, struct key_record *record, bool refused)
{
	if (record->drawn)
		return true;
	if (book->drawings < LIMIT_DRAWINGS)
		book->drawings++;
	else if (refused && book->refused < LIMIT_DRAWINGS_REFUSED)
		book->refused++;
	else
		return false;
	return record->drawn = true;
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

static int store_drawing(const struct hca *hca, const struct picture *picture, const char *ending,
			 const struct drawing *drawing)
{
	char name[256];

	if (drawing->failed)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%d-%s-0x%x-%" PRIu64 ".%" PRIu64 ".%s", (int)getpid(), hca->name, picture->number,
		 picture->serial, picture->version, ending);
	return drawing_store(hca->key_book->directory, name, drawing->bytes, drawing->length);
}

static int draw_key_files(const struct mkey *key, const struct key_uses *uses, struct picture *picture)
{
	struct drawing text = {.length = 0}, svg = {.length = 0};
	int error;

	picture_make(picture, key, uses);
	picture_write_text(picture, &text);
	picture_write_svg(picture, &svg);
	error = store_drawing(key->hca, picture, "txt", &text);
	if (!error)
		error = store_drawing(key->hca, picture, "svg", &svg);
	free(text.bytes);
	free(svg.bytes);
	return error;
}

/* The caller keeps the mapping alive by an epoch section or by the key's lock. */
static void draw_key(struct key_book *book, const struct mkey *key, const struct key_uses *uses)
{
	struct picture *picture = malloc(sizeof(*picture));
	int saved = errno, error = picture ? draw_key_files(key, uses, picture) : -ENOMEM;

	free(picture);
	if (error) {
		pthread_mutex_lock(&book->lock);
		book->error = error;
		pthread_mutex_unlock(&book->lock);
	}
	errno = saved;
}

/* ---- the observer --------------------------------------------------------------------------------------------- */

static void draw_if_place(struct mkey *key, bool refused)
{
	struct key_book *book = key->hca->key_book;
	struct key_uses uses = {0};
	struct key_record *record;
	bool placed = false;

	pthread_mutex_lock(&book->lock);
	record = key_record_of(book, key);
	if (record && key_record_reserve_place(book, record, refused)) {
		placed = true;
		uses = record->uses;
		record->changed = false;
	} else {
		book->left_out++;
	}
	pthread_mutex_unlock(&book->lock);
	if (placed)
		draw_key(book, key, &uses);
}

static void key_begins(struct mkey *key)
{
	epoch_enter();
	if (!mkey_mapping(key)->free && !mapping_is_direct(mkey_mapping(key)))
		draw_if_place(key, false);
	epoch_leave();
}

/* Draws the ending configuration again if it was used since. */
static void key_ends(struct mkey *key)
{
	struct key_book *book = key->hca->key_book;
	struct key_uses uses;
	struct key_record *record;
	bool due;

	pthread_mutex_lock(&book->lock);
	record = key_record_find(book, key->index);
	due = record && record->drawn && record->changed && key_record_matches(record, mkey_mapping(key));
	if (due) {
		uses = record->uses;
		record->changed = false;
	}
	pthread_mutex_unlock(&book->lock);
	if (!due)
		return;
	epoch_enter();
	draw_key(book, key, &uses);
	epoch_leave();
}

static void uses_count(struct key_uses *uses, uint32_t qpn, uint8_t rights, uint64_t address, uint64_t length)
{
	struct key_use *use = uses->use;

	while (use < uses->use + uses->count && (use->qpn != qpn || use->rights != rights))
		use++;
	if (use == uses->use + PICTURE_USES) {
		uses->more++;
		return;
	}
	if (use == uses->use + uses->count) {
		*use = (struct key_use){.qpn = qpn, .rights = rights, .first = address};
		uses->count++;
	}
	use->times++;
	use->bytes += length;
	if (address < use->first)
		use->first = address;
	if (address + length > use->end)
		use->end = address + length;
}

static void key_used(struct hca *hca, uint32_t number, uint32_t qpn, uint8_t rights, uint64_t address, uint64_t length)
{
	const struct mkey *key = mkey_find(hca, number);
	struct key_book *book = hca->key_book;
	struct key_record *record;

	if (!key || mapping_is_direct(mkey_mapping(key)))
		return;
	pthread_mutex_lock(&book->lock);
	record = key_record_of(book, key);
	if (record) {
		uses_count(&record->uses, qpn, rights, address, length);
		record->changed = true;
	}
	pthread_mutex_unlock(&book->lock);
}

/* Draws the key that the refused access named; the explanation may name a key nested in it. */
static void draw_refused(struct hca *hca, const struct explain_record *record)
{
	struct refused_access access;
	struct mkey *key;

	if (!refused_latest(hca, record->subject.qpn, record->rule, record->args, &access))
		return;
	key = mkey_find(hca, access.key);
	if (key)
		draw_if_place(key, true);
}

static void key_explained(struct hca *hca, const struct explain_record *record)
{
	struct mkey *key;

	epoch_enter();
	if (rule_concerns_key(record->rule)) {
		key = mkey_find(hca, (uint32_t)record->args[0]);
		if (key)
			draw_if_place(key, true);
	} else {
		draw_refused(hca, record);
	}
	epoch_leave();
}

static const struct key_observer observer = {key_begins, key_ends, key_used, key_explained};

/* ---- the book ------------------------------------------------------------------------------------------------- */

int key_book_init(struct hca *hca, char *error, size_t size)
{
	char path[PATH_MAX];
	struct key_book *book;
	int result;

	if (!strcmp(hca->settings.keys, "off"))
		return 0;
	book = calloc(1, sizeof(*book));
	result = book ? setting_path(hca->settings.keys, path, sizeof(path)) : -ENOMEM;
	if (!result)
		result = drawing_directory(path, book->directory, sizeof(book->directory));
	if (result) {
		snprintf(error, size, "SOFTHCA_KEYS=%s: %s", hca->settings.keys, strerror(-result));
		free(book);
		return result;
	}
	pthread_mutex_init(&book->lock, NULL);
	hca->key_book = book;
	hca->key_observer = &observer;
	return 0;
}

static void draw_rest(struct hca *hca, struct key_record *record)
{
	struct mkey *key;

	epoch_enter();
	key = mkey_find(hca, record->index << 8);
	if (key && key_record_matches(record, mkey_mapping(key)))
		key_ends(key);
	epoch_leave();
}

void key_book_finish(struct hca *hca, void (*put)(void *argument, const char *line), void *argument)
{
	struct key_book *book = hca->key_book;
	char line[PATH_MAX + 200];
	uint32_t drawn;

	if (!book)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct key_record *record = book->bucket[i]; record; record = record->next)
			draw_rest(hca, record);
	drawn = book->drawings + book->refused;
	snprintf(line, sizeof(line), "%u drawing%s of keys in %s", drawn, drawn == 1 ? "" : "s", book->directory);
	if (book->left_out)
		SAY_MORE(line, ", … %s more not drawn", COMMAS(book->left_out));
	if (book->error)
		SAY_MORE(line, "; drawing failed: %s", strerror(-book->error));
	if (drawn || book->left_out || book->error)
		put(argument, line);
}

void key_book_uses(const struct mkey *key, struct key_uses *uses)
{
	struct key_book *book = key->hca->key_book;
	const struct key_record *record;

	*uses = (struct key_uses){0};
	if (!book)
		return;
	pthread_mutex_lock(&book->lock);
	record = key_record_find(book, key->index);
	if (record && key_record_matches(record, mkey_mapping(key)))
		*uses = record->uses;
	pthread_mutex_unlock(&book->lock);
}

void key_book_lock(struct hca *hca)
{
	if (hca->key_book)
		pthread_mutex_lock(&hca->key_book->lock);
}

void key_book_unlock(struct hca *hca)
{
	if (hca->key_book)
		pthread_mutex_unlock(&hca->key_book->lock);
}

void key_book_forget(struct hca *hca)
{
	struct key_book *book = hca->key_book;

	if (!book)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct key_record *record = book->bucket[i]; record; record = record->next) {
			record->drawn = record->changed = false;
			record->uses = (struct key_uses){0};
		}
	}
	book->drawings = book->refused = 0;
	book->left_out = 0;
}

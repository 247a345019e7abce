/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block/cipher and block/dek: AES-XTS against the vectors of IEEE Std 1619-2007 and against a model, threads that share
 * a DEK, numbers and references of DEKs. Run with OpenSSL; the parts that may differ are run again with the
 * instructions of the CPU, if it has them.
 */
#include "test_case.h"

#include <pthread.h>
#include <sys/mman.h>
#include <openssl/crypto.h>
#include <openssl/err.h>

#include "block/cipher.h"
#include "block/xts.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "hca/hca.h"
#include "process/commands.h"
#include "../support/xts_model.h"
#include "../support/xts_vectors.h"

enum { LARGEST = 3 * 4160 + 4159 };

static struct hca *hca;
static uint64_t openssl_allocations; /* atomic */
static bool openssl_fails;           /* atomic */

/* Counts OpenSSL's allocations, and can make them fail. */
static void *count_malloc(size_t bytes, const char *file, int line)
{
	(void)file, (void)line;
	__atomic_add_fetch(&openssl_allocations, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&openssl_fails, __ATOMIC_RELAXED) ? NULL : malloc(bytes);
}

static void *count_realloc(void *old, size_t bytes, const char *file, int line)
{
	(void)file, (void)line;
	__atomic_add_fetch(&openssl_allocations, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&openssl_fails, __ATOMIC_RELAXED) ? NULL : realloc(old, bytes);
}

static void plain_free(void *memory, const char *file, int line)
{
	(void)file, (void)line;
	free(memory);
}

/* Has its own generator: the same bytes in every run. */
static void fill(uint8_t *out, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		out[i] = (uint8_t)(seed >> 56);
	}
}

static size_t from_hex(uint8_t *out, const char *hex)
{
	size_t bytes = strlen(hex) / 2;

	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &out[i]), 1);
	return bytes;
}

static struct dek_attr some_key(unsigned int key_bytes, uint64_t seed)
{
	struct dek_attr attr = {.pd = 1, .key_bytes = key_bytes};

	fill(attr.key, key_bytes, seed);
	return attr;
}

static struct dek *make_dek(const struct dek_attr *attr)
{
	struct dek *dek;
	uint32_t id = 0;

	assert_int_equal(dek_create(hca, attr, &id), 0);
	assert_in_range(id, 1, 0xffffff);
	dek = dek_get(hca, id);
	assert_non_null(dek);
	assert_int_equal(dek_destroy(hca, id), 0);
	return dek;
}

static void number_of_unit(uint8_t tweak[16], uint64_t unit)
{
	memset(tweak, 0, 16);
	for (int i = 0; i < 8; i++)
		tweak[i] = (uint8_t)(unit >> 8 * i);
}

/* ---- vectors -------------------------------------------------------------------------------------------------- */

static size_t load_vector(const struct xts_vector *vector, struct dek_attr *attr, uint8_t *plain, uint8_t *cipher)
{
	size_t bytes = from_hex(cipher, vector->cipher);

	*attr = (struct dek_attr){.pd = 1};
	attr->key_bytes = (unsigned int)from_hex(attr->key, vector->key);
	if (vector->plain)
		assert_int_equal(from_hex(plain, vector->plain), bytes);
	for (size_t i = 0; !vector->plain && i < bytes; i++)
		plain[i] = (uint8_t)i;
	return bytes;
}

static void expect_vector(const struct xts_vector *vector, struct dek *dek, const uint8_t *plain, const uint8_t *cipher,
			  size_t bytes)
{
	struct cipher_units units = {.unit = bytes, .encrypt = true};
	uint8_t out[512];

	/* The number of the unit, as a tweak and as an offset from tweak 0. */
	number_of_unit(units.tweak, vector->unit);
	assert_int_equal(cipher_transform(dek, &units, out, plain, bytes), 0);
	assert_memory_equal(out, cipher, bytes);
	memset(units.tweak, 0, sizeof(units.tweak));
	units.first = vector->unit;
	units.encrypt = false;
	assert_int_equal(cipher_transform(dek, &units, out, cipher, bytes), 0);
	assert_memory_equal(out, plain, bytes);
}

static void vectors_of_the_standard(void **state)
{
	uint8_t plain[512], cipher[512], out[512], tweak[16];

	(void)state;
	for (size_t i = 0; i < sizeof(xts_vectors) / sizeof(xts_vectors[0]); i++) {
		const struct xts_vector *vector = &xts_vectors[i];
		struct dek_attr attr;
		size_t bytes = load_vector(vector, &attr, plain, cipher);
		struct dek *dek;

		/* The model, which is the reference for the other tests. */
		number_of_unit(tweak, vector->unit);
		model_unit(attr.key, attr.key_bytes, true, tweak, out, plain, bytes);
		assert_memory_equal(out, cipher, bytes);
		model_unit(attr.key, attr.key_bytes, false, tweak, out, cipher, bytes);
		assert_memory_equal(out, plain, bytes);
		dek = make_dek(&attr);
		expect_vector(vector, dek, plain, cipher, bytes);
		dek_put(dek);
	}
}

/* ---- against the model ---------------------------------------------------------------------------------------- */

struct job {
	struct dek_attr attr;
	struct cipher_units units;
	size_t bytes;
};

static void model_job(const struct job *job, uint8_t *to, const uint8_t *from)
{
	uint8_t tweak[16];
	uint64_t low;

	/* tweak + first, byte by byte: the model has its own carry. */
	memcpy(tweak, job->units.tweak, 16);
	low = job->units.first;
	for (int i = 0, carry = 0; i < 16; i++) {
		int sum = tweak[i] + (i < 8 ? (int)(low >> 8 * i & 0xff) : 0) + carry;

		tweak[i] = (uint8_t)sum;
		carry = sum >> 8;
	}
	for (size_t done = 0; done < job->bytes; done += job->units.unit, model_increment(tweak)) {
		size_t rest = job->bytes - done;

		model_unit(job->attr.key, job->attr.key_bytes, job->units.encrypt, tweak, to + done, from + done,
			   rest < job->units.unit ? rest : job->units.unit);
	}
}

static void expect_model(struct dek *dek, const struct job *job, size_t offset)
{
	static uint8_t plain[LARGEST + 64], expected[LARGEST + 64], out[LARGEST + 64];
	uint8_t *to = out + offset;

	fill(plain, sizeof(plain), job->bytes * 7 + job->units.first);
	model_job(job, expected, plain + offset);
	memset(out, 0xa5, sizeof(out));
	assert_int_equal(cipher_transform(dek, &job->units, to, plain + offset, job->bytes), 0);
	assert_memory_equal(to, expected, job->bytes);
	assert_int_equal(to[job->bytes], 0xa5);
	/* In place. */
	memcpy(to, plain + offset, job->bytes);
	assert_int_equal(cipher_transform(dek, &job->units, to, to, job->bytes), 0);
	assert_memory_equal(to, expected, job->bytes);
}

/* Keys with equal halves, as in vector 1 of the standard; also with shorter last units, and ciphertext stealing. */
static void equal_halves(void **state)
{
	static const size_t units[] = {16, 17, 512, 520, 4160};

	(void)state;
	for (unsigned int key_bytes = 32; key_bytes <= 64; key_bytes += 32) {
		struct job job = {.attr = some_key(key_bytes, key_bytes)};
		struct dek *dek;

		memcpy(job.attr.key + key_bytes / 2, job.attr.key, key_bytes / 2);
		dek = make_dek(&job.attr);
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
			job.units = (struct cipher_units){.unit = units[i], .tweak = {0xff, 1}, .first = i};
			for (int encrypt = 0; encrypt < 2; encrypt++) {
				job.units.encrypt = encrypt;
				job.bytes = 3 * units[i];
				expect_model(dek, &job, 0);
				job.bytes = 2 * units[i] + (units[i] > 500 ? 497 : 16);
				expect_model(dek, &job, 3);
			}
		}
		dek_put(dek);
	}
}

static void all_units_against_the_model(void **state)
{
	static const size_t units[] = {16, 17, 512, 520, 4048, 4096, 4160};
	/* Bytes after three whole units; the last unit has at least 16 bytes. */
	static const size_t rests[] = {0, 16, 17, 31, 32, 496, 505, 511};
	/* Initial tweaks: their sums with `first` stay low, carry into the upper half, and wrap around. */
	static const uint64_t tweaks[][3] = {
		{0, 0, 0},
		{5, 0, 1000},
		{UINT64_MAX, 0, 0},
		{UINT64_MAX - 1, 7, 0},
		{UINT64_C(0xfffffffffffffff0), 0x1234567890abcdef, 0x20},
		{UINT64_MAX, UINT64_MAX, 1},
		{0x1111111111111111, 0xfedcba9876543210, UINT64_MAX},
	};
	size_t jobs = 0;

	(void)state;
	for (int direction = 0; direction < 2; direction++) {
		for (unsigned int key_bytes = 32; key_bytes <= 64; key_bytes += 32) {
			struct job job = {.attr = some_key(key_bytes, key_bytes + direction)};
			struct dek *dek = make_dek(&job.attr);

			job.units.encrypt = direction;
			for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
				for (size_t r = 0; r < sizeof(rests) / sizeof(rests[0]); r++) {
					const uint64_t *tweak = tweaks[jobs % 7];

					if (rests[r] >= units[u])
						continue;
					job.units.unit = units[u];
					job.bytes = 3 * units[u] + rests[r];
					number_of_unit(job.units.tweak, tweak[0]);
					for (int i = 0; i < 8; i++)
						job.units.tweak[8 + i] = (uint8_t)(tweak[1] >> 8 * i);
					job.units.first = tweak[2];
					expect_model(dek, &job, jobs % 64);
					jobs++;
				}
			}
			dek_put(dek);
		}
	}
	assert_in_range(jobs, 100, 400);
}

/* Processes one unit of @bytes by @dek, with both buffers at the end of memory, or at its beginning. */
static void expect_at_edge(struct dek *dek, const struct job *job, uint8_t *source, uint8_t *target, size_t room,
			   bool end)
{
	uint8_t expected[2048];
	size_t place = end ? room - job->bytes : 0;

	fill(source + place, job->bytes, job->bytes);
	memset(target, 0xa5, room);
	model_job(job, expected, source + place);
	assert_int_equal(cipher_transform(dek, &job->units, target + place, source + place, job->bytes), 0);
	assert_memory_equal(target + place, expected, job->bytes);
	for (size_t i = 0; i < room; i++)
		if (i < place || i >= place + job->bytes)
			assert_int_equal(target[i], 0xa5);
}

/* Every length up to slightly more than the widest step; nothing beyond either end is read or written. */
static void every_length_at_the_edge_of_memory(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, 5 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	for (int i = 0; i < 5; i += 2)
		assert_int_equal(mprotect(map + (size_t)i * page, page, PROT_NONE), 0);
	for (int way = 0; way < 4; way++) {
		struct job job = {.attr = some_key(way & 1 ? 32 : 64, 9), .units.encrypt = way & 2};
		struct dek *dek = make_dek(&job.attr);

		for (job.bytes = 16; job.bytes <= 620; job.bytes++) {
			job.units.unit = job.bytes;
			job.units.first = job.bytes;
			expect_at_edge(dek, &job, map + page, map + 3 * page, page, job.bytes & 1);
			expect_at_edge(dek, &job, map + page, map + 3 * page, page, !(job.bytes & 1));
		}
		dek_put(dek);
	}
	munmap(map, 5 * page);
}

/* Less than one unit, no bytes, and lengths that cannot be divided into units. */
static void lengths_at_the_edge(void **state)
{
	struct job job = {.attr = some_key(32, 3), .units = {.unit = 512, .encrypt = true}};
	static const size_t bad[] = {1, 15, 513, 527, 1025, 1039};
	struct dek *dek = make_dek(&job.attr);
	uint8_t data[2048] = {0}, zero[2048] = {0};

	(void)state;
	for (job.bytes = 16; job.bytes <= 48; job.bytes++)
		expect_model(dek, &job, 0);
	assert_int_equal(cipher_transform(dek, &job.units, data, data, 0), 0);
	assert_memory_equal(data, zero, sizeof(data));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(cipher_transform(dek, &job.units, data, data, bad[i]), -EIO);
	job.units.unit = 0;
	assert_int_equal(cipher_transform(dek, &job.units, data, data, 512), -EIO);
	job.units.unit = 15;
	assert_int_equal(cipher_transform(dek, &job.units, data, data, 15), -EIO);
	job.units.unit = SIZE_MAX;
	assert_int_equal(cipher_transform(dek, &job.units, data, data, 512), -EIO);
	/* Refusals leave no entry in the program's error queue. */
	assert_int_equal(ERR_peek_error(), 0);
	dek_put(dek);
}

/* ---- threads -------------------------------------------------------------------------------------------------- */

enum { THREADS = 6, ROUNDS = 1500, UNIT = 520 };

struct worker {
	pthread_t thread;
	struct dek *dek;
	struct job job;
	pthread_barrier_t *start;
	int wrong;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	uint8_t plain[2 * UNIT], expected[2 * UNIT], out[2 * UNIT];

	fill(plain, sizeof(plain), worker->job.units.first);
	model_job(&worker->job, expected, plain);
	pthread_barrier_wait(worker->start);
	for (int i = 0; i < ROUNDS; i++) {
		struct cipher_units back = worker->job.units;

		if (cipher_transform(worker->dek, &worker->job.units, out, plain, sizeof(out)) ||
		    memcmp(out, expected, sizeof(out)) != 0)
			worker->wrong++;
		back.encrypt = !back.encrypt;
		if (cipher_transform(worker->dek, &back, out, out, sizeof(out)) || memcmp(out, plain, sizeof(out)) != 0)
			worker->wrong++;
	}
	return NULL;
}

static void run_threads(struct dek *dek, const struct dek_attr *attr)
{
	struct worker workers[THREADS];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.dek = dek, .start = &start};
		workers[i].job = (struct job){
			.attr = *attr,
			.units = {.encrypt = i & 1, .unit = UNIT, .first = (uint64_t)i * 1000},
			.bytes = 2 * UNIT,
		};
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].wrong, 0);
	}
	pthread_barrier_destroy(&start);
}

static void threads_share_a_dek(void **state)
{
	struct dek_attr attr = some_key(64, 11);
	struct dek *dek = make_dek(&attr);

	(void)state;
	run_threads(dek, &attr);
	dek_put(dek);
}

static void nothing_is_allocated_in_the_end(void **state)
{
	struct dek_attr attr = some_key(32, 12);
	struct dek *dek = make_dek(&attr);
	struct cipher_units units = {.unit = 512, .encrypt = true};
	uint8_t data[2048] = {0};
	uint64_t before;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		units.encrypt = i & 1;
		if (i == 2)
			before = openssl_allocations;
		assert_int_equal(cipher_transform(dek, &units, data, data, sizeof(data)), 0);
	}
	assert_int_equal(openssl_allocations, before);
	dek_put(dek);
}

/* Threads that start when there is no memory for their own context share the first one. */
static void *work_without_memory(void *argument)
{
	struct worker *worker = argument;
	uint8_t out[2 * UNIT], plain[2 * UNIT] = {0};

	pthread_barrier_wait(worker->start);
	for (int i = 0; i < ROUNDS; i++)
		if (cipher_transform(worker->dek, &worker->job.units, out, plain, sizeof(out)))
			worker->wrong++;
	return NULL;
}

static void threads_without_memory(void **state)
{
	struct worker workers[THREADS];
	struct dek_attr attr = some_key(32, 13);
	struct dek *dek = make_dek(&attr);
	pthread_barrier_t start;

	(void)state;
	pthread_barrier_init(&start, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.dek = dek, .start = &start, .job = {.units = {.unit = UNIT}}};
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work_without_memory, &workers[i]), 0);
	}
	__atomic_store_n(&openssl_fails, true, __ATOMIC_RELAXED);
	pthread_barrier_wait(&start);
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	__atomic_store_n(&openssl_fails, false, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(workers[i].wrong, 0);
	pthread_barrier_destroy(&start);
	dek_put(dek);
}

/* ---- DEKs ----------------------------------------------------------------------------------------------------- */

static void refused_keys(void **state)
{
	struct dek_attr attr = some_key(64, 20);
	uint32_t id = 77;

	(void)state;
	attr.key_bytes = 48;
	assert_int_equal(dek_create(hca, &attr, &id), -EINVAL);
	attr.key_bytes = 0;
	assert_int_equal(dek_create(hca, &attr, &id), -EINVAL);
	assert_int_equal(id, 77);
}

static void no_memory_for_a_key(void **state)
{
	struct dek_attr attr = some_key(64, 22);
	uint32_t id = 77;

	(void)state;
	__atomic_store_n(&openssl_fails, true, __ATOMIC_RELAXED);
	assert_int_equal(dek_create(hca, &attr, &id), -ENOMEM);
	__atomic_store_n(&openssl_fails, false, __ATOMIC_RELAXED);
	assert_int_equal(id, 77);
}

static void numbers_and_references(void **state)
{
	struct cipher_units units = {.unit = 512, .encrypt = true};
	struct dek_attr attr = some_key(32, 30);
	uint8_t before[512] = {0}, after[512] = {0};
	struct dek *held, *again;
	uint32_t id, other;

	(void)state;
	attr.pd = 0xabcdef;
	assert_int_equal(dek_create(hca, &attr, &id), 0);
	assert_int_equal(dek_create(hca, &attr, &other), 0);
	assert_int_not_equal(id, other);
	held = dek_get(hca, id);
	again = dek_get(hca, id);
	assert_ptr_equal(held, again);
	dek_put(again);
	assert_int_equal(dek_pd(held), 0xabcdef);
	assert_int_equal(cipher_transform(held, &units, before, before, 512), 0);
	assert_int_equal(dek_destroy(hca, id), 0);
	assert_null(dek_get(hca, id));
	assert_int_equal(dek_destroy(hca, id), -ENOENT);
	/* Its holder can still use it. */
	assert_int_equal(cipher_transform(held, &units, after, after, 512), 0);
	assert_memory_equal(before, after, 512);
	dek_put(held);
	assert_int_equal(dek_destroy(hca, other), 0);
	assert_null(dek_get(hca, 0));
	assert_null(dek_get(hca, 0xffffff));
	assert_null(dek_get(hca, UINT32_MAX));
	assert_int_equal(dek_destroy(hca, 0), -ENOENT);
}

static void key_tags(void **state)
{
	struct dek_attr attr = some_key(32, 40);
	uint8_t tag[8] = {1, 2, 3, 4, 5, 6, 7, 8}, other[8] = {1, 2, 3, 4, 5, 6, 7, 9};
	struct dek *dek = make_dek(&attr);

	(void)state;
	assert_true(dek_accepts_keytag(dek, tag));
	assert_true(dek_accepts_keytag(dek, other));
	dek_put(dek);
	attr.has_keytag = true;
	memcpy(attr.keytag, tag, sizeof(tag));
	dek = make_dek(&attr);
	assert_true(dek_accepts_keytag(dek, tag));
	assert_false(dek_accepts_keytag(dek, other));
	other[7] = 8;
	other[0] = 0;
	assert_false(dek_accepts_keytag(dek, other));
	dek_put(dek);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_of_the_standard),
		cmocka_unit_test(all_units_against_the_model),
		cmocka_unit_test(equal_halves),
		cmocka_unit_test(lengths_at_the_edge),
		cmocka_unit_test(every_length_at_the_edge_of_memory),
		cmocka_unit_test(threads_share_a_dek),
		cmocka_unit_test(nothing_is_allocated_in_the_end),
		cmocka_unit_test(threads_without_memory),
		cmocka_unit_test(refused_keys),
		cmocka_unit_test(no_memory_for_a_key),
		cmocka_unit_test(numbers_and_references),
		cmocka_unit_test(key_tags),
	};
	const struct CMUnitTest by_the_cpu[] = {
		cmocka_unit_test(vectors_of_the_standard),
		cmocka_unit_test(all_units_against_the_model),
		cmocka_unit_test(equal_halves),
		cmocka_unit_test(lengths_at_the_edge),
		cmocka_unit_test(every_length_at_the_edge_of_memory),
		cmocka_unit_test(threads_share_a_dek),
		cmocka_unit_test(refused_keys),
	};
	int failed;

	/* Before OpenSSL allocates anything. */
	if (CRYPTO_set_mem_functions(count_malloc, count_realloc, plain_free) != 1)
		return 1;
	setenv("SOFTHCA_GIDS", "loopback", 1);
	hca = hca_device(0);
	xts_forbid(true);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	xts_forbid(false);
	if (xts_supported())
		failed += cmocka_run_group_tests(by_the_cpu, NULL, NULL);
	return failed;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guest of the test of live migration: a multiboot kernel that runs in 32-bit protected mode, without a library. Each pass
 * verifies all of its memory, rewrites a part of it and prints a line to the first serial port: "pass N right", or "pass N wrong at
 * ADDRESS". The words that stay were written before the first pass; the words that change depend on the pass.
 */
#include <stdint.h>

enum {
	SERIAL = 0x3f8,
	TRANSMITTER_EMPTY = 0x20,
	STILL = 24 << 20, /* bytes that never change */
	MOVING = 4 << 20, /* bytes that each pass rewrites */
};

static volatile uint32_t *const still = (volatile uint32_t *)(8 << 20);
static volatile uint32_t *const moving = (volatile uint32_t *)((8 << 20) + STILL);

/* The multiboot header (magic number, flags, checksum), which has to be first; then the entry point, which sets up the stack. */
__asm__(".text\n"
	".align 4\n"
	".long 0x1badb002, 0, -0x1badb002\n"
	".global start\n"
	"start: mov $0x400000, %esp\n"
	"call run\n");

static inline uint8_t port_in(uint16_t port)
{
	uint8_t value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static void put(char letter)
{
	while (!(port_in(SERIAL + 5) & TRANSMITTER_EMPTY))
		;
	__asm__ volatile("outb %0, %1" : : "a"(letter), "Nd"((uint16_t)SERIAL));
}

static void put_text(const char *text)
{
	while (*text)
		put(*text++);
}

static void put_number(uint32_t number)
{
	char digits[11];
	int count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		put(digits[--count]);
}

/* Returns the word at @index after @pass passes. */
static uint32_t word(uint32_t index, uint32_t pass)
{
	return (index + 1) * 2654435761u ^ pass * 40503u;
}

static void fill(volatile uint32_t *words, uint32_t bytes, uint32_t pass)
{
	for (uint32_t i = 0; i < bytes / 4; i++)
		words[i] = word(i, pass);
}

/* Returns the address of the first word that differs, or 0. */
static uint32_t wrong(const volatile uint32_t *words, uint32_t bytes, uint32_t pass)
{
	for (uint32_t i = 0; i < bytes / 4; i++)
		if (words[i] != word(i, pass))
			return (uint32_t)&words[i];
	return 0;
}

void run(void)
{
	fill(still, STILL, 0);
	fill(moving, MOVING, 0);
	for (uint32_t pass = 1;; pass++) {
		uint32_t address = wrong(still, STILL, 0);

		if (!address)
			address = wrong(moving, MOVING, pass - 1);
		fill(moving, MOVING, pass);
		put_text("pass ");
		put_number(pass);
		if (address) {
			put_text(" wrong at ");
			put_number(address);
		} else {
			put_text(" right");
		}
		put('\n');
	}
}

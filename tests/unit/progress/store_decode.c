/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * progress/store_decode: the lengths of instructions are those of the assembler, and their addresses those that the
 * processor reports when the instruction faults.
 */
#include "test_case.h"

#include "progress/store_decode.h"

#if defined(__x86_64__) && defined(__LP64__)

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

enum { AREA = 1 << 20, PAGE = 4096 };

/* An instruction, assembled: from its address to that of the next. */
struct code {
	const char *text;
	const uint8_t *begin, *end;
};

#define CODE(number, text)                                                                                             \
	__asm__(".pushsection .text\n.globl code_" #number "\n"                                                        \
		"code_" #number ":\n\t" text "\ncode_" #number "_end:\n\tud2\n.popsection\n");                         \
	extern const uint8_t code_##number[], code_##number##_end[];

#define STORES(CODE)                                                                                                   \
	CODE(1, "mov %rax,(%rbx)")                                                                                     \
	CODE(2, "mov %al,(%rbx)")                                                                                      \
	CODE(3, "mov %ax,0x12(%rbx)")                                                                                  \
	CODE(4, "mov %eax,-8(%rbx,%rcx,4)")                                                                            \
	CODE(5, "mov %r8,0x12345(%rbx)")                                                                               \
	CODE(6, "mov %r9b,(%r13)")                                                                                     \
	CODE(7, "mov %rax,(%r12)")                                                                                     \
	CODE(8, "mov %rax,8(%r12,%r14,8)")                                                                             \
	CODE(9, "mov %rdx,(%rsp)")                                                                                     \
	CODE(10, "mov %rdx,0x10(%rbp)")                                                                                \
	CODE(11, "movq $-5,(%rbx)")                                                                                    \
	CODE(12, "movl $0x12345678,0x40(%r15)")                                                                        \
	CODE(13, "movw $0x1234,(%rbx)")                                                                                \
	CODE(14, "movb $1,0x7f(%rbx)")                                                                                 \
	CODE(15, "mov %rax,0x1000(,%rcx,8)")                                                                           \
	CODE(16, "movnti %rax,(%rbx)")                                                                                 \
	CODE(17, "movnti %eax,8(%r10)")                                                                                \
	CODE(18, "movbe %rax,(%rbx)")                                                                                  \
	CODE(19, "movbe %ax,4(%r11)")                                                                                  \
	CODE(20, ".byte 0x48,0x0f,0x38,0xf9,0x43,0x08") /* movdiri %rax,8(%rbx) */                                     \
	CODE(21, "movups %xmm0,(%rbx)")                                                                                \
	CODE(22, "movaps %xmm9,0x20(%rbx)")                                                                            \
	CODE(23, "movdqa %xmm1,(%r9)")                                                                                 \
	CODE(24, "movdqu %xmm12,0x30(%rbx,%r15,2)")                                                                    \
	CODE(25, "movsd %xmm0,(%rbx)")                                                                                 \
	CODE(26, "movss %xmm0,(%rbx)")                                                                                 \
	CODE(27, "movlps %xmm0,(%rbx)")                                                                                \
	CODE(28, "movhpd %xmm0,8(%rbx)")                                                                               \
	CODE(29, "movq %xmm0,(%rbx)")                                                                                  \
	CODE(30, "movd %xmm0,(%rbx)")                                                                                  \
	CODE(31, "movntdq %xmm0,(%rbx)")                                                                               \
	CODE(32, "movntps %xmm0,(%rbx)")                                                                               \
	CODE(33, "movq %mm0,(%rbx)")                                                                                   \
	CODE(34, "movntq %mm0,(%rbx)")                                                                                 \
	CODE(35, "movupd %xmm0,(%rbx)")

/* Decoded without running: the processor may lack AVX. */
#define VECTOR_STORES(CODE)                                                                                            \
	CODE(50, "vmovdqu %ymm0,(%rbx)")                                                                               \
	CODE(51, "vmovdqa %xmm0,0x20(%rbx)")                                                                           \
	CODE(52, "vmovups %ymm11,-0x20(%rbx,%rcx,1)")                                                                  \
	CODE(53, "vmovntdq %ymm0,(%r12)")                                                                              \
	CODE(54, "vmovdqu %ymm8,0x40(%r13,%r14,1)")                                                                    \
	CODE(55, "vmovq %xmm0,(%rbx)")                                                                                 \
	CODE(56, "vmovsd %xmm0,8(%rbx)")                                                                               \
	CODE(57, "vmovdqu64 %ymm16,(%rbx)")                                                                            \
	CODE(58, "vmovdqu64 %ymm17,-0x20(%rbx,%rcx,1)")                                                                \
	CODE(59, "vmovdqu64 %zmm18,0x40(%rbx)")                                                                        \
	CODE(60, "vmovdqu8 %zmm30,0x123(%r13)")                                                                        \
	CODE(61, "vmovaps %zmm1,(%r9,%r15,8)")                                                                         \
	CODE(62, "vmovntdq %zmm1,0x80(%rbx)")                                                                          \
	CODE(63, "vmovups %xmm20,0x10(%rbx)")                                                                          \
	CODE(64, "vmovdqa32 %ymm21,0x40(%rbx)")

/* Other instructions that write memory, or do not. */
#define OTHERS(CODE)                                                                                                   \
	CODE(80, "mov (%rbx),%rax")                                                                                    \
	CODE(81, "mov %rax,%rbx")                                                                                      \
	CODE(82, "xchg %rax,(%rbx)")                                                                                   \
	CODE(83, "lock addq $1,(%rbx)")                                                                                \
	CODE(84, "add %rax,(%rbx)")                                                                                    \
	CODE(85, "movdqu (%rbx),%xmm0")                                                                                \
	CODE(86, "movq (%rbx),%xmm0")                                                                                  \
	CODE(87, "rep movsb")                                                                                          \
	CODE(88, "stosq")                                                                                              \
	CODE(89, "push %rax")                                                                                          \
	CODE(90, "mov %rax,%fs:(%rbx)")                                                                                \
	CODE(91, "mov %eax,(%ebx)")                                                                                    \
	CODE(92, "vmovdqu64 %zmm1,(%rbx){%k1}")                                                                        \
	CODE(93, "vmovdqu (%rbx),%ymm0")                                                                               \
	CODE(94, "crc32 %al,%ebx")                                                                                     \
	CODE(95, "sfence")                                                                                             \
	CODE(96, "cvttpd2dq (%rbx),%xmm0")                                                                             \
	CODE(97, "vpscatterdd %zmm1,(%rbx,%zmm2,1){%k1}")                                                              \
	CODE(98, "vextractf128 $1,%ymm0,(%rbx)")                                                                       \
	CODE(99, "nop")

STORES(CODE)
VECTOR_STORES(CODE)
OTHERS(CODE)
CODE(120, "movups %xmm0,(%rbx)\n\tmovups %xmm1,0x10(%rbx)\n\tmov %rax,0x20(%rbx)\n\tmovl $1,0x28(%rbx)")
CODE(121, "mov %rax,0x100(%rip)")

#define ENTRY(number, text) {text, code_##number, code_##number##_end},

static const struct code stores[] = {STORES(ENTRY)};
static const struct code vector_stores[] = {VECTOR_STORES(ENTRY)};
static const struct code others[] = {OTHERS(ENTRY)};
static const struct code several[] = {ENTRY(120, "four stores") ENTRY(121, "relative to the instruction")};

static uint8_t *area;
static sigjmp_buf back;
static uintptr_t fault_address;

/* All registers differ; each address of the table is inside the area. */
static void registers_fill(greg_t *registers)
{
	static const int bases[] = {REG_RBX, REG_RSP, REG_RBP, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R15};

	memset(registers, 0, sizeof(gregset_t));
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++)
		registers[bases[i]] = (greg_t)(uintptr_t)(area + AREA / 2 + i * 0x1000);
	registers[REG_RCX] = 0x140;
	registers[REG_R14] = 0x88;
}

static void registers_fill_for(greg_t *registers, const struct code *code)
{
	registers_fill(registers);
	/* As an index, it is small; alone, a base. */
	if (strstr(code->text, ",%r15,"))
		registers[REG_R15] = 0x60;
	if (strstr(code->text, "(,%rcx"))
		registers[REG_RCX] = (greg_t)((uintptr_t)(area + AREA / 2) / 8);
	registers[REG_RIP] = (greg_t)(uintptr_t)code->begin;
}

/* Runs the instruction with the registers of the test, and notes the address of its fault. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
	static gregset_t before;
	static const struct code *running;
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signal;
	if (info->si_addr == (void *)area) {
		running = (const struct code *)(uintptr_t)registers[REG_RDI];
		memcpy(before, registers, sizeof(before));
		registers_fill_for(registers, running);
		registers[REG_EFL] = before[REG_EFL];
		registers[REG_CSGSFS] = before[REG_CSGSFS];
		return;
	}
	fault_address = (uintptr_t)info->si_addr;
	memcpy(registers, before, sizeof(before));
	siglongjmp(back, 1);
}

static uintptr_t address_by_processor(const struct code *code)
{
	static uint8_t memory[1 << 16];
	const stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK}, before;

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, &before);
	fault_address = 0;
	if (!sigsetjmp(back, 1))
		__asm__ volatile("movb $0,(%0)" : : "r"(area), "D"(code) : "memory");
	sigaction(SIGSEGV, &before, NULL);
	return fault_address;
}

static size_t skip_code(const struct code *code, uintptr_t start, size_t bytes, const uint8_t **end)
{
	static ucontext_t context;
	size_t count;

	registers_fill_for(context.uc_mcontext.gregs, code);
	count = stores_skip(&context, start, bytes);
	*end = (const uint8_t *)(uintptr_t)context.uc_mcontext.gregs[REG_RIP];
	return count;
}

static void expect_skipped(const struct code *code, uintptr_t address)
{
	const uint8_t *end;

	if (skip_code(code, address, 1, &end) != 1 || end != code->end)
		fail_msg("%s: %zd bytes of %zd", code->text, end - code->begin, code->end - code->begin);
	assert_int_equal(skip_code(code, address + 1, 1, &end), 0);
	assert_ptr_equal(end, code->begin);
	assert_int_equal(skip_code(code, address - 1, 1, &end), 0);
}

static int begin(void **state)
{
	(void)state;
	area = mmap(NULL, AREA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	return area == MAP_FAILED;
}

TEST(test_stores)
{
	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		uintptr_t address = address_by_processor(&stores[i]);

		if (address - (uintptr_t)area >= AREA)
			fail_msg("%s: runs without a fault in the area", stores[i].text);
		expect_skipped(&stores[i], address);
	}
}

/* Operands of vectors, by the rules for those of other stores. */
TEST(test_vector_stores)
{
	const uintptr_t rbx = (uintptr_t)area + AREA / 2, r9 = rbx + 0x3000, r12 = rbx + 0x6000, r13 = rbx + 0x7000;
	const uintptr_t addresses[] = {
		rbx,        rbx + 0x20, rbx - 0x20 + 0x140, r12,        r13 + 0x40 + 0x88, rbx,
		rbx + 8,    rbx,        rbx - 0x20 + 0x140, rbx + 0x40, r13 + 0x123,       r9 + 0x60 * 8,
		rbx + 0x80, rbx + 0x10, rbx + 0x40};

	for (size_t i = 0; i < sizeof(vector_stores) / sizeof(vector_stores[0]); i++)
		expect_skipped(&vector_stores[i], addresses[i]);
}

TEST(test_others)
{
	const uint8_t *end;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (skip_code(&others[i], 0, SIZE_MAX, &end) || end != others[i].begin)
			fail_msg("%s counts as a store", others[i].text);
}

TEST(test_several)
{
	const uintptr_t rbx = (uintptr_t)area + AREA / 2, far = (uintptr_t)several[1].end + 0x100;
	const uint8_t *end;

	assert_int_equal(skip_code(&several[0], rbx, PAGE, &end), 4);
	assert_ptr_equal(end, several[0].end);
	/* To the last that is inside. */
	assert_int_equal(skip_code(&several[0], rbx, 0x20, &end), 2);
	assert_int_equal(skip_code(&several[1], far, 1, &end), 1);
	assert_ptr_equal(end, several[1].end);
}

int main(void)
{
	return run_cases(.group_setup = begin);
}

#else

TEST(test_nothing_is_decoded)
{
	ucontext_t context;

	assert_false(store_decode_works());
	assert_int_equal(stores_skip(&context, 0, SIZE_MAX), 0);
}

#endif

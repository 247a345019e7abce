/* SPDX-License-Identifier: BSD-2-Clause */
/* Doorbell page of a context, see verbs/context/doorbell_page.h. */
#include <stddef.h>
#include <sys/mman.h>

#include "verbs/context/doorbell_page.h"

void *doorbell_page(struct user_context *context)
{
	void *page = __atomic_load_n(&context->doorbell_page, __ATOMIC_ACQUIRE);
	void *made;

	if (page)
		return page;
	made = mmap(NULL, DOORBELL_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&context->doorbell_page, &page, made, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		hca_watch_page(hca_of_context(&context->verbs.context), made);
		return made;
	}
	munmap(made, DOORBELL_PAGE_SIZE);
	return page;
}

void doorbell_page_free(struct user_context *context)
{
	if (!context->doorbell_page)
		return;
	hca_unwatch_page(hca_of_context(&context->verbs.context), context->doorbell_page);
	munmap(context->doorbell_page, DOORBELL_PAGE_SIZE);
	context->doorbell_page = NULL;
}

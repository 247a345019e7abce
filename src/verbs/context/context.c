/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, finds and closes contexts: ibv_open_device(3), ibv_close_device(3). See context.h. */
#include "verbs/context/context.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/entry_points.h"
#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/object/devx.h"
#include "verbs/context/doorbell_page.h"
#include "verbs/memory/signature.h"
#include "verbs/object/events.h"
#include "verbs/post/inherited.h"
#include "verbs/object/lint.h"

/* Global because ibv_import_device(3) gets no context. */
static struct {
	pthread_mutex_t lock;
	struct user_context *first;
} contexts = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t fork_handlers_once = PTHREAD_ONCE_INIT;

/* Returns true for the first context with its handle table, which imports share. */
static bool owns_table(const struct user_context *context)
{
	const struct user_context *other;

	for (other = contexts.first; other != context; other = other->next)
		if (other->handles == context->handles)
			return false;
	return true;
}

/*
 * A forked child continues to use contexts (clients allocate device memory there), so it must find them consistent and
 * unlocked. Takes the locks that core/locks.def assigns to the driver.
 */
static void contexts_before_fork(void)
{
	struct user_context *context;

	devices_before_fork();
	pthread_mutex_lock(&contexts.lock);
	for (context = contexts.first; context; context = context->next)
		if (owns_table(context))
			handle_table_freeze(context->handles);
	for (context = contexts.first; context; context = context->next)
		pthread_mutex_lock(&context->verbs.context.mutex);
	for (context = contexts.first; context; context = context->next)
		if (context->devx)
			devx_before_fork(context->devx);
}

static void contexts_after_fork(void)
{
	struct user_context *context;

	for (context = contexts.first; context; context = context->next)
		if (context->devx)
			devx_after_fork(context->devx);
	for (context = contexts.first; context; context = context->next)
		pthread_mutex_unlock(&context->verbs.context.mutex);
	for (context = contexts.first; context; context = context->next)
		if (owns_table(context))
			handle_table_thaw(context->handles);
	pthread_mutex_unlock(&contexts.lock);
	devices_after_fork();
}

static void contexts_after_fork_in_child(void)
{
	contexts_after_fork();
	objects_visit(OBJECT_QP, user_qp_inherit);
}

static void register_fork_handlers(void)
{
	pthread_atfork(contexts_before_fork, contexts_after_fork, contexts_after_fork_in_child);
}

/* Registered after the device's handlers, so it runs before them: locks of the driver are taken first. */
void contexts_handle_fork(void)
{
	alive_prepare();
	pthread_once(&fork_handlers_once, register_fork_handlers);
}

static void list_context(struct user_context *context)
{
	pthread_mutex_lock(&contexts.lock);
	context->next = contexts.first;
	contexts.first = context;
	pthread_mutex_unlock(&contexts.lock);
}

static void unlist_context(struct user_context *context)
{
	struct user_context **link;

	pthread_mutex_lock(&contexts.lock);
	for (link = &contexts.first; *link != context; link = &(*link)->next)
		;
	*link = context->next;
	pthread_mutex_unlock(&contexts.lock);
}

static void context_init(struct user_context *context, struct ibv_device *device, int cmd_fd)
{
	struct ibv_context *base = &context->verbs.context;

	context->verbs.sz = sizeof(context->verbs);
	base->device = device;
	base->cmd_fd = cmd_fd;
	base->async_fd = context->async.fd;
	base->num_comp_vectors = LIMIT_COMP_VECTORS;
	pthread_mutex_init(&base->mutex, NULL);
	base->abi_compat = __VERBS_ABI_IS_EXTENDED;
	context_ops_fill(&context->verbs);
	user_index_init(&context->qps);
	signature_table_init(&context->signatures);
}

static int refuse_descriptor(struct ibv_device *device, int error)
{
	return REFUSE(to_user_device(device)->hca, "ibv_open_device", error, RULE_NO_DESCRIPTOR, error);
}

struct ibv_context *user_context_new(struct ibv_device *device, int cmd_fd, struct handle_table *handles)
{
	WITHOUT_CANCELLATION;
	struct user_context *context = calloc(1, sizeof(*context));
	int error = -ENOMEM;

	if (!context || !handles)
		goto free_context;
	error = event_queue_init(&context->async);
	if (error) {
		error = -refuse_descriptor(device, -error);
		goto free_context;
	}
	context->async.taken = count_async_event;
	error = hca_open(to_user_device(device)->hca, &context->async, &context->device);
	if (error)
		goto destroy_queue;
	context->handles = handles;
	lint_start();
	context_init(context, device, cmd_fd);
	list_context(context);
	object_enter(&context->verbs.context, &context->alive, &context->verbs.context);
	return &context->verbs.context;

destroy_queue:
	event_queue_destroy(&context->async);
free_context:
	free(context);
	if (handles)
		handle_table_put(handles);
	descriptor_close(cmd_fd);
	errno = -error;
	return NULL;
}

/* The command descriptor is a socket: its duplicates share its identity (fstat(2)), and it can be polled. */
struct ibv_context *softhca_ibv_open_device(struct ibv_device *device)
{
	int cmd_fd = descriptor_show(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));

	if (cmd_fd < 0) {
		errno = refuse_descriptor(device, errno);
		return NULL;
	}
	return user_context_new(device, cmd_fd, handle_table_new());
}

int user_context_find(int fd, struct ibv_device **device, struct handle_table **handles)
{
	struct user_context *context;
	struct stat wanted, found;
	int error = -ENODEV;

	if (fstat(fd, &wanted))
		return -errno;
	pthread_mutex_lock(&contexts.lock);
	for (context = contexts.first; context; context = context->next) {
		if (fstat(context->verbs.context.cmd_fd, &found) || found.st_dev != wanted.st_dev ||
		    found.st_ino != wanted.st_ino)
			continue;
		*device = context->verbs.context.device;
		*handles = context->handles;
		handle_table_get(*handles);
		error = 0;
		break;
	}
	pthread_mutex_unlock(&contexts.lock);
	return error;
}

static void end_crypto_session(struct user_context *context)
{
	pthread_mutex_lock(&context->verbs.context.mutex);
	if (context->crypto_session)
		hca_login_destroy(context->crypto_session);
	context->crypto_session = NULL;
	pthread_mutex_unlock(&context->verbs.context.mutex);
}

/*
 * ibv_open_device(3): "ibv_close_device() does not release all the resources allocated using context". The kernel of a
 * real adapter does release them, and programs rely on it. Here the call succeeds, but the remaining resources and
 * their context stay alive.
 */
int softhca_ibv_close_device(struct ibv_context *base)
{
	WITHOUT_CANCELLATION;
	struct user_context *context;
	struct hca *hca;

	if (object_refused("ibv_close_device", NULL, base))
		return -1;
	context = to_user_context(base);
	hca = hca_of_context(base);
	end_crypto_session(context);
	LINT(context_closing, base);
	user_devx_close(context);
	if (hca_close(context->device)) {
		/* --lint warns of the remaining resources. */
		EXPLAIN(hca, (&(const struct explain_subject){.call = "ibv_close_device", .expected = true}),
			RULE_CONTEXT_IN_USE, 0);
		return 0;
	}
	object_leave(&context->alive);
	unlist_context(context);
	descriptor_close(base->cmd_fd);
	event_queue_destroy(&context->async);
	doorbell_page_free(context);
	user_index_destroy(&context->qps);
	signature_table_destroy(&context->signatures);
	handle_table_put(context->handles);
	pthread_mutex_destroy(&base->mutex);
	free(context);
	return 0;
}

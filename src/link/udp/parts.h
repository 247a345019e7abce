/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the udp link (README.md).
 *
 * Locks: that of a socket (its buffer) while it sends, that of the table of sockets, and that of the port. They are
 * taken under locks of the transport; none is held while the transport is called. Any thread may call, unless noted.
 */
#ifndef SOFTHCA_LINK_UDP_PARTS_H
#define SOFTHCA_LINK_UDP_PARTS_H

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "core/tunables.h"
#include "hca/hca.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "link/host/names.h"
#include "link/udp/udp.h"
#include "wire/roce.h"

/* From linux/in6.h, which conflicts with netinet/in.h. */
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29 /* since Linux 4.20 */
#endif

/* Addressing of datagrams for a path. */
struct udp_way {
	struct packet_path path; /* with the addresses of the datagram, which the ICRC covers */
	bool ipv6;
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} to;
	socklen_t to_length;
	/* Control data for sendmsg(2), with room for UDP_SEGMENT. */
	size_t control_length;
	size_t unlabelled; /* control_length without the flow label, which comes last */
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct in6_pktinfo)) + 4 * CMSG_SPACE(sizeof(int))];
};

/** Returns true if datagrams for @path are of IPv6, after inner addresses (link/host/inner.h) are in place. */
bool udp_path_is_ipv6(const struct hca *hca, const struct packet_path *path);
/**
 * Fills @way for @path, with inner addresses where necessary. Returns 0, or -EAFNOSUPPORT, explained, if only one address
 * is IPv4.
 */
int udp_way_make(struct udp_way *way, struct hca *hca, const struct packet_path *path);

static inline int udp_set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

/**
 * Makes a buffer of @fd as large as allowed, by option @forced or @plain, because datagrams that do not fit are lost.
 */
static inline void udp_set_buffer(int fd, int forced, int plain, int bytes)
{
	if (udp_set_option(fd, SOL_SOCKET, forced, bytes))
		udp_set_option(fd, SOL_SOCKET, plain, bytes);
}

struct udp_arrival {
	struct packet_path wire; /* covered by the ICRC */
	struct packet_path path; /* for the transport */
	uint16_t source_port;
	uint32_t segment; /* bytes of each packet except the last; 0: a single packet */
};

/** Stores the address of @name in *@gid. Returns false if it is neither IPv4 nor IPv6. */
bool udp_gid_of_name(union ibv_gid *gid, const struct sockaddr *name);

/** Fills @arrival from the received @message. Returns false if its addresses are missing. */
bool udp_arrival_read(struct udp_arrival *arrival, struct msghdr *message);

/* Bytes of an acknowledgement, from BTH to ICRC. */
#define UDP_HELD_BYTES 64

struct udp_socket;
struct udp_sockets;
struct watched_fd;

/* An acknowledgement that waits for the program's reply (held.c). */
struct udp_held {
	struct hca *hca;
	/* Sends the acknowledgement that @socket holds, and calls udp_held_gone(). The lock of @socket is held. */
	void (*send)(struct udp_socket *socket);
	uint32_t source_qpn, destination_qpn;
	uint64_t since_ns; /* also of `kept` */
	uint32_t length;   /* 0: none */
	uint8_t bytes[UDP_HELD_BYTES];
};

/* How promptly the program replies to a flow. */
struct udp_answers {
	bool due; /* an acknowledgement has left, but no request since */
	uint64_t acknowledged_ns;
	uint32_t row; /* consecutive requests that each soon followed an acknowledgement */
};

/*
 * Packets that leave together. They are built one after the other in the socket's buffer, and form a train while all
 * have the same length; only the last may be shorter (UDP_SEGMENT, udp(7)).
 */
struct udp_transmission {
	struct hca *hca;
	uint32_t source_qpn, destination_qpn; /* of the newest packet, for explanations */
	struct udp_socket *socket;
	uint32_t users;   /* references to the socket to release at the end */
	uint32_t segment; /* bytes of the first packet of the train */
	uint32_t count;   /* packets of the train */
	uint32_t used;    /* bytes of the train */
	bool complete;    /* the last packet is shorter */
	bool answers;     /* the last packet is the acknowledgement that was held back */
	bool waits;       /* for further packets, although its requester has stopped (held.c) */
};

/* Whether the program polls soon after it has posted requests. */
struct udp_stream {
	uint32_t failures; /* consecutive times that the device thread had to send what waited */
	uint32_t skip;     /* requests that do not wait because of these */
};

/* A socket that sends from one source port and receives nothing. */
struct udp_socket {
	struct udp_sockets *table;
	pthread_mutex_t lock; /* covers sending: the buffer */
	int fd;               /* -1: none */
	int fragmenting;      /* a second socket that may send fragments; -1: not needed yet; under `lock` */
	bool ipv6;
	bool no_trains;      /* under `lock`: the kernel refused UDP_SEGMENT */
	bool no_labels;      /* under `lock`: the kernel refused IPV6_FLOWINFO */
	uint16_t wanted;     /* requested port */
	uint16_t port;       /* differs if a program has the requested one exclusively */
	uint32_t users;      /* threads that send or wait; this and all other fields: under the lock of the table */
	uint64_t used;       /* time of the last request, as a counter */
	uint64_t checked_ns; /* last check of `fd`; under `lock` */
	uint8_t *buffer;     /* UDP_BUFFER_BYTES */
	/* Way of the newest packet, of all packets that wait, and of most of the next ones; under `lock`. */
	struct udp_way way;
	const struct hca *way_hca;    /* NULL: no way yet */
	struct packet_path way_for;   /* as the transport gave it */
	struct udp_held held;         /* under `lock` */
	struct udp_transmission kept; /* under `lock`; continued by the next packet (udp.c); count 0: none */
	struct udp_stream stream;     /* under `lock` */
	struct udp_answers answers;   /* under `lock` */
	struct roce_icrc_start icrc[ROCE_ICRC_STARTS]; /* under `lock` */
};

/* A train, plus the headers of the packet after it. */
#define UDP_BUFFER_BYTES (TUNABLE_UDP_TRAIN_BYTES + 128)

/** Makes the registry's table of sockets that send, all closed. Returns NULL without memory. */
struct udp_sockets *udp_sockets_new(void);

/**
 * Returns the socket for @port with its lock held, opened if needed, or NULL with errno. Unless @exactly, returns a
 * socket of another port when the table is full: otherwise many flows would close each other's.
 */
struct udp_socket *udp_socket_get(struct udp_sockets *table, bool ipv6, uint16_t port, bool exactly);
/**
 * Returns a descriptor of the same port for packets longer than the interface's MTU, or a negative errno. The lock of
 * @socket is held.
 */
int udp_socket_fragmenting(struct udp_socket *socket);
/** As udp_socket_get(), for datagrams of the connection manager (unreachable.c), on any port. */
struct udp_socket *udp_socket_of_manager(struct udp_sockets *table, bool ipv6);
/** Watches for reports of hosts that refuse datagrams sent by @fd. The lock of the table is held. */
void udp_unreachable_watch(struct watched_fd *refusals, int fd, bool ipv6);

/** Releases @users references to an unlocked socket. */
void udp_socket_forget(struct udp_socket *socket, uint32_t users);
/** For process/fork.c. */
void udp_sockets_lock(struct udp_sockets *table);
void udp_sockets_unlock(struct udp_sockets *table);
/** Closes all sockets in a forked child. The lock is held. */
void udp_sockets_forget(struct udp_sockets *table);

/* ---- packets that wait for others --------------------------------------------------------------------------------- */

/** Returns the value of udp_holding() while packets of this flow wait. */
static inline uint32_t udp_flow_key(bool ipv6, uint16_t port)
{
	return 1u << 17 | (uint32_t)ipv6 << 16 | port;
}

/** Initializes, once in a process. */
void udp_held_begin(void);
/** Records that a request is about to leave by @socket, whose lock is held. */
void udp_held_note_request(struct udp_socket *socket);
/**
 * Decides about an acknowledgement that is about to leave by @socket, which is locked and does not hold one. Returns
 * true to hold it: the caller then fills socket->held and unlocks the socket, but does not release it.
 */
bool udp_held_keep(struct udp_socket *socket, uint32_t key);
/**
 * Lets the requests in socket->kept wait for others. Returns false if packets of another socket wait; then they must leave
 * now. The lock of @socket is held.
 */
bool udp_kept_wait(struct udp_socket *socket, uint32_t key);
/**
 * Marks what waited in @socket as sent. The lock of @socket is held; the caller calls udp_socket_forget() after unlocking.
 */
void udp_held_gone(struct udp_socket *socket);
/** Returns the socket in which packets wait, or NULL. Lock it and check. */
struct udp_socket *udp_held_socket(void);
/** Returns true if the program received a message a moment ago and is expected to reply. */
bool udp_held_just_now(void);
/** Drops what waits. In a forked child. */
void udp_held_after_fork(void);

/**
 * Opens a socket for receiving, not yet bound, for both families, or for IPv4 only where there is no IPv6 (*@ipv6).
 * Returns a descriptor or a negative errno.
 */
int udp_receiver_open(bool *ipv6);
/** As udp_receiver_open(), for a multicast group of one family; the socket consents. */
int udp_group_open(bool ipv6);
/**
 * Sets whether another socket of this user may be bound to the port of @fd (SO_REUSEPORT, which both need when the
 * second is bound); see DESIGN.md, "Multicast". Returns 0 or a negative errno.
 */
int udp_set_consent(int fd, bool consents);
/**
 * Sets the options of the bound socket that another process passed, except its buffer size, which this process may not
 * be able to set as large.
 */
void udp_receiver_adopt(int fd);

/** Sets the window from @bytes of receive buffer as the kernel counts them, about twice the payload that fits. */
void udp_set_window(uint32_t bytes);

/* ---- the port, which the processes of a user share --------------------------------------------------------------- */

/*
 * The socket and the page that the processes of a user share (DESIGN.md). Any process of the user may write anything to
 * the page.
 */
struct udp_share {
	int socket; /* -1: none */
	int page;   /* memfd of UDP_PAGE_BYTES; -1: none, and the socket is not shared */
};

#define UDP_PAGE_BYTES 4096

struct udp_turn {
	uint32_t turn;  /* atomic; number of changes of the reader: the process that made the last one reads */
	uint32_t beats; /* atomic; number of batches taken out of the socket */
};

/** Passes @share over @connection. Never blocks. Returns 0 or a negative errno. */
int udp_handover_send(int connection, const struct udp_share *share);
/**
 * Receives what process @pid passed on @connection: a socket bound to @port in the network namespace of the socket
 * @own, and a page. Never blocks. Returns 0 and @share, which the caller closes, -EAGAIN if nothing has arrived,
 * -ECONNRESET if the other side has gone, or -EPROTO, explained, with the descriptors closed, if anything is invalid.
 */
int udp_handover_receive(int connection, pid_t pid, int own, uint16_t port, struct udp_share *share);
void udp_share_close(struct udp_share *share);

/** Maps a page that this process made or checked. Returns NULL on failure. */
struct udp_turn *udp_turn_map(int page);
void udp_turn_unmap(struct udp_turn *turn);

/* Last check of the socket by a process that does not read. All zero: not checked yet. */
struct udp_look {
	bool waited;
	uint32_t turn, beats;
};

/**
 * Returns true if the current reader has taken nothing out of @socket since the last check @before, although a datagram
 * was waiting. Then it is this process's turn, as number *@turn. Of several processes that check at once, only one gets
 * true.
 */
bool udp_turn_take_over(struct udp_turn *page, int socket, struct udp_look *before, uint32_t *turn);

struct udp_name {
	int listening; /* listens at a name of the port; -1: none */
	int connected; /* connected to @owner, the process of this user that has the name; -1: none */
	struct ucred owner;
	struct ucred stranger;    /* process of another user that has the plain name; uid -1: none */
	struct host_name reserve; /* name of `listening`, if it is a reserve name */
};

/**
 * Binds the name of @port, or connects to the process of this user that has it, after @tries earlier calls. The first
 * call reads no list of names, so it may be made under a QP's lock. If both sockets are -1, the caller tries again
 * later.
 */
struct udp_name udp_name_contend(uint16_t port, uint32_t tries);
/**
 * Returns true if a process of this user has a reserve name of @port other than @except. Reads the sockets of the host.
 */
bool udp_name_is_reserved(uint16_t port, const struct host_name *except);

/**
 * Binds @fd, the socket of a group, to @name next to the socket of the port. Returns 0 or a negative errno; -EAGAIN if
 * this process does not have the port's socket yet. No lock of the transport.
 */
int udp_port_bind_group(int fd, const struct sockaddr *name, socklen_t length);

/** Makes port.c check the turn at once, because another process has it. */
void udp_port_turn_lost(void);
/** Implements link.has_backlog for the port's socket, if this process shares it. */
bool udp_port_has_backlog(void);

/** Registers the poller. Returns 0 or a negative errno. The lock of the port is held. */
int udp_receive_begin(struct hca *hca);
/**
 * Makes the poller receive from @fd: udp_receive_from() for the owner of the port, which always reclaims its turn on
 * @page (NULL: none), udp_receive_in_place() for a substitute, while turn number @turn lasts. The lock of the port is
 * held.
 */
void udp_receive_from(int fd, struct udp_turn *page);
void udp_receive_in_place(int fd, struct udp_turn *page, uint32_t turn);
/**
 * Sets whether datagrams stay in the socket until they have been handled, as they must while other processes have the
 * socket (DESIGN.md).
 */
void udp_receive_carefully(bool careful);
/** Returns true if this process receives, and it is its turn. */
bool udp_receive_has_turn(void);
/** Stops receiving. The descriptor stays open. The lock of the port is held; device thread. */
void udp_receive_stop(void);
/** Stops receiving at the end of the process, after handling the packet in hand. */
void udp_receive_leave(void);
/** Resets the poller in a forked child, which has no socket. */
void udp_receive_after_fork(void);

struct udp_owner {
	pid_t pid;
	char name[16]; /* /proc/PID/comm, without terminal control characters */
};

/**
 * Returns true if a socket, except those of groups, is bound to @port, according to /proc. Reads the sockets of the
 * host.
 */
bool udp_port_is_bound(uint16_t port);
/** Finds the process that has @port, through /proc, or returns false. Slow: reads the descriptors of all processes. */
bool udp_find_owner(uint16_t port, struct udp_owner *owner);
/** Finds a process that has the socket @inode open. As slow as udp_find_owner(). */
bool udp_find_process(uint64_t inode, struct udp_owner *owner);
/** Finds the softhca process that receives: the one that has @port open and listens at its name (port.c). */
bool udp_find_receiver(uint16_t port, struct udp_owner *owner);

/**
 * Explains, at most once per second, a failure that may concern every packet sent. @qpn: QP of one of them; 0: none of
 * this process.
 */
static inline void udp_explain(struct hca *hca, uint32_t qpn, enum explain_rule rule, const uint64_t *figures,
			       size_t count)
{
	const struct explain_subject subject = {.qpn = qpn};

	if (explain_may(hca, rule, 1))
		explain_make(hca, &subject, rule, figures, count);
}

#endif

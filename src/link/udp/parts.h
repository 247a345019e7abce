/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the udp link share.
 *
 * udp.c         cuts runs into packets and sends them, many in one system call
 * port.c        which process of the host has the port
 * receive.c     the poller: converts datagrams to packets
 * groups.c      sockets of multicast groups
 * receivers.c   options of the sockets that receive
 * held.c        acknowledgements that leave together with the program's answer
 * sockets.c     sockets that send, by source port
 * unreachable.c reports of hosts that refuse datagrams
 * address.c     converts paths to socket addresses and back
 * handover.c    passes the port's socket from one process to another
 * turn.c        which of the processes that have the socket reads it
 * owner.c       finds the owner of the port if it is a process of another kind
 *
 * Locks, all leaves towards the transport: that of a socket (its buffer) while it sends, that of the table of sockets,
 * that of the port. None is held while the transport is called.
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

/* linux/in6.h, which does not go together with netinet/in.h. */
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29 /* since Linux 4.20 */
#endif

/* How a datagram gets to where a path leads. */
struct udp_way {
	struct packet_path path; /* with the addresses that the datagram has: those which the ICRC covers */
	bool ipv6;
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} to;
	socklen_t to_length;
	/* For sendmsg(2): source address, traffic class, hop limit, flow label; and room for UDP_SEGMENT. */
	size_t control_length;
	size_t unlabelled; /* the same without the flow label, which is the last */
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct in6_pktinfo)) + 4 * CMSG_SPACE(sizeof(int))];
};

/**
 * Fills @way for @path. GIDs of this host that are no addresses (the link-local one of an interface without IPv6, all of
 * RoCE v1) go by the loopback interface, as 127.83.0.0/16 with the number of the table entry. Returns 0 or -EAFNOSUPPORT
 * (one address is IPv4, the other IPv6), which is explained.
 */
int udp_way_make(struct udp_way *way, struct hca *hca, const struct packet_path *path);

/** Sets an integer option of @fd. Returns 0 or a negative errno. */
static inline int udp_set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

/** Makes a buffer of @fd as large as allowed: datagrams that do not fit are lost. @forced, @plain: the options of the buffer. */
static inline void udp_set_buffer(int fd, int forced, int plain, int bytes)
{
	if (udp_set_option(fd, SOL_SOCKET, forced, bytes))
		udp_set_option(fd, SOL_SOCKET, plain, bytes);
}

/* What a datagram that was received tells beside its bytes. */
struct udp_arrival {
	struct packet_path wire; /* as the ICRC has it */
	struct packet_path path; /* as the transport has it */
	uint16_t source_port;
	uint32_t segment; /* bytes of each packet but the last; 0: it is one packet */
};

/** The address of @name as a GID; false: it is neither IPv4 nor IPv6. */
bool udp_gid_of_name(union ibv_gid *gid, const struct sockaddr *name);

/** Fills @arrival from @message, which was received; false: its addresses are missing. */
bool udp_arrival_read(struct udp_arrival *arrival, struct msghdr *message);

/* What an acknowledgement takes from BTH to ICRC. */
#define UDP_HELD_BYTES 64

struct udp_socket;

/* An acknowledgement that waits for what the program sends in answer (held.c). */
struct udp_held {
	struct hca *hca;
	/* Sends the acknowledgement that @socket holds, and calls udp_held_gone(). The lock of @socket is held. */
	void (*send)(struct udp_socket *socket);
	uint32_t source_qpn, destination_qpn;
	struct udp_way way;
	uint64_t since_ns;
	uint32_t length; /* 0: none */
	uint8_t bytes[UDP_HELD_BYTES];
};

/* What the program makes of the messages that a flow brings. */
struct udp_answers {
	bool due;                 /* an acknowledgement has left, and no request since */
	uint64_t acknowledged_ns; /* when it did */
	uint32_t row;             /* requests, each soon after an acknowledgement */
};

/* A socket that sends from one source port, and receives nothing. */
struct udp_socket {
	pthread_mutex_t lock; /* of sending: the buffer */
	int fd;               /* -1: none */
	int fragmenting;      /* that may send fragments; -1: was not needed yet; under `lock` */
	bool ipv6;
	bool no_trains;             /* under `lock`: the kernel refused UDP_SEGMENT */
	bool no_labels;             /* under `lock`: the kernel refused IPV6_FLOWINFO */
	uint16_t wanted;            /* port that was asked for… */
	uint16_t port;              /* …and the one it is bound to, if a program has that one for itself */
	uint32_t users;             /* threads that send or wait to; under the lock of the table, as are all others */
	uint64_t used;              /* when it was last asked for, in the order of asking */
	uint8_t *buffer;            /* UDP_BUFFER_BYTES */
	struct udp_held held;       /* under `lock`, as… */
	struct udp_answers answers; /* …this is */
};

/* A train, and the headers of the packet behind it. */
#define UDP_BUFFER_BYTES (TUNABLE_UDP_TRAIN_BYTES + 128)

/**
 * The socket for @port, made if there is none, its lock held; NULL with errno: none can be had. Not @exactly: if there are
 * as many as there may be, one of another port. The first time a port is asked for is no reason to close a socket then, or
 * many flows would take each other's away.
 */
struct udp_socket *udp_socket_get(bool ipv6, uint16_t port, bool exactly);
/** A descriptor of the same port for packets that are longer than the interface takes, or a negative errno. Its lock is held. */
int udp_socket_fragmenting(struct udp_socket *socket);
/**
 * The same for datagrams of the connection manager, from a socket of their own, whatever its port: unreachable.c. An error that
 * it was told of is taken from it.
 */
struct udp_socket *udp_socket_of_manager(bool ipv6);
/** Takes the error from @fd that its next send would fail with. */
void udp_socket_clear_error(int fd);
/** Hears from now on of hosts that refuse what is sent by @fd. The lock of the table is held. */
void udp_unreachable_watch(int fd, bool ipv6);

/** Gives it back. */
void udp_socket_put(struct udp_socket *socket);
/** The same for one whose lock was let go meanwhile, since it holds an acknowledgement. */
void udp_socket_forget(struct udp_socket *socket);
/** Around a fork: holds the lock of the table; the child closes all sockets. */
void udp_sockets_before_fork(void);
void udp_sockets_after_fork(bool child);

/* ---- acknowledgements that are held back ------------------------------------------------------------------------ */

/** What udp_holding() says of an acknowledgement of this flow. */
static inline uint32_t udp_flow_key(bool ipv6, uint16_t port)
{
	return 1u << 17 | (uint32_t)ipv6 << 16 | port;
}

/** Once in a process. */
void udp_held_begin(void);
/** A request is about to leave by @socket, whose lock is held. */
void udp_held_note_request(struct udp_socket *socket);
/**
 * An acknowledgement is about to leave by @socket, whose lock is held, and which holds none. True: it is to be held: the caller
 * fills socket->held, and lets go of the lock only, not of the socket.
 */
bool udp_held_keep(struct udp_socket *socket, uint32_t key);
/** What @socket held has left. Its lock is held; the caller, having let go of it, calls udp_socket_forget(). */
void udp_held_gone(struct udp_socket *socket);
/** True for a program that got a message a moment ago, and is about to answer it as far as is known. Any thread. */
bool udp_held_just_now(void);
/** Forgets the acknowledgement that is held. In a forked child. */
void udp_held_after_fork(void);

/**
 * A socket with all options that receiving needs, not yet bound: both families, or IPv4 only where there is no IPv6
 * (@ipv6). Returns a descriptor or a negative errno.
 */
int udp_receiver_open(bool *ipv6);
/** The same for a multicast group, of one family, which consents. Returns a descriptor or a negative errno. */
int udp_group_open(bool ipv6);
/**
 * Whether another socket of this user may be bound to the port of @fd beside it (SO_REUSEPORT, which both need at that
 * moment): those of groups always may be, that of the port for a moment only, since there is one of it. Returns 0 or a
 * negative errno.
 */
int udp_set_consent(int fd, bool consents);
/** The same options for the bound socket that another process gave. Not its buffer, which this one may not make as large. */
void udp_receiver_adopt(int fd);

/** @bytes of receive buffer, as the kernel counts them, which is about twice the payload that they hold. */
void udp_set_window(uint32_t bytes);

/* ---- the port, which the processes of a user share ------------------------------------------------------------- */

/*
 * They share the socket, so that what waits in it outlives the process that reads it, and a page that says whose turn it is
 * to read. Two that read at the same time get packets out of order, which is all: nothing depends on the page that the
 * packets of a wire could not do as well. Others of the user may write there what they like.
 */
struct udp_share {
	int socket; /* -1: none */
	int page;   /* memfd of UDP_PAGE_BYTES; -1: none could be had, and the socket is not shared */
};

#define UDP_PAGE_BYTES 4096

struct udp_turn {
	uint32_t turn;  /* atomic; counts changes of the reader: the process that made the last one reads */
	uint32_t beats; /* atomic; moves with each batch that was taken out of the socket */
};

/** Gives @share to the process at the other end of @connection. Never blocks. Returns 0 or a negative errno. Any thread. */
int udp_handover_send(int connection, const struct udp_share *share);
/**
 * Takes what process @pid gave on @connection: a socket bound to @port in the network namespace of the socket @own, and a page.
 * Never blocks. Returns 0 and @share, which is the caller's to close; -EAGAIN: nothing was given yet; -ECONNRESET: the other
 * side has gone; -EPROTO: it is not what it should be: explained, and closed. Any thread.
 */
int udp_handover_receive(int connection, pid_t pid, int own, uint16_t port, struct udp_share *share);
void udp_share_close(struct udp_share *share);

/** Maps a page that was made here, or was checked; NULL: it cannot be. */
struct udp_turn *udp_turn_map(int page);
void udp_turn_unmap(struct udp_turn *turn);

/* The last look of a process that does not read. All zero: none yet. */
struct udp_look {
	bool waited; /* something was in the socket */
	uint32_t turn, beats;
};

/**
 * Looks whether whoever reads @socket has taken nothing out of it since this process looked @before, although something
 * waited. If so it is the turn of this process, as number @turn: of several that look one gets true.
 */
bool udp_turn_take_over(struct udp_turn *page, int socket, struct udp_look *before, uint32_t *turn);

struct udp_name {
	int listening; /* socket with a name of the port; -1: none */
	int connected; /* socket to the process of this user that has the name, @owner; -1: none */
	struct ucred owner;
	struct ucred stranger;    /* process of another user that has the plain name; uid -1: none */
	struct host_name reserve; /* name that is listened at, if it is a reserve name */
};

/**
 * Takes the name of @port, or connects to the process of this user that has it, after @tries earlier calls. The first call reads no
 * list of names, so it may be made under a QP's lock. If both sockets are -1, the caller tries again later.
 */
struct udp_name udp_name_contend(uint16_t port, uint32_t tries);
/** Returns true if a process of this user has a reserve name of @port other than @except. Reads the sockets of the host. */
bool udp_name_is_reserved(uint16_t port, const struct host_name *except);

/**
 * Binds @fd, the socket of a group, to @name beside that of the port. Returns 0 or a negative errno: -EAGAIN: this process does
 * not have that yet. Any thread; no lock of the transport.
 */
int udp_port_bind_group(int fd, const struct sockaddr *name, socklen_t length);

/** The poller found that it is another process's turn: has port.c look at once. Any thread. */
void udp_port_turn_lost(void);
/** Implements link.has_backlog for the port's socket, as far as this process shares it. */
bool udp_port_has_backlog(void);

/** Registers the poller. Returns 0 or a negative errno. The lock of the port is held. */
int udp_receive_begin(struct hca *hca);
/**
 * The poller receives from @fd from now on: by right, and then takes its turn on @page (NULL: there is none) whenever
 * another has it; or in the place of the owner, while it is turn number @turn. The lock of the port is held.
 */
void udp_receive_from(int fd, struct udp_turn *page);
void udp_receive_in_place(int fd, struct udp_turn *page, uint32_t turn);
/**
 * Whether datagrams stay in the socket until they have been handled, at the price of a system call, since others have it,
 * too. Then none is lost with a process that is killed; one may be handled twice. Any thread.
 */
void udp_receive_carefully(bool careful);
/** True if it receives, and it is its turn. Any thread. */
bool udp_receive_has_turn(void);
/** No longer. The descriptor stays open. The lock of the port is held; device thread. */
void udp_receive_stop(void);
/** The process ends: the packet in hand is handled, and no other taken. Any thread. */
void udp_receive_leave(void);
/** In a forked child: no socket. */
void udp_receive_after_fork(void);

/* The program that has a UDP port. */
struct udp_owner {
	pid_t pid;
	char name[16]; /* as in /proc/PID/comm, without what a terminal obeys */
};

/** True if a socket is bound to @port, by /proc; those of groups do not count. Reads the sockets of the host. */
bool udp_port_is_bound(uint16_t port);
/** Finds who has @port, by way of /proc. False: nobody who can be seen. Slow: reads the descriptors of all processes. */
bool udp_find_owner(uint16_t port, struct udp_owner *owner);
/** Finds a process that has the socket @inode open. As slow. */
bool udp_find_process(uint64_t inode, struct udp_owner *owner);
/** Finds the process of softhca that receives: of those that have @port, the one that has its name, too (port.c). */
bool udp_find_receiver(uint16_t port, struct udp_owner *owner);

/* Explains what may happen to every packet that is sent, such as those of QP @number (0: none of ours): once a second. */
#define UDP_EXPLAIN(hca, number, rule, ...)                                                                            \
	(explain_may(hca, rule, 1)                                                                                     \
		 ? EXPLAIN(hca, (&(const struct explain_subject){.qpn = (number)}), rule, __VA_ARGS__)                 \
		 : 0)

#endif

/* A run's resolver between a cell and the machine's resolvers, both of which are the test: the gate's
 * sockets, one for each question, are ends of pairs (-Wl,--wrap=socket,--wrap=connect), and the time is
 * what it is told.
 *
 *   runs in    unit tests
 */
#pragma once

#include "edge/gate/names.h"

#include <stdbool.h>
#include <sys/socket.h>

#define PLAY_BEGAN_NS UINT64_C(1000000000000)
#define PLAY_A        1u
#define PLAY_AAAA     28u
#define PLAY_ID       0x4711u /* of the cell's questions */

extern struct play {
	struct rules rules;
	struct flows flows;
	struct names names;
	uint64_t now_ns;
	struct play_socket {
		int own, peer; /* the gate's end, by its number then; the resolver's */
		int type;
		unsigned server;
		struct sockaddr_storage address;
	} sockets[256];
	unsigned socket_count;
	int asked_at
		[LOOKUPS_SERVERS_MAX]; /* the socket that a resolver was asked at last; -1: none */
	unsigned connects;
	unsigned bad_connect;  /* the number of the one that fails, from 1; 0: none does */
	uint8_t message[2048]; /* the one that is made, or was received */
	size_t message_len;
	struct told {           /* what the cell has been told last */
		unsigned count; /* of packets, for one question or answer */
		unsigned id, flags, answers;
		size_t len;
		uint8_t bytes[PACKET_MAX];
		char text[1024]; /* the addresses, each with a blank behind it */
	} told;
} play;

/* Two resolvers, and all names below example.org; for cmocka. */
int play_begin(void **state);
int play_end(void **state);

/* Another number of resolvers, after a close. */
void play_open(unsigned servers);
void play_close(void);

/* Make a message, piece by piece: begin it; bytes; a question; a record of the question's name; one with an
 * address. */
void play_put_head(unsigned id, unsigned flags, unsigned questions, unsigned answers);
void play_put(const void *bytes, size_t len);
void play_put_question(const char *name, unsigned type);
void play_put_record(unsigned type, unsigned class, const void *bytes, size_t len);
void play_put_address(const char *text);

/* The cell asks what is in the message; or a plain question. */
void play_ask_it(void);
void play_ask(const char *name, unsigned type);

/* What resolver `server` was asked, in the message. False: nothing. The second is its number. By TCP the
 * message has its length in front of it. */
bool play_was_asked(unsigned server);
bool play_was_asked_by(unsigned server, int type);
unsigned play_asked_id(unsigned server);

/* Resolver `server` says what is in the message where it was asked last; by TCP, with its length. */
void play_say_it(unsigned server);
void play_frame_it(void);

/* Let the gate see what there is to see. */
void play_turn(void);

/* Ask for `name`, and let the first resolver say `addresses`, up to a NULL. */
void play_resolve(const char *name, unsigned type, const char *const *addresses);

/* Add to a list, with a blank behind it. */
void play_append(char *list, size_t size, const char *text);

/* The record's line `i` is of `name`; the cell was told so, once, and these addresses; a question is
 * open. */
void play_assert_line(uint32_t i, const char *name, enum network_verdict v);
void play_assert_told(unsigned rcode, const char *addresses);
bool play_is_open(void);

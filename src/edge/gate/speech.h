/* What a program says on a connection that is allowed there only because a name led there: TLS and
 * HTTP say themselves for whom they are meant, and many sites share an address. A judge of the bytes
 * from the cell to the world; what it has not judged has to wait.
 *
 *   TLS     each ClientHello that is sent in the clear has one name, which the rules allow, and none
 *           that is encrypted; the first one goes before anything else. So does one behind what
 *           PostgreSQL asks for TLS with
 *   HTTP    each request is HTTP/1, framed so that nobody frames it differently (edge/http/codec.h),
 *           and says in one Host a name that the rules allow
 *   other   what begins like neither passes, all of it: it has no names, or names inside that only its
 *           own kind could read (RCPT TO of SMTP, also behind STARTTLS)
 *
 *   runs in    the gate
 *   owns       nothing
 *   trusts     no byte
 *
 * The same bytes are judged the same however they are cut.
 */
#pragma once

#include "edge/gate/packet.h"
#include "edge/gate/rules.h"
#include "edge/http/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What waits for a verdict at most: a longer head of HTTP or hello of TLS is refused. */
#define SPEECH_WAIT_MAX HTTP_HEAD_MAX

enum speech_phase {
	SPEECH_BEGIN,
	SPEECH_RECORD, /* of TLS, at the head of one */
	SPEECH_HELLO,  /* of TLS, at the record that one begins in */
	SPEECH_SKIP,   /* of TLS, inside of a record */
	SPEECH_HEAD,   /* of HTTP */
	SPEECH_BODY,   /* ...with a length */
	SPEECH_CHUNKED,
	SPEECH_FREE /* the rest passes */
};

/* All zero: nothing was said yet. */
struct speech {
	enum speech_phase phase;
	bool greeted;  /* TLS: with a hello */
	bool early;    /* ...behind which data may come before another one */
	uint64_t left; /* of a record or a body */
	struct http_chunked chunked;
};

/* Where it is said. */
struct speech_place {
	const struct rules *rules;
	struct network_address address;
	uint16_t port;
};

struct speech_found {
	enum network_verdict verdict; /* NETWORK_ALLOWED, or why what is behind `pass` is refused */
	size_t used;                  /* bytes that are judged and not needed any more */
	size_t pass; /* ...and those that may go, of which some are needed: not less */
	char name[NETWORK_NAME_MAX + 3]; /* that was refused; "": none can be read */
};

/* Go on with what has not been used up, and what has come since; `end`: nothing comes behind it. What
 * may pass at one time may pass later on. */
void speech_hear(struct speech *s, const struct speech_place *where, const uint8_t *bytes,
	size_t len, bool end, struct speech_found *ret) __attribute__((nonnull));

/* Is the packet, of UDP, the beginning of QUIC where only names are allowed? */
bool speech_is_quic(const struct rules *r, const struct packet *p) __attribute__((nonnull));

/* What a run may reach when it asks for a network: rules and limits, in a form that crosses
 * processes. The operator's, made by the config process, is a ceiling; the request's, made by the
 * front or the library, is what it asks for below that. The gate obeys both.
 *
 *   runs in    the config process, the front and the caller, which make it (api/network.h); the
 *              gate, which obeys it. The supervisor passes it on and looks at no byte of it
 *   trusts     no byte of one that another process has made: network_policy_fault()
 *
 * Addresses are those of IPv6; one of IPv4 is its mapped form, ::ffff:192.0.2.1, and its prefix
 * counts from the first of the 128 bits, so that there is one comparison for both.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETWORK_RULES_MAX   64u  /* in each of the two lists */
#define NETWORK_NAME_MAX    253u /* bytes of a name: RFC 1035's 255 without length and root */
#define NETWORK_LABEL_MAX   63u  /* RFC 1035, 2.3.4 */
#define NETWORK_MAPPED_BITS 96u  /* of ::ffff:0:0/96 */

struct network_address {
	uint8_t bytes[16]; /* network order */
};

enum network_match {
	NETWORK_ANY,     /* whatever there is */
	NETWORK_RANGE,   /* addresses: the first `prefix` bits are those of `address` */
	NETWORK_NAME,    /* what was looked up under this name */
	NETWORK_SUBNAME, /* ...under any name that ends with "." and this one, and not itself */
	NETWORK_MATCH_MAX
};

struct network_rule {
	uint32_t match;              /* enum network_match */
	uint32_t prefix;             /* 0 to 128; not a RANGE: 0 */
	uint16_t port_min, port_max; /* both count; 0 and 65535: any, and what has no ports */
	struct network_address address;
	char name[NETWORK_NAME_MAX + 3]; /* lower case, without a dot at its end; then NULs */
};

/* Deny goes before allow; what no rule allows is denied. */
struct network_policy {
	uint32_t allow_count, deny_count;
	uint32_t max_connections; /* at once; 0: none may be made */
	uint32_t reserved;        /* 0 */
	uint64_t max_bytes;       /* in both directions together */
	uint64_t max_rate;        /* bytes a second, both directions together */
	struct network_rule allow[NETWORK_RULES_MAX], deny[NETWORK_RULES_MAX];
};

/* What the gate says of a connection or a look-up: the first that holds. */
/* clang-format off */
#define NETWORK_VERDICTS(X)                                                            \
	X(ALLOWED,     "allowed")                                                      \
	X(UNREADABLE,  "not TCP, UDP or an echo request as programs send them")        \
	X(SOURCE,      "not from the run's own address")                               \
	X(THIS_HOST,   "an address of no host")                                        \
	X(OWN,         "an address of the machine itself")                             \
	X(NEIGHBOUR,   "an address on a network of the machine's")                     \
	X(LOOPBACK,    "a loopback address")                                           \
	X(PRIVATE,     "a private address")                                            \
	X(SHARED,      "an address of a provider's own network (CGNAT)")               \
	X(LINK_LOCAL,  "a link-local address")                                         \
	X(METADATA,    "the address of a cloud's metadata service")                    \
	X(MULTICAST,   "a multicast address")                                          \
	X(BROADCAST,   "the broadcast address")                                        \
	X(RESERVED,    "a reserved address")                                           \
	X(TRANSLATED,  "an IPv6 address that holds one of IPv4")                       \
	X(OPERATOR,    "not allowed by the operator")                                  \
	X(DENIED,      "denied by a rule of the request")                              \
	X(NO_RULE,     "allowed by no rule of the request")                            \
	X(CONNECTIONS, "max_connections are open")                                     \
	X(BYTES,       "max_bytes are used up")                                        \
	X(NO_ECHO,     "echo requests are not carried here")                           \
	X(ECHOES,      "too many echo requests without an answer")                     \
	X(SOCKETS,     "no socket is left")                                            \
	X(QUESTION,    "not a question for an address of a host")                      \
	X(QUESTIONS,   "too many look-ups at once")                                    \
	X(UNANSWERED,  "no resolver has answered")                                     \
	X(OTHER_NAME,  "TLS or HTTP for a name that the rules do not allow there")     \
	X(NO_NAME,     "TLS or HTTP of which no name can be read")                     \
	X(HIDDEN_NAME, "TLS with an encrypted name (ECH)")                             \
	X(QUIC,        "QUIC, of which no name can be read: TCP is not refused")
/* clang-format on */

enum network_verdict {
#define X(name, text) NETWORK_##name,
	NETWORK_VERDICTS(X)
#undef X
	NETWORK_VERDICT_MAX
};

enum network_protocol {
	NETWORK_TCP,
	NETWORK_UDP,
	NETWORK_ICMP,
	NETWORK_DNS,   /* a look-up, of `name` */
	NETWORK_OTHER, /* of which nothing is known */
	NETWORK_PROTOCOL_MAX
};

/* One line of what a run did. Look-ups have no address, and connections the name that was looked
 * up for it, if there was one. */
struct network_connection {
	uint64_t begin_us;            /* since the gate began */
	uint64_t bytes_in, bytes_out; /* payload; in: towards the program */
	struct network_address address;
	uint16_t port;
	uint8_t protocol; /* enum network_protocol */
	uint8_t verdict;  /* enum network_verdict */
	uint32_t times;   /* how often: what is refused again is counted on its line */
	char name[NETWORK_NAME_MAX + 3];
};

/* What the gate writes into shared memory, and its client reads when the run is over. */
#define NETWORK_RECORD_MAGIC UINT32_C(0x314e4247) /* "GBN1" */
#define NETWORK_RECORD_MAX   256u
struct network_record {
	uint32_t magic; /* 0 until the gate stands: the run was over before that */
	uint32_t count;
	uint64_t left_out; /* lines that there was no room for */
	uint64_t connections, refused;
	uint64_t bytes_in, bytes_out;
	struct network_connection lines[NETWORK_RECORD_MAX];
};

/* What crosses between a client and the gate in one sealed size of memory: the request's policy,
 * which the client writes, and the record behind it, which the gate does. */
struct network_memory {
	struct network_policy asked;
	struct network_record record;
};

/* Constant words: "allowed", "tcp". CHECK their argument. */
const char *network_verdict_text(enum network_verdict v);
const char *network_protocol_name(enum network_protocol p);

/* What is wrong with a record that another process has made (a copy of it: it can write on), as a
 * constant text; NULL: it can be shown. */
const char *network_record_fault(const struct network_record *r) __attribute__((nonnull));

/* Does the rule speak of this address and port, of what has no ports with port 0? Never of a
 * NAME or SUBNAME. A range of IPv6 has none of IPv4's in it, however wide it is.
 * network_rule_has_address_somewhere() asks whether that is so for any port at all. */
bool network_rule_has_address(const struct network_rule *r, const struct network_address *a,
	uint16_t port) __attribute__((nonnull));
bool network_rule_has_address_somewhere(
	const struct network_rule *r, const struct network_address *a) __attribute__((nonnull));

/* Does it speak of this name (lower case, no dot at its end) and port? Never of a RANGE.
 * network_rule_has_name_somewhere() asks whether that is so for any port at all. */
bool network_rule_has_name(const struct network_rule *r, const char *name, uint16_t port)
	__attribute__((nonnull));
bool network_rule_has_name_somewhere(const struct network_rule *r, const char *name)
	__attribute__((nonnull));

/* Are the first `bits` of both the same? */
bool network_same_bits(const struct network_address *a, const struct network_address *b,
	unsigned bits) __attribute__((nonnull));

/* Is it IPv4's, in its mapped form? */
bool network_is_ipv4(const struct network_address *a) __attribute__((nonnull));

/* What is wrong with a policy that another process has made, as a constant text; NULL: it can be
 * obeyed. */
const char *network_policy_fault(const struct network_policy *p) __attribute__((nonnull));

/* What breaks the rules for a name, as the end of a sentence that begins with the name; NULL: it
 * is fine, apart from its case. *ret_at: where in it. Labels of letters, digits, "-" and "_", no
 * more than 63 bytes each and no "-" at either end, 253 bytes in all; the last one is not a number,
 * for then it would be read as an address. */
const char *network_name_fault(const char *name, size_t len, size_t *ret_at)
	__attribute__((nonnull));

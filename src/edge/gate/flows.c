#include "edge/gate/flows.h"

#include "base/check.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

#define CHAINS ARRAY_LEN(((struct flows *)NULL)->chains)

/* Without a packet for that long UDP and echoes are forgotten: a little longer than the stack behind keeps
 * their sockets (4 minutes). */
#define IDLE_NS (5 * 60 * NS_PER_S)
/* TCP that is over: late packets still belong to it (twice a segment's life, RFC 9293, on the paths that
 * there are). */
#define OVER_NS (10 * NS_PER_S)

/* Lines for what was refused and for names that were looked up, so that neither takes the place of the
 * connections that were made. */
#define REFUSED_LINES   (NETWORK_RECORD_MAX / 2)
#define LOOKED_UP_LINES (NETWORK_RECORD_MAX / 4)

void flows_init(struct flows *f, uint64_t now_ns)
{
	memset(f, 0, sizeof(*f));
	f->record.magic = NETWORK_RECORD_MAGIC;
	f->began_ns = now_ns;
	for (unsigned i = 0; i < CHAINS; i++)
		f->chains[i] = FLOWS_NONE;
	for (uint32_t i = 0; i < FLOWS_MAX; i++)
		f->flows[i].next = i + 1 < FLOWS_MAX ? i + 1 : FLOWS_NONE;
}

/* ---- Chains ---- */

static uint32_t *chain_of(struct flows *f, enum packet_kind kind, uint16_t cell_port,
	const struct network_address *a, uint16_t port)
{
	uint32_t hash = 2166136261u; /* FNV-1a; who is in the cell gains nothing by long chains */

	for (unsigned i = 0; i < 16; i++)
		hash = (hash ^ a->bytes[i]) * 16777619u;
	hash = (hash ^ cell_port) * 16777619u;
	hash = (hash ^ port) * 16777619u;
	hash = (hash ^ kind) * 16777619u;
	return &f->chains[(hash ^ hash >> 16) % CHAINS];
}

static bool is_same(const struct flow *flow, const struct packet *p, bool out)
{
	const struct network_address *a = out ? &p->target : &p->source;

	return flow->kind == p->kind && network_same_bits(&flow->address, a, 128) &&
	       flow->cell_port == (out ? p->source_port : p->target_port) &&
	       flow->port == (out ? p->target_port : p->source_port);
}

struct flow *flows_find(struct flows *f, const struct packet *p, bool out)
{
	uint16_t cell_port = out ? p->source_port : p->target_port;
	uint16_t port = out ? p->target_port : p->source_port;
	uint32_t i = *chain_of(f, p->kind, cell_port, out ? &p->target : &p->source, port);

	while (i != FLOWS_NONE && !is_same(&f->flows[i], p, out))
		i = f->flows[i].next;
	return i == FLOWS_NONE ? NULL : &f->flows[i];
}

static bool counts(const struct flow *flow)
{
	return !flow->over && flow->kind != PACKET_ECHO;
}

void flows_end(struct flows *f, struct flow *flow)
{
	f->open -= counts(flow);
	flow->over = true;
}

void flows_revive(struct flows *f, struct flow *flow)
{
	CHECK(flow->over && flow->kind != PACKET_TCP);
	flow->over = false;
	f->open += counts(flow);
}

void flows_forget(struct flows *f, struct flow *flow)
{
	uint32_t own = (uint32_t)(flow - f->flows);
	uint32_t *at = chain_of(f, flow->kind, flow->cell_port, &flow->address, flow->port);

	while (*at != own)
		at = &f->flows[*at].next;
	*at = flow->next;
	f->open -= counts(flow);
	*flow = (struct flow){ .next = f->free };
	f->free = own;
}

/* Only when all are used. */
static void make_room(struct flows *f)
{
	struct flow *oldest = NULL;

	for (uint32_t i = 0; i < FLOWS_MAX; i++) {
		struct flow *flow = &f->flows[i];

		if (flow->over && (!oldest || flow->last_ns < oldest->last_ns))
			oldest = flow;
	}
	if (oldest)
		flows_forget(f, oldest);
}

/* ---- The record ---- */

static enum network_protocol protocol_of(const struct packet *p)
{
	if (!p)
		return NETWORK_OTHER;
	switch (p->kind) {
	case PACKET_TCP:
		return NETWORK_TCP;
	case PACKET_UDP:
		return NETWORK_UDP;
	case PACKET_ECHO:
		return NETWORK_ICMP;
	case PACKET_NOISE:
	case PACKET_ERROR:
	default:
		return NETWORK_OTHER;
	}
}

static void touch(struct flows *f, uint32_t line)
{
	if (f->dirty_from == f->dirty_to) {
		f->dirty_from = line;
		f->dirty_to = line + 1;
		return;
	}
	f->dirty_from = line < f->dirty_from ? line : f->dirty_from;
	f->dirty_to = line >= f->dirty_to ? line + 1 : f->dirty_to;
}

/* The lines before the count that makes them valid. */
void flows_publish(struct flows *f, struct network_record *shared)
{
	const struct network_record *r = &f->record;

	memcpy(shared->lines + f->dirty_from, r->lines + f->dirty_from,
		(f->dirty_to - f->dirty_from) * sizeof(r->lines[0]));
	f->dirty_from = f->dirty_to = 0;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(shared, r, offsetof(struct network_record, lines));
}

/* Its number; FLOWS_NONE when there is no room, which is counted. */
static uint32_t add_line(struct flows *f, const struct network_connection *c)
{
	struct network_record *r = &f->record;

	if (r->count >= NETWORK_RECORD_MAX) {
		r->left_out++;
		return FLOWS_NONE;
	}
	r->lines[r->count] = *c;
	touch(f, r->count);
	return r->count++;
}

static struct network_connection line_of(
	const struct flows *f, const struct packet *p, const char *name, uint64_t now_ns)
{
	struct network_connection c = {
		.begin_us = (now_ns - f->began_ns) / NS_PER_US,
		.protocol = (uint8_t)protocol_of(p),
		.times = 1,
	};

	(void)snprintf(c.name, sizeof(c.name), "%s", name);
	if (p) {
		c.address = p->target;
		c.port = p->kind == PACKET_ECHO ? 0 : p->target_port;
	}
	return c;
}

/* Is there a line that says the same? Only of what has no bytes of its own. */
static struct network_connection *find_line(
	struct network_record *r, const struct network_connection *c)
{
	for (uint32_t i = r->count; i-- > 0;) {
		struct network_connection *l = &r->lines[i];

		if (l->verdict == c->verdict && l->protocol == c->protocol && l->port == c->port &&
			network_same_bits(&l->address, &c->address, 128) &&
			strcmp(l->name, c->name) == 0)
			return l;
	}
	return NULL;
}

static void note(struct flows *f, const struct network_connection *c)
{
	struct network_connection *same = find_line(&f->record, c);
	bool allowed = c->verdict == NETWORK_ALLOWED;
	uint32_t *lines = allowed ? &f->looked_up_lines : &f->refused_lines;

	if (!same && *lines == (allowed ? LOOKED_UP_LINES : REFUSED_LINES)) {
		f->record.left_out++;
		return;
	}
	if (!same) {
		*lines += add_line(f, c) != FLOWS_NONE;
		return;
	}
	same->times += same->times < UINT32_MAX;
	touch(f, (uint32_t)(same - f->record.lines));
}

void flows_refuse(struct flows *f, const struct packet *p, const char *name,
	enum network_verdict why, uint64_t now_ns)
{
	struct network_connection c = line_of(f, p, name, now_ns);

	c.verdict = (uint8_t)why;
	f->record.refused++;
	note(f, &c);
}

void flows_look_up(struct flows *f, const char *name, enum network_verdict v, uint64_t now_ns)
{
	struct network_connection c = line_of(f, NULL, name, now_ns);

	c.protocol = NETWORK_DNS;
	c.verdict = (uint8_t)v;
	f->record.refused += v != NETWORK_ALLOWED;
	note(f, &c);
}

/* ---- Connections ---- */

struct flow *flows_begin(struct flows *f, const struct packet *p, const char *name, uint64_t now_ns)
{
	struct network_connection c = line_of(f, p, name, now_ns);
	struct flow *flow;
	uint32_t own, *chain;

	CHECK(!flows_find(f, p, true));
	if (f->free == FLOWS_NONE)
		make_room(f);
	own = f->free;
	if (own == FLOWS_NONE)
		return NULL;
	flow = &f->flows[own];
	f->free = flow->next;
	chain = chain_of(f, p->kind, p->source_port, &p->target, p->target_port);
	*flow = (struct flow){
		.used = true,
		.kind = p->kind,
		.cell_port = p->source_port,
		.port = p->target_port,
		.address = p->target,
		.last_ns = now_ns,
		.line = add_line(f, &c),
		.next = *chain,
	};
	*chain = own;
	f->open += counts(flow);
	f->record.connections++;
	return flow;
}

static void look_for_end(struct flows *f, struct flow *flow, const struct packet *p, bool out)
{
	flow->end_seen[out] |= (p->flags & PACKET_TCP_FIN) != 0;
	if ((p->flags & PACKET_TCP_RST) || (flow->end_seen[0] && flow->end_seen[1]))
		flows_end(f, flow);
}

void flows_count(struct flows *f, size_t bytes, bool out)
{
	*(out ? &f->record.bytes_out : &f->record.bytes_in) += bytes;
}

void flows_pass(
	struct flows *f, struct flow *flow, const struct packet *p, bool out, uint64_t now_ns)
{
	struct network_record *r = &f->record;

	flow->last_ns = now_ns;
	flows_count(f, p->payload_len, out);
	if (flow->line != FLOWS_NONE) {
		struct network_connection *l = &r->lines[flow->line];

		*(out ? &l->bytes_out : &l->bytes_in) += p->payload_len;
		touch(f, flow->line);
	}
	if (flow->kind == PACKET_TCP)
		look_for_end(f, flow, p, out);
}

void flows_deny(
	struct flows *f, const struct flow *flow, const char *name, enum network_verdict why)
{
	struct network_connection *l;

	f->record.refused++;
	if (flow->line == FLOWS_NONE)
		return;
	l = &f->record.lines[flow->line];
	l->verdict = (uint8_t)why;
	if (name[0])
		(void)snprintf(l->name, sizeof(l->name), "%s", name);
	touch(f, flow->line);
}

static bool is_stale(const struct flow *flow, uint64_t now_ns)
{
	uint64_t most_ns = flow->kind == PACKET_TCP ? OVER_NS : IDLE_NS;

	/* A packet may have passed since the caller has asked the clock. */
	return (flow->over || flow->kind != PACKET_TCP) && now_ns > flow->last_ns + most_ns;
}

void flows_sweep(struct flows *f, uint64_t now_ns)
{
	for (uint32_t i = 0; i < FLOWS_MAX; i++)
		if (f->flows[i].used && is_stale(&f->flows[i], now_ns))
			flows_forget(f, &f->flows[i]);
}

#include "api/network_record.h"

#include "api/writer.h"
#include "base/own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int api_network_make(const struct network_policy *asked)
{
	cleanup_fd int fd = memfd_create("network", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ssize_t n;

	if (fd < 0 || ftruncate(fd, (off_t)sizeof(struct network_memory)) < 0)
		return -errno;
	n = pwrite(fd, asked, sizeof(*asked), offsetof(struct network_memory, asked));
	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(*asked))
		return -EIO;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return -errno;
	return take_fd(&fd);
}

struct network_record *api_network_read(int fd)
{
	struct network_record *r = malloc(sizeof(*r));
	ssize_t n = r ? pread(fd, r, sizeof(*r), offsetof(struct network_memory, record)) : -1;

	if (n == (ssize_t)sizeof(*r) && !network_record_fault(r))
		return r;
	free(r);
	return NULL;
}

static void put_address(struct writer *w, const struct network_connection *c)
{
	static const struct network_address none;
	char text[INET6_ADDRSTRLEN];

	if (c->protocol == NETWORK_DNS ||
		(c->protocol == NETWORK_OTHER && network_same_bits(&c->address, &none, 128)))
		writer_null(w, "address");
	else if (network_is_ipv4(&c->address))
		writer_string(w, "address",
			inet_ntop(AF_INET, c->address.bytes + 12, text, sizeof(text)));
	else
		writer_string(
			w, "address", inet_ntop(AF_INET6, c->address.bytes, text, sizeof(text)));
}

static void put_connection(struct writer *w, const struct network_connection *c)
{
	writer_object(w, NULL);
	writer_thousandths(w, "time_ms", c->begin_us);
	writer_string(w, "protocol", network_protocol_name((enum network_protocol)c->protocol));
	if (c->name[0])
		writer_string(w, "name", c->name);
	else
		writer_null(w, "name");
	put_address(w, c);
	if (c->port)
		writer_u64(w, "port", c->port);
	else
		writer_null(w, "port");
	writer_u64(w, "bytes_in", c->bytes_in);
	writer_u64(w, "bytes_out", c->bytes_out);
	writer_string(w, "verdict", c->verdict == NETWORK_ALLOWED ? "allowed" : "denied");
	if (c->verdict == NETWORK_ALLOWED)
		writer_null(w, "reason");
	else
		writer_string(w, "reason", network_verdict_text((enum network_verdict)c->verdict));
	writer_u64(w, "times", c->times);
	writer_close(w);
}

void api_network_put(struct writer *w, const struct network_record *r)
{
	if (!r) {
		writer_null(w, "network");
		return;
	}
	writer_object(w, "network");
	writer_array(w, "connections");
	for (uint32_t i = 0; i < r->count; i++)
		put_connection(w, &r->lines[i]);
	writer_close(w);
	writer_u64(w, "more", r->left_out);
	writer_u64(w, "allowed", r->connections);
	writer_u64(w, "denied", r->refused);
	writer_u64(w, "bytes_in", r->bytes_in);
	writer_u64(w, "bytes_out", r->bytes_out);
	writer_close(w);
}

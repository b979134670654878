#include "edge/front/routes.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *path, *methods;
} routes[ROUTE_MAX] = {
#define X(name, path_, methods_) [ROUTE_##name] = { path_, methods_ },
	ROUTES(X)
#undef X
};

#define EXECUTIONS     "/executions/"
#define EXECUTIONS_LEN (sizeof(EXECUTIONS) - 1)

const char *route_id(const char *path)
{
	return path + EXECUTIONS_LEN;
}

const char *route_file(const char *path)
{
	const char *rest = route_id(path) + ROUTE_ID_LEN;

	return strncmp(rest, "/files/", 7) == 0 ? rest + 7 : "";
}

/* Of what hangs on a run: anything that looks like its name. */
static enum route route_of_execution(const char *path)
{
	const char *id = route_id(path);
	size_t len = strspn(id, "0123456789abcdef");

	if (len != ROUTE_ID_LEN)
		return ROUTE_MAX;
	if (strcmp(id + len, "/files.tar") == 0)
		return ROUTE_ARCHIVE;
	return *route_file(path) ? ROUTE_FILE : ROUTE_MAX;
}

enum route route_by_path(const char *path)
{
	if (strncmp(path, EXECUTIONS, EXECUTIONS_LEN) == 0)
		return route_of_execution(path);
	for (enum route r = 0; r < ROUTE_MAX; r++) {
		if (strcmp(path, routes[r].path) == 0)
			return r;
	}
	return ROUTE_MAX;
}

const char *route_allow(enum route route)
{
	return route < ROUTE_MAX ? routes[route].methods : "";
}

bool route_takes(enum route route, const char *method)
{
	size_t len = strlen(method);
	const char *at = route_allow(route);

	if (len == 0)
		return false;
	while (*at) {
		size_t word = strcspn(at, ",");

		if (word == len && memcmp(at, method, len) == 0)
			return true;
		at += word;
		at += strspn(at, ", ");
	}
	return false;
}

enum reach route_reach(const struct listen_address *listen)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t one[16] = { [15] = 1 };

	switch ((enum listen_kind)listen->kind) {
	case LISTEN_UNIX:
		return REACH_UNIX;
	case LISTEN_INET:
		return listen->ip[0] == IN_LOOPBACKNET ? REACH_LOOPBACK : REACH_NETWORK;
	case LISTEN_INET6:
		if (memcmp(listen->ip, one, sizeof(one)) == 0)
			return REACH_LOOPBACK;
		if (memcmp(listen->ip, mapped, sizeof(mapped)) == 0 &&
			listen->ip[12] == IN_LOOPBACKNET)
			return REACH_LOOPBACK;
		return REACH_NETWORK;
	}
	return REACH_NETWORK;
}

/* "" or ":" and digits. */
static bool is_port(const char *text, size_t len)
{
	if (len == 0)
		return true;
	if (text[0] != ':' || len > 6)
		return false;
	for (size_t i = 1; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
	}
	return true;
}

bool route_host_is_loopback(const char *host)
{
	size_t len = strlen(host), name = strcspn(host, ":");
	char address[INET_ADDRSTRLEN];
	struct in_addr ip;

	if (len >= 5 && strncmp(host, "[::1]", 5) == 0)
		return is_port(host + 5, len - 5);
	if (!is_port(host + name, len - name))
		return false;
	if (name == 9 && strncasecmp(host, "localhost", name) == 0)
		return true;
	if (name >= sizeof(address))
		return false;
	memcpy(address, host, name);
	address[name] = '\0';
	if (inet_pton(AF_INET, address, &ip) != 1)
		return false;
	return (ntohl(ip.s_addr) >> IN_CLASSA_NSHIFT) == IN_LOOPBACKNET;
}

/* Are host[:port] of these two the same, where either may leave out `port`, the default of
 * the origin's scheme? */
static bool is_same_authority(const char *authority, const char *host, const char *port)
{
	size_t len = strlen(authority), host_len = strlen(host);
	size_t common = len < host_len ? len : host_len;

	if (strncasecmp(authority, host, common) != 0)
		return false;
	if (len == host_len)
		return true;
	return strcmp(len < host_len ? host + common : authority + common, port) == 0;
}

bool route_origin_is_ours(const char *origin, const char *host, enum reach reach)
{
	const char *port, *authority;

	/* "null" (a sandboxed frame, a file) is refused with every other scheme. */
	if (strncasecmp(origin, "http://", 7) == 0) {
		authority = origin + 7;
		port = ":80";
	} else if (strncasecmp(origin, "https://", 8) == 0 && reach != REACH_LOOPBACK) {
		authority = origin + 8;
		port = ":443";
	} else {
		return false;
	}
	/* Beyond loopback the name by which the page was got is as good as any. On loopback
	 * it must be of this machine, or it is rebinding's own. Another port or another name
	 * for this machine is another server, perhaps of another user. */
	if (reach == REACH_LOOPBACK && !route_host_is_loopback(authority))
		return false;
	return *authority && host && is_same_authority(authority, host, port);
}

static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$&-^_.+", c));
}

bool route_type_is_json(const char *content_type)
{
	static const char json[] = "application/json", suffix[] = "+json";
	size_t len, slashes = 0;

	if (!content_type || !*content_type)
		return true;
	len = strcspn(content_type, ";");
	while (len > 0 && (content_type[len - 1] == ' ' || content_type[len - 1] == '\t'))
		len--;
	if (len == sizeof(json) - 1 && strncasecmp(content_type, json, len) == 0)
		return true;
	/* Only a well-formed type has a suffix: "text/plain,a/b+json" is a list, and a
	 * browser would take its first. */
	for (size_t i = 0; i < len; i++) {
		if (content_type[i] == '/')
			slashes++;
		else if (!is_token(content_type[i]))
			return false;
	}
	return slashes == 1 && len > sizeof(suffix) &&
	       strncasecmp(content_type + len - (sizeof(suffix) - 1), suffix, sizeof(suffix) - 1) ==
		       0;
}

int route_judge(const struct route_head *head, enum reach reach)
{
	enum route route;

	/* Before anything else: another site learns not even which paths exist. */
	if (reach == REACH_LOOPBACK && head->host && !route_host_is_loopback(head->host))
		return 403;
	if (head->origin && !route_origin_is_ours(head->origin, head->host, reach))
		return 403;
	route = route_by_path(head->path);
	if (route == ROUTE_MAX)
		return 404;
	if (!route_takes(route, head->method))
		return 405;
	if (route != ROUTE_EXECUTE)
		return 0;
	/* A page must ask before it may send this type to another origin (CORS preflight). */
	if (head->origin && (!head->content_type || !*head->content_type))
		return 415;
	if (!route_type_is_json(head->content_type))
		return 415;
	return 0;
}

/* Which requests are served at all: paths and methods, and what a browser that
 * was sent here by another site must not be able to do.
 *
 * Pure: nothing but the texts given to it decides.
 *
 *   runs in    the front
 *   threads    none
 *   trusts     nothing; every text came from the client
 */
#pragma once

#include "wire/settings.h"

#include <stdbool.h>

/* clang-format off */
/*         name      path             methods */
#define ROUTES(X)                                  \
	X(EXECUTE,  "/execute",      "POST")       \
	X(HEALTH,   "/health",       "GET, HEAD")  \
	X(LIMITS,   "/limits",       "GET, HEAD")  \
	X(RUNTIMES, "/runtimes",     "GET, HEAD")  \
	X(OPENAPI,  "/openapi.json", "GET, HEAD")  \
	X(FILE,     "/executions/{id}/files/{path}", "GET, HEAD") \
	X(ARCHIVE,  "/executions/{id}/files.tar", "GET, HEAD")
/* clang-format on */

enum route {
#define X(name, path, methods) ROUTE_##name,
	ROUTES(X)
#undef X
	ROUTE_MAX
};

/* The route of a raw path, or ROUTE_MAX. */
enum route route_by_path(const char *path) __attribute__((nonnull));

/* The parts of a path of ROUTE_FILE or ROUTE_ARCHIVE: the id, of ROUTE_ID_LEN bytes, and what stands
 * behind "/files/", still escaped; "" for an archive. */
#define ROUTE_ID_LEN 32
const char *route_id(const char *path) __attribute__((nonnull));
const char *route_file(const char *path) __attribute__((nonnull));

/* What stands in Allow: "GET, HEAD". "" for ROUTE_MAX. */
const char *route_allow(enum route route);
bool route_takes(enum route route, const char *method) __attribute__((nonnull));

/* Where the server listens, as far as browsers matter. */
enum reach {
	REACH_LOOPBACK, /* an address of this machine only */
	REACH_UNIX,
	REACH_NETWORK
};

enum reach route_reach(const struct listen_address *listen) __attribute__((nonnull));

/* What of a request the decision needs; absent headers are NULL. */
struct route_head {
	const char *method, *path;
	const char *host, *origin, *content_type;
};

/* 0 to serve it, or the HTTP status to refuse it with: 403 (asked for by another
 * site), 404, 405 or 415. */
int route_judge(const struct route_head *head, enum reach reach) __attribute__((nonnull));

/* The parts of route_judge(), each a question of its own. */

/* May `host` (a Host header) reach a server on loopback? A name other than localhost
 * can be pointed here by whoever owns it (DNS rebinding); an address cannot. */
bool route_host_is_loopback(const char *host) __attribute__((nonnull));

/* May a page of `origin` ask? Only if it is what `host` names, with the same port; on
 * loopback only a loopback name or address of plain http. `host` may be NULL. */
bool route_origin_is_ours(const char *origin, const char *host, enum reach reach)
	__attribute__((nonnull(1)));

/* Is it JSON, by its type? Absent counts: clients of such APIs leave it out. A page may not:
 * route_judge() refuses it beside an Origin. */
bool route_type_is_json(const char *content_type);

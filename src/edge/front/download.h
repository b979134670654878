/* GET of what is kept of a run: one file, or all of them as a tar.
 *
 *   runs in    the front
 *   owns       nothing that outlives the answer
 *   trusts     no byte of a path: it is compared with what is there, and never resolved
 */
#pragma once

struct http_request;
struct shelf;

/* Answer a request of ROUTE_FILE, of ROUTE_ARCHIVE. `shelf` NULL: nothing is kept. */
void download_file(struct shelf *shelf, struct http_request *req) __attribute__((nonnull(2)));
void download_archive(struct shelf *shelf, struct http_request *req) __attribute__((nonnull(2)));

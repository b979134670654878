/* Kept files as clients come for them: with a real shelf, over a real server, to clients that leave,
 * wait, or come for what has gone meanwhile. */
#include "unit.h"

#include "http_talk.h"

#include "edge/front/download.h"
#include "edge/front/routes.h"
#include "edge/front/shelf.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEN      ((size_t)1000000) /* much more than sockets and one piece hold */
#define CAPACITY (2 * LEN)
#define KEEP_US  60000000
#define ID       "0123456789abcdef0123456789abcdef"
#define OTHER_ID "00000000000000000000000000000001"
#define ROOM     ((size_t)64 << 10) /* the server's part of what a slow client costs */

static struct talk t;
static struct client cl;
static struct shelf *shelf;
static int shelf_fd;
static uint64_t now_ns;

/* ---- What is looked at, and made to fail ---- */

static int visits;       /* of runs, that nobody has left */
static size_t read_most; /* the largest piece that was asked for */
static uint64_t read_bytes;
static unsigned
	fail_in; /* the allocation with this number, from 1 on, while a request is handled */

const struct stored *__real_shelf_visit(struct shelf *s, const char *id, bool *ret_gone);
const struct stored *__wrap_shelf_visit(struct shelf *s, const char *id, bool *ret_gone);
void __real_shelf_leave(struct shelf *s, const struct stored *run);
void __wrap_shelf_leave(struct shelf *s, const struct stored *run);
ssize_t __real_shelf_read(
	const struct shelf *s, const struct stored_file *f, uint64_t at, void *bytes, size_t room);
ssize_t __wrap_shelf_read(
	const struct shelf *s, const struct stored_file *f, uint64_t at, void *bytes, size_t room);
void *__real_malloc(size_t len);
void *__wrap_malloc(size_t len);
void *__real_calloc(size_t count, size_t len);
void *__wrap_calloc(size_t count, size_t len);
uint64_t __wrap_clock_ns(void);

const struct stored *__wrap_shelf_visit(struct shelf *s, const char *id, bool *ret_gone)
{
	const struct stored *run = __real_shelf_visit(s, id, ret_gone);

	visits += run != NULL;
	return run;
}

void __wrap_shelf_leave(struct shelf *s, const struct stored *run)
{
	visits--;
	__real_shelf_leave(s, run);
}

ssize_t __wrap_shelf_read(
	const struct shelf *s, const struct stored_file *f, uint64_t at, void *bytes, size_t room)
{
	ssize_t n = __real_shelf_read(s, f, at, bytes, room);

	read_most = room > read_most ? room : read_most;
	read_bytes += n > 0 ? (uint64_t)n : 0;
	return n;
}

void *__wrap_malloc(size_t len)
{
	return fail_in > 0 && --fail_in == 0 ? NULL : __real_malloc(len);
}

void *__wrap_calloc(size_t count, size_t len)
{
	return fail_in > 0 && --fail_in == 0 ? NULL : __real_calloc(count, len);
}

uint64_t __wrap_clock_ns(void)
{
	return now_ns;
}

/* ---- The server ---- */

static unsigned fails_next; /* fail_in of the next request */
static bool has_run_out;    /* there was no allocation of that number */

static void on_request(struct http_request *req, void *ctx)
{
	(void)ctx;
	fail_in = fails_next;
	if (route_by_path(http_request_path(req)) == ROUTE_ARCHIVE)
		download_archive(shelf, req);
	else
		download_file(shelf, req);
	has_run_out = fail_in > 0;
	fail_in = 0;
}

static int begin(void **state)
{
	(void)state;
	talk_begin(&t);
	talk_end(&t);
	/* Not TCP, which can go on with 300 bytes each 200 ms when its buffers are small. */
	t.unix_socket = t.small_buffers = true;
	t.executions = on_request;
	talk_serve(&t);
	shelf_fd = memfd_create("shelf", MFD_CLOEXEC);
	now_ns = 1;
	shelf = shelf_create(t.base, shelf_fd, CAPACITY, KEEP_US);
	assert_non_null(shelf);
	read_most = read_bytes = 0;
	fails_next = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	WAIT_FOR(&t, http_server_connections(t.server) == 0);
	assert_int_equal(visits, 0);
	shelf_destroy(shelf);
	talk_end(&t);
	return 0;
}

/* A run of one file of `len` bytes, each of them `fill`. */
static void keep(const char *id, const char *path, size_t len, char fill)
{
	const struct artifacts_keeper *k = shelf_keeper(shelf);
	struct artifacts_list l = { .plan = { .keeper = k }, .count = 1 };
	struct artifact a = { .path_len = strlen(path), .size = len, .kept = true };
	char copy[1024], *bytes = malloc(len + 1);

	(void)snprintf(copy, sizeof(copy), "%s", path);
	memset(bytes, fill, len);
	a.path = copy;
	assert_int_equal(k->begin(k->ctx, len, &a.place), 0);
	assert_int_equal(k->bytes(k->ctx, a.place, 0, bytes, len), 0);
	l.files = &a;
	assert_int_equal(shelf_put(shelf, id, &l), 0);
	free(bytes);
}

static void let_time_pass(const char *id)
{
	bool gone;

	now_ns += KEEP_US * UINT64_C(1000) + 1;
	assert_null(__real_shelf_visit(shelf, id, &gone));
	assert_true(gone);
}

/* ---- The client ---- */

static void ask_for(const char *method, const char *what)
{
	char text[2048];

	client_open(&cl, &t);
	(void)snprintf(
		text, sizeof(text), "%s /executions/%s HTTP/1.1\r\nHost: h\r\n\r\n", method, what);
	client_say(&cl, text);
}

/* One that has asked, has the beginning, and reads no more. */
static void ask_and_wait(const char *what)
{
	ask_for("GET", what);
	WAIT_FOR(&t, cl.len > 0);
	(void)bufferevent_disable(cl.bev, EV_READ);
	(void)talk_wakeups(&t, 50);
	assert_int_equal(visits, 1);
}

static size_t count_bytes(char c)
{
	size_t n = 0;

	for (size_t i = 0; i < cl.len; i++)
		n += cl.text[i] == c;
	return n;
}

static void must_be_refused(const char *what, int status, const char *why)
{
	char line[64];

	ask_for("GET", what);
	(void)snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
	WAIT_FOR(&t, client_has(&cl, "\"}"));
	if (!client_has(&cl, line) || !client_has(&cl, why))
		fail_msg("%s: not %d, %s: %s", what, status, why, cl.text);
	client_close(&cl);
	assert_int_equal(visits, 0);
}

/* ---- What there is, and what there is not ---- */

static void a_file_comes_whole_and_is_no_page_of_this_server(void **state)
{
	(void)state;
	keep(ID, "page.html", LEN, '#');
	ask_for("GET", ID "/files/page.html");
	WAIT_FOR(&t, count_bytes('#') == LEN);
	assert_true(client_has(&cl, "HTTP/1.1 200 "));
	assert_true(client_has(&cl, "Content-Type: text/html"));
	assert_true(client_has(&cl, "Content-Length: 1000000\r\n"));
	assert_true(
		client_has(&cl, "Content-Disposition: attachment; filename*=UTF-8''page.html\r\n"));
	assert_true(client_has(&cl, "X-Content-Type-Options: nosniff\r\n"));
	assert_true(client_has(&cl, "Content-Security-Policy: default-src 'none'; sandbox\r\n"));
	assert_true(client_has(&cl, "Cache-Control: private, no-store\r\n"));
	assert_true(client_has(&cl, "Cross-Origin-Resource-Policy: same-origin\r\n"));
	assert_int_equal(read_bytes, LEN);
	client_close(&cl);
}

static void of_head_no_byte_of_the_file_is_read(void **state)
{
	(void)state;
	keep(ID, "a", LEN, '#');
	ask_for("HEAD", ID "/files/a");
	WAIT_FOR(&t, client_has(&cl, "\r\n\r\n"));
	assert_true(client_has(&cl, "Content-Length: 1000000\r\n"));
	assert_int_equal(read_bytes, 0);
	client_close(&cl);
}

static void an_empty_file_is_a_file(void **state)
{
	(void)state;
	keep(ID, "a", 0, '#');
	ask_for("GET", ID "/files/a");
	WAIT_FOR(&t, client_has(&cl, "\r\n\r\n"));
	assert_true(client_has(&cl, "HTTP/1.1 200 ") && client_has(&cl, "Content-Length: 0\r\n"));
	client_close(&cl);
}

static void what_there_is_not_is_told_from_what_has_gone(void **state)
{
	struct shelf *its = shelf;

	(void)state;
	keep(ID, "a/b", 1, '#');
	must_be_refused(OTHER_ID "/files/a/b", 404, "no files are kept of such an execution");
	must_be_refused(OTHER_ID "/files.tar", 404, "no files are kept of such an execution");
	must_be_refused(ID "/files/a", 404, "no file of this path");
	must_be_refused(ID "/files/a/b%00", 404, "no file of this path");
	must_be_refused(ID "/files/a//b", 404, "no file of this path");
	must_be_refused(ID "/files/../" ID "/files/a/b", 404, "no file of this path");
	must_be_refused(ID "/files/a%2", 400, "two hexadecimal digits");
	must_be_refused(ID "/files/a%g0", 400, "two hexadecimal digits");
	shelf = NULL;
	must_be_refused(ID "/files/a/b", 404, "artifact-store");
	must_be_refused(ID "/files.tar", 404, "artifact-store");
	shelf = its;
	let_time_pass(ID);
	must_be_refused(ID "/files/a/b", 410, "no longer kept");
	must_be_refused(ID "/files.tar", 410, "no longer kept");
}

/* A name is the program's: no header may come of it. */
static void whatever_its_name_it_is_one_parameter_of_one_header(void **state)
{
	(void)state;
	keep(ID, "d/a\"\r\nX-Forged: 1;\xc3\xa4~", 1, '#');
	ask_for("GET", ID "/files/d%2fa\"%0D%0AX-Forged:%201;%C3%A4~");
	WAIT_FOR(&t, client_has(&cl, "\r\n\r\n"));
	assert_true(client_has(&cl, "filename*=UTF-8''a%22%0D%0AX-Forged%3A%201%3B%C3%A4~\r\n"));
	client_close(&cl);
}

/* ---- Clients that leave or wait ---- */

static void who_leaves_half_way_leaves_the_run(void **state)
{
	static const char *const all[] = { ID "/files/a", ID "/files.tar" };

	(void)state;
	keep(ID, "a", LEN, '#');
	for (unsigned i = 0; i < 2; i++) {
		ask_and_wait(all[i]);
		client_reset(&cl);
		WAIT_FOR(&t, visits == 0);
		assert_true(read_bytes < LEN);
		read_bytes = 0;
		ask_and_wait(all[i]);
		client_close(&cl);
		WAIT_FOR(&t, visits == 0);
		assert_true(read_bytes < LEN);
		read_bytes = 0;
	}
}

static void who_reads_slowly_is_read_for_piece_by_piece(void **state)
{
	static const char *const all[] = { ID "/files/a", ID "/files.tar" };

	(void)state;
	keep(ID, "a", LEN, '#');
	for (unsigned i = 0; i < 2; i++) {
		uint64_t first;

		read_bytes = 0;
		ask_and_wait(all[i]);
		first = read_bytes;
		assert_in_range(first, 1, LEN / 2);
		(void)talk_wakeups(&t, 50);
		assert_int_equal(read_bytes, first);
		assert_true(read_most <= ROOM);
		(void)bufferevent_enable(cl.bev, EV_READ);
		WAIT_FOR(&t, visits == 0 && count_bytes('#') >= LEN);
		assert_int_equal(read_bytes, LEN);
		client_close(&cl);
	}
}

/* Its time is over while it is read: nobody wants its room, and it comes whole. */
static void who_has_begun_in_time_may_go_on(void **state)
{
	(void)state;
	keep(ID, "a", LEN, '#');
	ask_and_wait(ID "/files/a");
	let_time_pass(ID);
	keep(OTHER_ID, "b", LEN, '!');
	(void)bufferevent_enable(cl.bev, EV_READ);
	WAIT_FOR(&t, count_bytes('#') == LEN);
	assert_int_equal(count_bytes('!'), 0);
	client_close(&cl);
}

/* What is sent must not be another run's. */
static void who_is_too_slow_is_cut_off_and_sees_nothing_of_what_came_after(void **state)
{
	static const char *const all[] = { ID "/files/a", ID "/files.tar" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		keep(ID, "a", LEN, '#');
		ask_and_wait(all[i]);
		let_time_pass(ID);
		keep(OTHER_ID, "b", CAPACITY, '!');
		(void)bufferevent_enable(cl.bev, EV_READ);
		WAIT_FOR(&t, cl.eof || cl.reset);
		assert_int_equal(visits, 0);
		assert_in_range(count_bytes('#'), 1, LEN - 1);
		assert_int_equal(count_bytes('!'), 0);
		assert_false(client_has(&cl, "\r\n0\r\n\r\n"));
		client_close(&cl);
		let_time_pass(OTHER_ID);
	}
}

static void a_file_that_is_shorter_than_promised_is_cut_off(void **state)
{
	static const char *const all[] = { ID "/files/a", ID "/files.tar" };

	(void)state;
	keep(ID, "a", LEN, '#');
	assert_int_equal(ftruncate(shelf_fd, LEN / 2), 0);
	for (unsigned i = 0; i < 2; i++) {
		ask_for("GET", all[i]);
		WAIT_FOR(&t, cl.eof || cl.reset);
		assert_int_equal(visits, 0);
		assert_true(client_has(&cl, "HTTP/1.1 200 "));
		assert_true(count_bytes('#') <= LEN / 2);
		assert_false(client_has(&cl, "\r\n0\r\n\r\n"));
		client_close(&cl);
	}
}

static void a_file_that_cannot_be_read_is_cut_off(void **state)
{
	int other = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	keep(ID, "a", LEN, '#');
	assert_int_equal(dup3(other, shelf_fd, O_CLOEXEC), shelf_fd); /* EBADF */
	(void)close(other);
	ask_for("GET", ID "/files/a");
	WAIT_FOR(&t, cl.eof || cl.reset);
	assert_int_equal(count_bytes('#'), 0);
	client_close(&cl);
}

/* ---- All files as one ---- */

static void all_files_come_as_a_tar(void **state)
{
	struct archive *r = archive_read_new();
	struct archive_entry *e;
	const char *body;

	(void)state;
	keep(ID, "a/b", 5, '#');
	client_open(&cl, &t);
	client_say(&cl, "GET /executions/" ID "/files.tar HTTP/1.0\r\nHost: h\r\n\r\n");
	WAIT_FOR(&t, cl.eof);
	assert_true(client_has(&cl, "Content-Type: application/x-tar\r\n"));
	assert_true(client_has(&cl, "filename*=UTF-8''files.tar\r\n"));
	assert_true(client_has(&cl, "Content-Security-Policy: default-src 'none'; sandbox\r\n"));
	body = strstr(cl.text, "\r\n\r\n") + 4;
	assert_int_equal(archive_read_support_format_tar(r), ARCHIVE_OK);
	assert_int_equal(
		archive_read_open_memory(r, body, cl.len - (size_t)(body - cl.text)), ARCHIVE_OK);
	assert_int_equal(archive_read_next_header(r, &e), ARCHIVE_OK);
	assert_string_equal(archive_entry_pathname(e), "a/b");
	assert_int_equal(archive_entry_size(e), 5);
	assert_int_equal(archive_read_next_header(r, &e), ARCHIVE_EOF);
	(void)archive_read_free(r);
	client_close(&cl);
}

/* ---- Without memory ---- */

static void whichever_allocation_fails_it_is_told_and_the_run_is_left(void **state)
{
	static const char *const all[] = { ID "/files/a", ID "/files.tar" };
	static const unsigned steps[] = { 2, 2 };

	(void)state;
	keep(ID, "a", 1, '#');
	for (unsigned i = 0; i < 2; i++) {
		for (fails_next = 1;; fails_next++) {
			ask_for("GET", all[i]);
			WAIT_FOR(&t, cl.len > 0 && visits == 0);
			if (has_run_out)
				break;
			WAIT_FOR(&t, client_has(&cl, "\"}"));
			assert_true(client_has(&cl, "HTTP/1.1 503 "));
			assert_true(client_has(&cl, "out of memory"));
			client_close(&cl);
		}
		assert_true(client_has(&cl, "HTTP/1.1 200 "));
		client_close(&cl);
		assert_int_equal(fails_next, steps[i] + 1);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_file_comes_whole_and_is_no_page_of_this_server),
		CASE(of_head_no_byte_of_the_file_is_read),
		CASE(an_empty_file_is_a_file),
		CASE(what_there_is_not_is_told_from_what_has_gone),
		CASE(whatever_its_name_it_is_one_parameter_of_one_header),
		CASE(who_leaves_half_way_leaves_the_run),
		CASE(who_reads_slowly_is_read_for_piece_by_piece),
		CASE(who_has_begun_in_time_may_go_on),
		CASE(who_is_too_slow_is_cut_off_and_sees_nothing_of_what_came_after),
		CASE(a_file_that_is_shorter_than_promised_is_cut_off),
		CASE(a_file_that_cannot_be_read_is_cut_off),
		CASE(all_files_come_as_a_tar),
		CASE(whichever_allocation_fails_it_is_told_and_the_run_is_left),
	};

	return cmocka_run_group_tests_name("front_download", tests, NULL, NULL);
}

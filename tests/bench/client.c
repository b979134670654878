/* bench-client http    [OPTIONS] PORT BODY-FILE    POST /execute
 * bench-client get     [OPTIONS] PORT PATH         any 200 is right
 * bench-client echo    [OPTIONS]                   a perfect server in this process
 * bench-client command [OPTIONS] -- ARGV…          start a program, read it, reap it
 * bench-client rest    -r DIR:N                    only wait until the pool is at rest
 *
 *   -c CLIENTS   at the same time (1)
 *   -n COUNT     runs of each client (as many as fit)
 *   -s SECONDS   begin no run after that (no end); at least one run of each client is made
 *   -w COUNT     runs of each client before that, which are checked but not kept (0)
 *   -e FILE      what the program has to print
 *   -f NAME:FILE the file that it has to leave in its directory, and what that begins with: as
 *                it is (command; it is removed then), or as `content` of the reply has it (http)
 *   -p MS        pause before each run (0)
 *   -r DIR:N     N cells below that control group are at rest (rest)
 *   -A MIB       address space of the commands
 *
 * Prints one JSON object: elapsed_ns, wrong, why (of the first wrong answer), samples: rows
 * of latency_ns, faults, cpu_us, queue_us, setup_us, run_us, teardown_us, memory_bytes.
 * Exit status 0 also with wrong answers, 2 when nothing could be measured.
 */
#include "client.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MAX 256
#define BUFFER_SIZE (1u << 20)

struct options {
	unsigned clients;
	uint64_t count, warm_up, duration_ns, pause_ns;
	char *ready_dir;
	unsigned ready_cells;
};

struct client {
	struct worker worker;
	pthread_t thread;
	struct sample *samples;
	size_t kept, room;
	uint64_t wrong;
	char first_why[WHY_SIZE];
	uint64_t last_ns; /* when its last answer was there */
};

static struct options options = { .clients = 1 };
static struct load load = { .stderr_fd = -1 };
static pthread_barrier_t warmed;
static uint64_t began_ns;

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

bool wrong(struct worker *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w->why, sizeof(w->why), format, args);
	va_end(args);
	return false;
}

bool read_file(const char *path, struct text *ret)
{
	const size_t room = 1u << 22;
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	ret->bytes = calloc(1, room + 1);
	ret->length = fread(ret->bytes, 1, room, f);
	fclose(f);
	return true;
}

/* ---- The clients ---- */

static void keep(struct client *c, const struct sample *s)
{
	if (c->kept == c->room) {
		c->room = c->room ? 2 * c->room : 1024;
		c->samples = realloc(c->samples, c->room * sizeof(*s));
		if (!c->samples)
			abort();
	}
	c->samples[c->kept++] = *s;
}

static void once(struct client *c, bool kept)
{
	struct sample s = { 0 };
	bool ok;

	if (options.pause_ns > 0)
		nanosleep(&(struct timespec){ .tv_sec = (time_t)(options.pause_ns / 1000000000),
				  .tv_nsec = (long)(options.pause_ns % 1000000000) },
			NULL);
	ok = load.once(&c->worker, &s);
	c->worker.runs++;
	c->last_ns = now_ns();
	if (!ok && c->wrong++ == 0)
		memcpy(c->first_why, c->worker.why, WHY_SIZE);
	if (ok && kept)
		keep(c, &s);
}

static bool goes_on(const struct client *c, uint64_t done)
{
	if (c->wrong > 0) /* the row is void: more of it shows nothing */
		return false;
	if (options.count > 0 && done >= options.count)
		return false;
	return options.duration_ns == 0 || done == 0 || now_ns() - began_ns < options.duration_ns;
}

static void *work(void *argument)
{
	struct client *c = argument;

	for (uint64_t i = 0; i < options.warm_up && c->wrong == 0; i++)
		once(c, false);
	if (pthread_barrier_wait(&warmed) == PTHREAD_BARRIER_SERIAL_THREAD)
		began_ns = now_ns();
	pthread_barrier_wait(&warmed);
	for (uint64_t done = 0; goes_on(c, done); done++)
		once(c, true);
	return NULL;
}

/* ---- The report ---- */

/* A text from a peer: what JSON does not take as it is becomes a blank. */
static void print_text(const char *text)
{
	for (; *text; text++) {
		unsigned char b = (unsigned char)*text;

		putchar(b < ' ' || b > '~' || b == '"' || b == '\\' ? ' ' : b);
	}
}

static void print_complaint(void)
{
	char bytes[200] = "";
	off_t size = load.stderr_fd < 0 ? 0 : lseek(load.stderr_fd, 0, SEEK_END);
	off_t from = size > (off_t)sizeof(bytes) - 1 ? size - (off_t)sizeof(bytes) + 1 : 0;

	if (size > 0 && pread(load.stderr_fd, bytes, sizeof(bytes) - 1, from) > 0) {
		printf("; ");
		print_text(bytes);
	}
}

static void report(struct client *clients)
{
	uint64_t wrongs = 0, last = began_ns;
	const char *why = NULL;
	const char *comma = "";

	for (unsigned i = 0; i < options.clients; i++) {
		wrongs += clients[i].wrong;
		why = clients[i].wrong && !why ? clients[i].first_why : why;
		last = clients[i].last_ns > last ? clients[i].last_ns : last;
	}
	printf("{\"elapsed_ns\":%lu,\"wrong\":%lu,\"why\":\"", (unsigned long)(last - began_ns),
		(unsigned long)wrongs);
	if (why) {
		print_text(why);
		print_complaint();
	}
	printf("\",\"samples\":[");
	for (unsigned i = 0; i < options.clients; i++) {
		for (size_t k = 0; k < clients[i].kept; k++) {
			const struct sample *s = &clients[i].samples[k];

			printf("%s[%lu,%lu,%lu,%lu,%lu,%lu,%lu,%lu]", comma,
				(unsigned long)s->latency_ns, (unsigned long)s->faults,
				(unsigned long)s->cpu_us, (unsigned long)s->queue_us,
				(unsigned long)s->setup_us, (unsigned long)s->run_us,
				(unsigned long)s->teardown_us, (unsigned long)s->memory_bytes);
			comma = ",";
		}
	}
	printf("]}\n");
}

static int measure(void)
{
	static struct client clients[CLIENTS_MAX];

	pthread_barrier_init(&warmed, NULL, options.clients);
	for (unsigned i = 0; i < options.clients; i++) {
		clients[i].worker = (struct worker){
			.load = &load,
			.number = i,
			.fd = -1,
			.buffer = malloc(BUFFER_SIZE),
			.size = BUFFER_SIZE,
		};
		if (pthread_create(&clients[i].thread, NULL, work, &clients[i]) != 0)
			return 2;
	}
	for (unsigned i = 0; i < options.clients; i++)
		pthread_join(clients[i].thread, NULL);
	report(clients);
	return 0;
}

/* ---- The command line ---- */

static int usage(void)
{
	fprintf(stderr,
		"usage: bench-client http|get|echo|command|rest [OPTIONS] …  (see client.c)\n");
	return 2;
}

static void limit_memory(unsigned long mib)
{
	const struct rlimit space = { mib << 20, mib << 20 };

	if (setrlimit(RLIMIT_AS, &space) < 0)
		perror("setrlimit");
}

static bool set_left(char *what)
{
	char *colon = strchr(what, ':');

	if (!colon)
		return false;
	*colon = '\0';
	load.left_name = what;
	return read_file(colon + 1, &load.left);
}

static void set_ready(char *where)
{
	char *colon = strrchr(where, ':');

	if (!colon)
		return;
	*colon = '\0';
	options.ready_dir = where;
	options.ready_cells = (unsigned)strtoul(colon + 1, NULL, 10);
}

static bool set_option(int letter, char *value)
{
	double number = strtod(value, NULL);

	switch (letter) {
	case 'c':
		options.clients = (unsigned)number;
		return options.clients >= 1 && options.clients <= CLIENTS_MAX;
	case 'n':
		options.count = (uint64_t)number;
		return number >= 1;
	case 's':
		options.duration_ns = (uint64_t)(number * 1e9);
		return number > 0;
	case 'w':
		options.warm_up = (uint64_t)number;
		return true;
	case 'e':
		return read_file(value, &load.expect);
	case 'f':
		return set_left(value);
	case 'r':
		set_ready(value);
		return options.ready_cells > 0;
	case 'p':
		options.pause_ns = (uint64_t)(number * 1e6);
		return true;
	case 'A':
		limit_memory((unsigned long)number);
		return number > 0;
	default:
		return false;
	}
}

static bool prepare(const char *kind, int argc, char **argv)
{
	struct text body;

	load.once = http_once;
	if (strcmp(kind, "command") == 0) {
		load.once = command_once;
		load.argv = argv;
		load.stderr_fd = memfd_create("stderr", MFD_CLOEXEC);
		return argc > 0 && fcntl(load.stderr_fd, F_SETFL, O_APPEND) == 0;
	}
	if (strcmp(kind, "echo") == 0 && argc == 0) {
		load.request = http_get("/");
		load.port = http_start_echo(&load.expect);
		return load.port > 0;
	}
	if (argc != 2)
		return false;
	load.port = (unsigned)strtoul(argv[0], NULL, 10);
	load.plain = strcmp(kind, "get") == 0;
	if (load.plain) {
		load.request = http_get(argv[1]);
		return true;
	}
	if (strcmp(kind, "http") != 0 || !read_file(argv[1], &body))
		return false;
	load.request = http_post("/execute", &body);
	return true;
}

int main(int argc, char **argv)
{
	int letter;

	if (argc < 2)
		return usage();
	while ((letter = getopt(argc - 1, argv + 1, "+c:n:s:w:e:f:r:p:A:")) != -1) {
		if (!set_option(letter, optarg))
			return usage();
	}
	if (strcmp(argv[1], "rest") == 0 && options.ready_dir)
		return ready_wait(options.ready_dir, options.ready_cells) ? 0 : 2;
	if (!options.count && !options.duration_ns)
		return usage();
	if (!prepare(argv[1], argc - 1 - optind, argv + 1 + optind))
		return usage();
	return measure();
}

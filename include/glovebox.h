/* libglovebox: run untrusted programs in a cage and learn exactly what happened.
 *
 *   struct gbx_session *session = NULL;
 *   struct gbx_error error;
 *   struct gbx_request request = { .size = sizeof(request) };
 *   struct gbx_result result = { .size = sizeof(result) };
 *
 *   request.code = "print(6 * 7)";
 *   request.code_len = strlen(request.code);
 *   if (gbx_open(NULL, &session, &error) < 0 ||
 *           gbx_run(session, &request, &result, &error) < 0)
 *           errx(125, "%s", error.text);
 *   fwrite(result.out.bytes, 1, result.out.len, stdout);
 *   gbx_result_clear(&result);
 *   gbx_close(session);
 *
 * The library starts the program `glovebox` as a child and talks to it; the caller keeps
 * its own privileges and never runs the untrusted code itself. The child needs root.
 *
 *   owns       a session owns one child process and its socket
 *   threads    a session belongs to one thread at a time; gbx_cancel() may be called
 *              from any thread and from a signal handler
 *   signals    no disposition is changed; SIGPIPE is blocked during gbx_run() only
 *   fork       a session does not survive a fork() in the child
 *
 * Every function that can fail returns 0 or a negative errno and, where it takes a
 * struct gbx_error, says why in a sentence. "Your program failed" is never an error:
 * that is a result.
 *
 * Structs that begin with `size` are versioned by it: set it to sizeof(the struct), zero
 * the rest, and a program built against this header works with later libraries.
 */
#ifndef GLOVEBOX_H
#define GLOVEBOX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GBX_API __attribute__((visibility("default")))
#else
#define GBX_API
#endif

struct gbx_session;

struct gbx_error {
	int code; /* negative errno */
	char text[508];
};

/* How the run ended, as the API's `status` and `cause` say it. */
enum gbx_status {
	GBX_SUCCESS,
	GBX_TIMEOUT,         /* exit_code is 124 */
	GBX_MEMORY_EXCEEDED, /* exit_code is 137 */
	GBX_ERROR            /* the program's own failure: exit_code is its own */
};

enum gbx_cause {
	GBX_CAUSE_EXIT,
	GBX_CAUSE_SIGNAL,
	GBX_CAUSE_WALL_TIMEOUT,
	GBX_CAUSE_CPU_TIMEOUT,
	GBX_CAUSE_OOM_KILL,
	GBX_CAUSE_CANCELLED,
	GBX_CAUSE_COMPILE /* the compiler failed, and no program was run; exit_code is its own */
};

enum gbx_option_flags {
	/* Keep ready cells and a warm interpreter, as a server does (settings pool-size, cold):
	 * for many runs. gbx_open() then waits until a cell is ready, some seconds; where there
	 * is no warm interpreter it goes on without. */
	GBX_READY_CELLS = 1u << 0
};

struct gbx_options {
	size_t size;
	const char *program; /* path of `glovebox`; NULL: $GLOVEBOX_PROGRAM, else where it was
				installed, else the calling program if it is `glovebox` */
	const char *config;  /* YAML file; NULL: /etc/glovebox/glovebox.yaml if there is one;
				"": none */
	const char *const *settings; /* "key=value", "GLOVEBOX_KEY=value" or "--key=value",
				ended by NULL; later ones win, and all go before the file */
	int log_fd;                  /* 0: the child logs to this process's stderr; only
				errors, unless a setting says log-level=LEVEL */
	uint32_t flags;              /* enum gbx_option_flags */
	uint32_t reserved;           /* 0 */
	const char *runtimes;        /* folder of further languages; NULL: /etc/glovebox/runtimes if
				there is one; "": none */
};

/* One stream of output, `bytes` being what was kept of it: when `dropped` is not 0, the
 * beginning (`head` bytes) and the end. A NUL stands behind the last byte. */
struct gbx_output {
	char *bytes;
	size_t len;
	size_t head;
	uint64_t total;
	uint64_t dropped;
};

enum gbx_stream {
	GBX_STDOUT = 1,
	GBX_STDERR = 2,
	GBX_COMPILER = 3 /* what a compiler has to say, on either stream, before the program */
};

typedef void (*gbx_output_fn)(void *context, int stream, const void *bytes, size_t len);

enum gbx_request_flags {
	GBX_INPUT_FD = 1u << 0,    /* read the program's stdin from input_fd, not from input */
	GBX_NO_CAPTURE = 1u << 1,  /* keep no output; on_output sees it */
	GBX_WANT_JSON = 1u << 2,   /* fill result.json; not with GBX_NO_CAPTURE */
	GBX_RETURN_LAST = 1u << 3, /* the JSON has the value of the last statement */
	GBX_SVG = 1u << 4,         /* and figures as SVG */
	GBX_NO_PNG = 1u << 5,      /* and no figures as PNG */
	GBX_INTERLEAVED = 1u << 6  /* and both streams as one list of timed chunks */
};

/* A file that lies in the program's working directory when it begins. This struct does not
 * grow. */
struct gbx_file {
	const char *path; /* below /workspace: relative, components of 1 to 255 bytes none of
			     which is "." or "..", at most 1,024 bytes, no control characters */
	const void *bytes;
	size_t len;
	uint32_t mode;     /* permissions, at most 0777; 0: 0644 */
	uint32_t reserved; /* 0 */
};

/* A file that is new or changed in the program's working directory when the run has ended. What
 * it points to is borrowed for the length of the call. This struct does not grow. */
struct gbx_artifact {
	const char *path; /* below /workspace, as gbx_file has it, but at most 4,095 bytes, of which
			     any may be any but NUL; terminated */
	size_t path_len;
	uint64_t size;      /* of the file */
	const char *reason; /* why it is left out, or not whole: "symlink", "too_large", ...;
			       NULL: it is neither */
};

enum gbx_artifact_event {
	GBX_ARTIFACT_BEGIN,  /* its bytes follow */
	GBX_ARTIFACT_BYTES,  /* some of them, in order */
	GBX_ARTIFACT_END,    /* that was all; with a reason: what came is not the file */
	GBX_ARTIFACT_SKIPPED /* it is left out, and nothing follows */
};

/* Not 0: no more of them are wanted. `bytes` are there with GBX_ARTIFACT_BYTES only. */
typedef int (*gbx_artifact_fn)(void *context, int event, const struct gbx_artifact *artifact,
	const void *bytes, size_t len);

/* A limit of 0 means the session's default. */
struct gbx_request {
	size_t size;
	const char *code; /* the program's text; need not be terminated */
	size_t code_len;
	uint32_t flags;    /* enum gbx_request_flags */
	uint32_t reserved; /* 0 */
	uint64_t timeout_us;
	uint64_t memory_bytes;
	uint64_t cpu_time_us;
	uint32_t cpu_milli; /* thousandths of one CPU */
	uint32_t pids;
	const void *input; /* the program's stdin; none: it reads end of file */
	size_t input_len;
	int input_fd;            /* borrowed; read until it ends or the run does */
	gbx_output_fn on_output; /* called as output arrives; may be NULL */
	void *context;
	/* All borrowed until gbx_run() returns; NULL and 0 where there are none. */
	const char *const *args; /* the program's arguments behind its name, ended by NULL */
	const char *const *env;  /* "NAME=VALUE", ended by NULL: beside what every program has.
				    Names that are read before a program begins (PATH, LD_*,
				    PYTHON*, ...) are refused */
	const struct gbx_file *files;
	size_t file_count;
	const char *entry_point; /* the path of the one of `files` that is the program, in the
				    place of `code` */
	const char *language;    /* a name or an alias, "lua"; NULL: "python". Limits of 0 mean
				    that language's own defaults */
	const char *image; /* of the store, in the place of a language, and as one; NULL: none */
	/* Called behind the end of the program, for each file that it has left, in the order of
	 * their paths; NULL: they are not looked for. The settings artifact-* bound them. */
	gbx_artifact_fn on_artifact;
	uint64_t output_bytes; /* most that is kept of each output stream; 0: the setting
				  output-bytes, which is also the most */
	const char *network;   /* what the program may reach: the JSON that the API takes as
				  `network`; "{}": whatever the settings allow; NULL: no network */
};

/* Something that the run has run into, as the API's denials[] say it. The texts are
 * constant. This struct does not grow. */
struct gbx_denial {
	const char *layer; /* "network" */
	const char *what;  /* what `count` is the number of */
	uint64_t count;
	int exact; /* 0: it was that often or more */
	int said;  /* 1: only the program's own error output says so, which may be untrue */
};

struct gbx_result {
	size_t size;
	int status;           /* enum gbx_status */
	int cause;            /* enum gbx_cause */
	int exit_code;        /* what a shell would see: 0-255, 128+n for a signal */
	int signal;           /* that ended the program by itself; else 0 */
	uint64_t wall_us;     /* from the program's release to the death of its main process */
	uint64_t setup_us;    /* from the request to the release */
	uint64_t teardown_us; /* from that end until nothing can execute */
	uint64_t cpu_us, user_us, system_us;
	uint64_t throttled_us; /* time that the CPU limit held it back */
	uint64_t memory_peak_bytes;
	const char *memory_counter; /* the kernel file that the peak was read from */
	uint64_t pids_refused;      /* forks that the pids limit refused */
	uint64_t oom_kills;
	struct gbx_output out, err;
	char *json; /* the HTTP API's answer; only with GBX_WANT_JSON */
	/* What stood in the program's way, the one that matters most first. With GBX_NO_CAPTURE no
	 * output is dropped, and none counts as that. */
	struct gbx_denial *denials; /* denial_count of them; NULL without any */
	size_t denial_count;
	char *hint; /* one line: what happened and what to do; NULL without any. Without denials it
		       says what else is good to know: that the compiler has failed, for one */
	/* With on_artifact: 1 if it was told of all files; otherwise collecting them has failed, or
	 * was stopped, and there may be more. */
	int artifacts_complete;
	uint64_t artifacts_unnamed; /* left out beside those that it was told of: too many names */
	uint64_t collect_us;        /* from the verdict to the last of them */
};

/* One layer of the cage, as `glovebox doctor` shows it. The texts are borrowed for the
 * length of the call. */
struct gbx_layer {
	size_t size;
	const char *name;   /* NULL: advice about the host that belongs to no layer */
	int in_force;       /* 0 also when it was not tried */
	const char *why;    /* when not in force, or the advice */
	const char *lost;   /* what its absence costs; NULL for advice */
	const char *remedy; /* how to get it; NULL for advice */
	int tried;          /* 0: something else ended the look before, as the advice says */
};

typedef void (*gbx_layer_fn)(void *context, const struct gbx_layer *layer);

/* "1.2.3" */
GBX_API const char *gbx_version(void);

/* A constant text for a code that one of these functions returned. */
GBX_API const char *gbx_strerror(int code);

/* The API's words: "memory_exceeded", "oom_kill"; "unknown" outside the enum. */
GBX_API const char *gbx_status_word(int status);
GBX_API const char *gbx_cause_word(int cause);

/* Start a session and wait until it can run programs. `options` may be NULL for all
 * defaults, `error` may be NULL. -EPERM when rights are missing. */
GBX_API int gbx_open(const struct gbx_options *options, struct gbx_session **ret_session,
	struct gbx_error *error);

/* Run one program to its end. Fills *ret_result only on success; clear it afterwards.
 * -EINVAL: the request is wrong and nothing ran; -EAGAIN: nothing ran, try again;
 * -EPIPE: the session is lost, close it. */
GBX_API int gbx_run(struct gbx_session *session, const struct gbx_request *request,
	struct gbx_result *ret_result, struct gbx_error *error);

/* End the run in progress, if any; gbx_run() then returns its result with
 * GBX_CAUSE_CANCELLED. Async-signal-safe. */
GBX_API void gbx_cancel(struct gbx_session *session);

/* Free what gbx_run() put into *result; it can be used again. */
GBX_API void gbx_result_clear(struct gbx_result *result);

/* End the child and wait for it. NULL is fine. */
GBX_API void gbx_close(struct gbx_session *session);

/* Look at every layer of the cage on this host. Returns 1 when a session could be opened,
 * 0 when not, a negative errno when the look itself failed. */
GBX_API int gbx_doctor(const struct gbx_options *options, gbx_layer_fn on_layer, void *context,
	struct gbx_error *error);

#ifdef __cplusplus
}
#endif

#endif

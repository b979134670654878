/* The hidden roles of the one program, "@NAME" as the first argument. Each is the whole of a
 * process: it takes the descriptors that its starter put at fixed numbers and returns
 * the exit status. Declared here because the caller's zone includes no other zone's
 * headers.
 *
 *   runs in    a process of its own, from the first line of main()
 */
#pragma once

int role_supervisor(void);
int role_keeper(void); /* a library's supervisor that keeps ready cells */
int role_probe(void);
int role_front(void);
int role_config(void);

/* The verbs. `argv[0]` is what their messages begin with ("glovebox run"). */
int serve_main(int argc, char **argv) __attribute__((nonnull));
int run_main(int argc, char **argv) __attribute__((nonnull));
int doctor_main(int argc, char **argv) __attribute__((nonnull));
int image_main(int argc, char **argv) __attribute__((nonnull));
int selftest_main(int argc, char **argv) __attribute__((nonnull));

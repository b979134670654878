/* A control group of our own, asked of systemd.
 *
 * In a login session this process sits in a group that it shares with others, and what
 * systemd did not delegate it may rearrange at any time. A transient scope with
 * Delegate=yes is what systemd has for that: it is ours to divide, and goes when the last
 * process in it has ended.
 *
 *   runs in    the supervisor and the probe, before cgroup_tree_open()
 *   owns       nothing: the scope belongs to systemd
 *   blocks     some 50 ms; at most 10 s when systemd hangs
 *   trusts     /usr/bin/busctl, by fixed paths and with an empty environment
 */
#pragma once

struct fault;

/* Have this process moved into a delegated scope, if nothing less will do. `path` is
 * --cgroup or "". 0 also when there was no need; a refusal says what to do instead. */
int scope_enter(const char *path, struct fault *f) __attribute__((nonnull));

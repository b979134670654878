/* The config process: reads everything that an operator can write, confined, and hands the
 * supervisor one fixed-size struct or one sentence.
 *
 *   runs in    a process of its own, started by the supervisor; it ends with its answer
 *   owns       its descriptors: see enum config_fd
 *   blocks     while reading files
 *   trusts     nothing that it reads, and is not trusted: the supervisor checks again
 */
#pragma once

enum config_fd {
	CONFIG_FD_CHANNEL = 3,
	CONFIG_FD_OVERRIDES, /* records, see edge/config/parse.h */
	CONFIG_FD_FILE,      /* YAML, or /dev/null */
	CONFIG_FD_RUNTIMES, /* manifests (edge/config/languages.h), or /dev/null: only settings are checked */
	CONFIG_FD_PASSWD,
	CONFIG_FD_GROUP,
	CONFIG_FD_SUBUID
};

/* The exit status: 0 when CONFIG was sent, else 1. */
int role_config(void);

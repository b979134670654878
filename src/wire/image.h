/* An image of the store: a read-only root of its own for programs, kept as
 *
 *     STORE/NAME/root.squashfs   the files
 *     STORE/NAME/record          struct image_record, in fixed size
 *     STORE/NAME/inventory       what is installed in it, as text, to be shown
 *
 * The command line makes them and renames the folder into its place; the supervisor reads the
 * record, checks it, mounts the root, and hands the inventory to the front unread.
 *
 *   runs in    the command line, the process that reads archives, the supervisor
 *   trusts     nothing: image_record_fault() decides
 */
#pragma once

#include "base/fault.h"
#include "wire/limits.h"
#include "wire/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_ROOT_FILE      "root.squashfs"
#define IMAGE_RECORD_FILE    "record"
#define IMAGE_INVENTORY_FILE "inventory"

#define IMAGE_MAGIC      UINT32_C(0x33674967) /* "gIg3"; another layout has another one */
#define IMAGE_ARCH_MAX   16
#define IMAGE_DIGEST_MAX 32 /* SHA-256 */
#define IMAGE_AT_MAX     24

/* How the image's interpreter starts a program: what a runtime's manifest says of the host's. */
struct image_start {
	struct run_limits limits; /* its own defaults; a member that is 0: the server's */
	char main_file[RUNTIME_PATH_MAX];
	char argv[RUNTIME_ARGV_MAX][RUNTIME_PATH_MAX]; /* "" ends it */
	char env[RUNTIME_ENV_MAX][RUNTIME_PATH_MAX];   /* NAME=VALUE; "" ends it */
	char preload[SETTING_TEXT_MAX];                /* is_modules() */
	uint32_t full_proc;
	uint32_t warm; /* 1: its interpreter fits the agent of the host's: it could be a zygote */
};

struct image_record {
	uint32_t magic;
	uint32_t trusted; /* 1: root has said that its interpreter may run outside of cells */
	char name[IMAGE_NAME_MAX];
	char arch[IMAGE_ARCH_MAX];        /* as OCI names it: "amd64" */
	char at[IMAGE_AT_MAX];            /* when it was made, "2026-01-31T12:00:00Z" */
	uint8_t digest[IMAGE_DIGEST_MAX]; /* of root.squashfs */
	uint64_t bytes;                   /* its size */
	uint64_t unpacked_bytes, entries; /* what is in it */
	uint64_t inventory_bytes;         /* of the inventory */
	uint8_t inventory_digest[IMAGE_DIGEST_MAX];
	struct image_start start;
};

/* The inventory: a line with the version of the interpreter, or an empty one; then for each package
 * "NAME VERSION FROM", FROM one of dpkg, apk, python. Printable ASCII. */
#define IMAGE_INVENTORY_MAX (128u << 10)
#define IMAGE_PACKAGES_MAX  2048u

/* ---- Between the command line and the process that reads what others made ---- */

/* Who reads archives, and who packs what comes of them: of the default range, beside the config
 * process, because no settings are known. */
#define IMAGER_UID (CONFIG_UID + 1)
#define PACKER_UID (CONFIG_UID + 2)

/* Read the archive at IMAGE_FD_IN and write a clean tar of the root to IMAGE_FD_OUT. */
#define IMAGE_FD_CHANNEL 3
#define IMAGE_FD_IN      4 /* a file that can be sought */
#define IMAGE_FD_OUT     5

enum image_source {
	IMAGE_SOURCE_ARCHIVE, /* what `docker save` writes, or an OCI layout, as a tar */
	IMAGE_SOURCE_ROOT,    /* a tar of the root itself, as mmdebstrap makes it */
	IMAGE_SOURCE_MAX
};

struct msg_unpack {
	uint32_t source; /* enum image_source */
	uint32_t reserved;
	uint64_t bytes_max, entries_max; /* of all layers together, uncompressed */
	struct image_start wanted;       /* what is empty is chosen by what is in the image */
};

/* How far it is: pass 0 reads what there is, pass 1 writes it. */
struct msg_unpacking {
	uint32_t pass, layer, layers;
	uint32_t newest_s; /* pass 1: the date of what is newest in it, told before it is written */
	uint64_t bytes;    /* uncompressed, so far in this pass */
};

/* What was left out or changed, and is to be told. */
struct image_losses {
	uint32_t devices;    /* device nodes, sockets and pipes: left out */
	uint32_t set_ids;    /* files whose set-user-ID or set-group-ID bit was taken */
	uint32_t attributes; /* files whose capabilities or other attributes were taken */
	uint32_t variables;  /* of the environment: longer than fits, or too many */
	uint32_t packages;   /* that the inventory does not list */
};

/* A piece of the inventory, in their order; before UNPACKED. */
#define LISTED_MAX 4096
struct msg_listed {
	uint32_t len;
	char text[LISTED_MAX];
};

struct msg_unpacked {
	char arch[IMAGE_ARCH_MAX];
	uint64_t unpacked_bytes, entries;
	struct image_losses losses;
	struct image_start start;
};

/* The manifest at IMAGE_FD_IN: an image that is built of Debian's packages. */
#define PLAN_PACKAGES_MAX 64 /* "" ends them */
#define PLAN_PACKAGE_MAX  64
#define PLAN_WORD_MAX     32

struct msg_plan {
	char name[IMAGE_NAME_MAX];
	char suite[PLAN_WORD_MAX];   /* "": the host's own */
	char variant[PLAN_WORD_MAX]; /* of mmdebstrap */
	char packages[PLAN_PACKAGES_MAX][PLAN_PACKAGE_MAX];
	struct image_start start;
};

/* As Debian's policy has them (5.6.1): what no program takes for an option or a path. */
bool plan_package_is_valid(const char *name) __attribute__((nonnull));
/* Small letters, digits and '-', which is not the first. */
bool plan_word_is_valid(const char *word) __attribute__((nonnull));
/* The broken rule, or NULL when every text can be handed on. */
const char *plan_fault(const struct msg_plan *p) __attribute__((nonnull));

/* The SHA-256 of the file at IMAGE_FD_IN. */
struct msg_digest {
	uint8_t digest[IMAGE_DIGEST_MAX];
	uint64_t bytes;
};

/* The answer to whatever could not be done; the text is for the caller. */
struct msg_image_bad {
	struct fault fault;
};

/* The broken rule, or NULL when every number and text can be used. */
const char *image_record_fault(const struct image_record *r) __attribute__((nonnull));

/* May its interpreter be a zygote? That is a process of root's, so it is not enough that it fits. */
bool image_is_warm(const struct image_record *r) __attribute__((nonnull));

/* How to start programs in it, as the supervisor knows it of the host's runtime; no roots. */
void image_runtime(const struct image_record *r, struct runtime *ret) __attribute__((nonnull));

/* What a client has to know of it (wire/language.h). */
struct offer;
void image_offer(const struct image_record *r, struct offer *ret) __attribute__((nonnull));

/* Is that what an inventory may be? */
bool image_inventory_is_valid(const char *text, size_t len) __attribute__((nonnull));

/* What OCI calls the architecture that this program is built for. */
const char *image_host_arch(void);

#include "caller/image/uids.h"

#include "base/fault.h"
#include "base/own.h"
#include "wire/image.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>

static void fclose_p(FILE **file)
{
	if (*file)
		(void)fclose(*file);
}

static bool is_ours(unsigned long first, unsigned long last)
{
	return first <= PACKER_UID && last >= IMAGER_UID;
}

static bool passwd_names(FILE *file)
{
	const struct passwd *p;

	while ((p = fgetpwent(file)))
		if (is_ours(p->pw_uid, p->pw_uid) || is_ours(p->pw_gid, p->pw_gid))
			return true;
	return false;
}

/* "name:FIRST:COUNT", subuid(5). A line that is none names nobody. */
static bool subuid_names(FILE *file)
{
	cleanup_free char *line = NULL;
	unsigned long first, count;
	size_t room = 0;

	while (getline(&line, &room, file) >= 0)
		if (sscanf(line, "%*[^:]:%lu:%lu", &first, &count) == 2 && count > 0 &&
			is_ours(first, first + count - 1))
			return true;
	return false;
}

/* Read from the files, as the config process does (edge/config/ids.h): no NSS is loaded. */
int uids_are_ours(struct fault *f)
{
	static const struct {
		const char *path;
		bool (*names)(FILE *file);
	} files[] = { { "/etc/passwd", passwd_names }, { "/etc/subuid", subuid_names } };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		CLEANUP(fclose_p) FILE *file = fopen(files[i].path, "re");

		if (!file && errno != ENOENT)
			return fault_set(f, -errno, "%s", files[i].path);
		if (file && files[i].names(file))
			return fault_say(f, -EBUSY,
				"%s: gives one of the uids %d and %d to somebody; images are made "
				"as these, which must be nobody's: another uid or range has to "
				"take its place",
				files[i].path, IMAGER_UID, PACKER_UID);
	}
	return 0;
}

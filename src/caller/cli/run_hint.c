#include "caller/cli/run_hint.h"

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A hint says what to do in the API's words. Here that is an option, if there is one. */
static void put_in_own_words(FILE *f, const char *text)
{
	static const struct {
		const char *api, *own;
	} words[] = {
		{ "timeout_seconds", "--timeout" },
		{ "memory_limit_mb", "--memory" },
		{ "cpu_limit", "--cpu" },
		{ "pids_limit", "--pids" },
		{ "workspace_inodes of GET /limits", "the setting workspace-inodes" },
		{ ", or set allow_network, which a server refuses where fixed.network of GET "
		  "/limits is "
		  "false",
			", or give it one (--allow-network)" },
		{ "the most that this server gives", "the most that the settings allow" },
		{ "GET /runtimes lists the packages that are there",
			"an image may have it (--image)" },
	};

	while (*text) {
		size_t i = 0;

		while (i < ARRAY_LEN(words) &&
			strncmp(text, words[i].api, strlen(words[i].api)) != 0)
			i++;
		(void)fputs(i < ARRAY_LEN(words) ? words[i].own : (char[]){ *text, '\0' }, f);
		text += i < ARRAY_LEN(words) ? strlen(words[i].api) : 1;
	}
}

static void put_denials(FILE *f, const struct gbx_result *result)
{
	(void)fputs(" [", f);
	for (size_t i = 0; i < result->denial_count; i++) {
		const struct gbx_denial *d = &result->denials[i];

		(void)fprintf(f, "%s%s, ", i > 0 ? "; " : "", d->layer);
		put_in_own_words(f, d->what);
		(void)fprintf(
			f, ": %s%llu", d->exact ? "" : "at least ", (unsigned long long)d->count);
	}
	(void)fputs("]", f);
}

/* What the name of the program's file says of its language, which nobody else does. */
static const char *language_of(const char *file)
{
	static const char *const list[][2] = { { ".sh", "bash" }, { ".js", "javascript" },
		{ ".mjs", "javascript" }, { ".ts", "typescript" }, { ".rb", "ruby" },
		{ ".pl", "perl" }, { ".lua", "lua" }, { ".php", "php" }, { ".c", "c" },
		{ ".cpp", "cpp" }, { ".go", "go" }, { ".rs", "rust" }, { ".java", "java" } };
	const char *suffix = strrchr(file, '.');

	for (size_t i = 0; suffix && i < ARRAY_LEN(list); i++)
		if (strcmp(suffix, list[i][0]) == 0)
			return list[i][1];
	return NULL;
}

/* The program was taken for Python, and has failed: was it meant to be? */
static void put_slip(
	FILE *f, const char *file, const struct gbx_request *q, const struct gbx_result *result)
{
	const char *language = language_of(file);
	bool behind = false;

	if (q->language || q->image || result->cause != GBX_CAUSE_EXIT || result->exit_code == 0)
		return;
	for (size_t i = 0; q->args && q->args[i]; i++)
		behind = behind || strncmp(q->args[i], "--language", strlen("--language")) == 0 ||
			 strncmp(q->args[i], "--image", strlen("--image")) == 0;
	if (behind)
		(void)fprintf(f,
			"glovebox: hint: --language and --image go before %s; what follows it is "
			"the program's own\n",
			file);
	else if (language)
		(void)fprintf(f,
			"glovebox: hint: %s was run as Python; --language %s runs it as that\n",
			file, language);
}

static void put_hint(FILE *f, const struct gbx_result *result)
{
	(void)fputs("glovebox: hint: ", f);
	put_in_own_words(f, result->hint);
	if (result->denial_count > 0)
		put_denials(f, result);
	(void)fputc('\n', f);
}

char *run_hint_make(const char *file, const struct gbx_request *q, const struct gbx_result *result)
{
	char *line = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&line, &len);

	if (!f)
		return NULL;
	/* Not behind what a compiler has just said itself. */
	if (result->hint && result->cause != GBX_CAUSE_COMPILE)
		put_hint(f, result);
	else
		put_slip(f, file, q, result);
	if (fclose(f) == 0 && len > 0)
		return line;
	free(line);
	return NULL;
}

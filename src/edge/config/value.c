#include "edge/config/value.h"

#include "base/check.h"
#include "base/log.h"
#include "base/quantity.h"
#include "wire/layer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *value_expectation(enum value_type type)
{
	static const char *const texts[] = {
		[VALUE_SIZE] = "a size such as 64M or 1.5G",
		[VALUE_COUNT] = "a whole number without leading zeros",
		[VALUE_DURATION] = "a duration such as 3, 1.5s or 200ms",
		[VALUE_CPUS] = "a number of CPUs such as 2 or 0.5",
		[VALUE_BOOL] = "true or false",
		[VALUE_SWITCH] = "off, on or auto",
		[VALUE_RULES] = "a rule for the network",
		[VALUE_TEXT] = "an absolute path without \"..\"",
		[VALUE_MODULES] = "names of modules with commas between them",
		[VALUE_IMAGE] = "the name of an image: letters, digits, -, _ and .",
		[VALUE_LAYER_SET] = "a layer of the cage (`glovebox doctor` lists them)",
		[VALUE_LISTEN] = "ADDR:PORT (127.0.0.1:8000), [ADDR6]:PORT or unix:/PATH",
		[VALUE_LEVEL] = "err, warn, info or debug",
	};

	CHECK((size_t)type < ARRAY_LEN(texts));
	return texts[type];
}

bool value_is_number(enum value_type type)
{
	return type != VALUE_TEXT && type != VALUE_MODULES && type != VALUE_IMAGE &&
	       type != VALUE_LAYER_SET && type != VALUE_RULES && type != VALUE_LISTEN;
}

static int parse_level(const char *text, uint64_t *ret)
{
	enum log_level level;

	if (!log_level_parse(text, &level))
		return -EINVAL;
	*ret = level;
	return 0;
}

static int parse_switch(const char *text, uint64_t *ret)
{
	static const struct {
		const char *word;
		enum setting_switch is;
	} words[] = { { "off", SWITCH_OFF }, { "false", SWITCH_OFF }, { "on", SWITCH_ON },
		{ "true", SWITCH_ON }, { "auto", SWITCH_AUTO } };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcmp(words[i].word, text) == 0) {
			*ret = words[i].is;
			return 0;
		}
	}
	return -EINVAL;
}

int value_parse_number(enum value_type type, const char *text, uint64_t *ret)
{
	bool yes;
	int r;

	CHECK(value_is_number(type));
	if (type == VALUE_SIZE)
		return quantity_size(text, ret);
	if (type == VALUE_COUNT)
		return quantity_count(text, ret);
	if (type == VALUE_DURATION)
		return quantity_duration(text, ret);
	if (type == VALUE_CPUS)
		return quantity_cpus(text, ret);
	if (type == VALUE_LEVEL)
		return parse_level(text, ret);
	if (type == VALUE_SWITCH)
		return parse_switch(text, ret);
	r = quantity_bool(text, &yes);
	if (r == 0)
		*ret = yes;
	return r;
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

bool value_is_path(const char *text)
{
	size_t len = strlen(text);

	if (text[0] != '/' || !is_printable(text) || strstr(text, "/../"))
		return false;
	return len < 3 || strcmp(text + len - 3, "/..") != 0;
}

int value_parse_layers(const char *text, uint64_t *ret)
{
	uint64_t set = 0;
	char word[64];

	while (*text) {
		size_t len = strcspn(text, ",");
		enum layer layer;

		if (len >= sizeof(word))
			return -EINVAL;
		memcpy(word, text, len);
		word[len] = '\0';
		layer = layer_by_word(word);
		if (layer == LAYER_MAX)
			return -EINVAL;
		set |= LAYER_BIT(layer);
		text += len;
		if (*text == ',' && *++text == '\0')
			return -EINVAL; /* a comma promises one more */
	}
	*ret = set;
	return 0;
}

static int parse_port(const char *text, uint32_t *ret)
{
	uint64_t port;

	if (quantity_count(text, &port) < 0 || port > UINT16_MAX)
		return -EINVAL;
	*ret = (uint32_t)port;
	return 0;
}

static int parse_unix(const char *path, struct listen_address *ret)
{
	size_t len = strlen(path);

	if (!value_is_path(path) || len < 2 || len >= sizeof(ret->path))
		return -EINVAL;
	ret->kind = LISTEN_UNIX;
	memcpy(ret->path, path, len + 1);
	return 0;
}

/* The address in front of the last colon, without its brackets. */
static int parse_ip(const char *text, size_t len, struct listen_address *ret)
{
	bool six = len > 2 && text[0] == '[' && text[len - 1] == ']';
	char host[INET6_ADDRSTRLEN];

	if (six) {
		text++;
		len -= 2;
	}
	if (len == 0 || len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	ret->kind = six ? LISTEN_INET6 : LISTEN_INET;
	/* The one name, because everybody types it; nothing is ever looked up. */
	if (!six && strcmp(host, "localhost") == 0)
		memcpy(host, "127.0.0.1", sizeof("127.0.0.1"));
	return inet_pton(six ? AF_INET6 : AF_INET, host, ret->ip) == 1 ? 0 : -EINVAL;
}

int value_parse_listen(const char *text, struct listen_address *ret)
{
	struct listen_address a = { 0 };
	const char *colon;
	int r;

	if (strncmp(text, "unix:", 5) == 0) {
		r = parse_unix(text + 5, &a);
	} else {
		colon = strrchr(text, ':');
		if (!colon || parse_port(colon + 1, &a.port) < 0)
			return -EINVAL;
		r = parse_ip(text, (size_t)(colon - text), &a);
	}
	if (r == 0)
		*ret = a;
	return r;
}

static void format_size(uint64_t n, char *room, size_t len)
{
	static const char letters[] = "KMGT";
	size_t i = 0;

	if (n == 0 || n % 1024 != 0) {
		(void)snprintf(room, len, "%llu", (unsigned long long)n);
		return;
	}
	for (n /= 1024; n % 1024 == 0 && letters[i + 1]; n /= 1024)
		i++;
	(void)snprintf(room, len, "%llu%c", (unsigned long long)n, letters[i]);
}

static void format_duration(uint64_t us, char *room, size_t len)
{
	if (us % 1000000 == 0)
		(void)snprintf(room, len, "%llus", (unsigned long long)(us / 1000000));
	else if (us % 1000 == 0)
		(void)snprintf(room, len, "%llums", (unsigned long long)(us / 1000));
	else
		(void)snprintf(room, len, "%lluus", (unsigned long long)us);
}

static void format_cpus(uint64_t milli, char *room, size_t len)
{
	int n = snprintf(room, len, "%llu.%03llu", (unsigned long long)(milli / 1000),
		(unsigned long long)(milli % 1000));

	while (n > 0 && (size_t)n < len && room[n - 1] == '0')
		room[--n] = '\0';
	if (n > 0 && room[n - 1] == '.')
		room[n - 1] = '\0';
}

const char *value_format(enum value_type type, uint64_t value, char room[static VALUE_TEXT_MAX])
{
	if (type == VALUE_SIZE)
		format_size(value, room, VALUE_TEXT_MAX);
	else if (type == VALUE_DURATION)
		format_duration(value, room, VALUE_TEXT_MAX);
	else if (type == VALUE_CPUS)
		format_cpus(value, room, VALUE_TEXT_MAX);
	else
		(void)snprintf(room, VALUE_TEXT_MAX, "%llu", (unsigned long long)value);
	return room;
}

const char *value_quote(const char *text, char room[static VALUE_QUOTE_MAX])
{
	size_t len = strnlen(text, VALUE_QUOTE_MAX);
	bool clipped = len >= VALUE_QUOTE_MAX;

	if (clipped)
		len = VALUE_QUOTE_MAX - 1;
	for (size_t i = 0; i < len; i++)
		room[i] = text[i] >= ' ' && text[i] < 0x7f ? text[i] : '?';
	room[len] = '\0';
	if (clipped)
		memcpy(room + VALUE_QUOTE_MAX - 4, "...", 4);
	return room;
}

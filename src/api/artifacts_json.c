/* What a run has left, in the API's words. */
#include "api/artifacts.h"

#include "api/text.h"
#include "api/writer.h"
#include "base/check.h"

#include <string.h>
#include <strings.h>

/* The types that programs leave, as shared-mime-info and the IANA have them. */
static const struct {
	const char *extension, *mime;
} types[] = {
	{ "avif", "image/avif" },
	{ "bmp", "image/bmp" },
	{ "bz2", "application/x-bzip2" },
	{ "c", "text/x-c" },
	{ "css", "text/css" },
	{ "csv", "text/csv" },
	{ "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
	{ "gif", "image/gif" },
	{ "gz", "application/gzip" },
	{ "htm", "text/html" },
	{ "html", "text/html" },
	{ "ico", "image/vnd.microsoft.icon" },
	{ "ipynb", "application/x-ipynb+json" },
	{ "jpeg", "image/jpeg" },
	{ "jpg", "image/jpeg" },
	{ "js", "text/javascript" },
	{ "json", "application/json" },
	{ "log", "text/plain" },
	{ "md", "text/markdown" },
	{ "mjs", "text/javascript" },
	{ "mp3", "audio/mpeg" },
	{ "mp4", "video/mp4" },
	{ "npy", "application/x-npy" },
	{ "ods", "application/vnd.oasis.opendocument.spreadsheet" },
	{ "odt", "application/vnd.oasis.opendocument.text" },
	{ "ogg", "audio/ogg" },
	{ "parquet", "application/vnd.apache.parquet" },
	{ "pdf", "application/pdf" },
	{ "png", "image/png" },
	{ "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
	{ "py", "text/x-python" },
	{ "rtf", "application/rtf" },
	{ "sh", "application/x-sh" },
	{ "sqlite", "application/vnd.sqlite3" },
	{ "svg", "image/svg+xml" },
	{ "tar", "application/x-tar" },
	{ "tif", "image/tiff" },
	{ "tiff", "image/tiff" },
	{ "toml", "application/toml" },
	{ "ts", "text/plain" },
	{ "tsv", "text/tab-separated-values" },
	{ "txt", "text/plain" },
	{ "wasm", "application/wasm" },
	{ "wav", "audio/wav" },
	{ "webm", "video/webm" },
	{ "webp", "image/webp" },
	{ "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
	{ "xml", "application/xml" },
	{ "xz", "application/x-xz" },
	{ "yaml", "application/yaml" },
	{ "yml", "application/yaml" },
	{ "zip", "application/zip" },
	{ "zst", "application/zstd" },
};

const char *artifacts_mime(const char *path, size_t len)
{
	size_t begin = len;

	while (begin > 0 && path[begin - 1] != '.' && path[begin - 1] != '/')
		begin--;
	if (begin > 0 && path[begin - 1] == '.') {
		for (size_t i = 0; i < ARRAY_LEN(types); i++) {
			if (strlen(types[i].extension) == len - begin &&
				strncasecmp(types[i].extension, path + begin, len - begin) == 0)
				return types[i].mime;
		}
	}
	return "application/octet-stream";
}

/* A name is bytes. */
static void put_path(struct writer *w, const char *path, size_t len)
{
	writer_text_begin(w, "path");
	writer_text(w, path, len);
	writer_text_end(w);
	if (utf8_valid(path, len) < len)
		writer_base64(w, "path_base64", path, len, "", 0);
}

static void put_sha256(struct writer *w, const unsigned char *digest)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * SHA256_DIGEST_SIZE + 1];

	for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++) {
		text[2 * i] = digits[digest[i] >> 4];
		text[2 * i + 1] = digits[digest[i] & 15];
	}
	text[sizeof(text) - 1] = '\0';
	writer_string(w, "sha256", text);
}

static void put_content(struct writer *w, const struct artifact *a)
{
	bool is_text;

	if (!a->content) {
		writer_null(w, "encoding");
		writer_null(w, "content");
		return;
	}
	is_text = utf8_valid(a->content, a->size) == a->size;
	writer_string(w, "encoding", is_text ? "utf8" : "base64");
	if (!is_text) {
		writer_base64(w, "content", a->content, a->size, "", 0);
		return;
	}
	writer_text_begin(w, "content");
	writer_text(w, a->content, a->size);
	writer_text_end(w);
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~/", c));
}

/* Where it can be had: each byte that a path of a URL does not take as it is as %XX. */
static void put_href(struct writer *w, const struct artifact *a, const char *id)
{
	static const char digits[] = "0123456789ABCDEF";

	if (!id || !a->kept) {
		writer_null(w, "href");
		return;
	}
	writer_text_begin(w, "href");
	writer_text(w, "/executions/", strlen("/executions/"));
	writer_text(w, id, strlen(id));
	writer_text(w, "/files/", strlen("/files/"));
	for (size_t i = 0; i < a->path_len; i++) {
		unsigned char c = (unsigned char)a->path[i];
		const char escaped[3] = { '%', digits[c >> 4], digits[c & 15] };

		if (is_unreserved(a->path[i]))
			writer_text(w, &a->path[i], 1);
		else
			writer_text(w, escaped, sizeof(escaped));
	}
	writer_text_end(w);
}

static void put_file(struct writer *w, const struct artifact *a, const char *id)
{
	writer_object(w, NULL);
	put_path(w, a->path, a->path_len);
	writer_u64(w, "size", a->size);
	writer_string(w, "mime", artifacts_mime(a->path, a->path_len));
	put_sha256(w, a->sha256);
	put_content(w, a);
	put_href(w, a, id);
	writer_close(w);
}

void artifacts_put(struct writer *w, const struct artifacts_list *l, const char *id)
{
	writer_array(w, "files");
	for (size_t i = 0; l && i < l->count; i++)
		put_file(w, &l->files[i], id);
	writer_close(w);
	writer_array(w, "skipped");
	for (size_t i = 0; l && i < l->skipped_count; i++) {
		writer_object(w, NULL);
		put_path(w, l->skipped[i].path, l->skipped[i].path_len);
		writer_u64(w, "size", l->skipped[i].size);
		writer_string(w, "reason", files_reason_word(l->skipped[i].why));
		writer_close(w);
	}
	writer_close(w);
}

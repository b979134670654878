#include "http_cases.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define ROW(name, bytes, want) { name, bytes, sizeof(bytes) - 1, "", 0, "", want }
#define BIG(name, bytes, fill, times, tail, want) \
	{ name, bytes, sizeof(bytes) - 1, fill, times, tail, want }

#define GET     "GET /health HTTP/1.1\r\nHost: x\r\n"
#define POST    "POST /execute HTTP/1.1\r\nHost: x\r\n"
#define J       "{\"code\":\"x\"}" /* 12 bytes */
#define J_CHUNK "c\r\n" J "\r\n0\r\n\r\n"
#define TE      "Transfer-Encoding: chunked\r\n"
#define NEXT    GET "\r\n"

/* What is wanted: "P" stands for `POST /execute` with the body J, "G" for `GET /health`
 * without one, "x" for the end of the connection after the request before it; a number is
 * the status of the refusal. Everything else is spelt out as `METHOD TARGET LENGTH`. */
const struct http_case http_cases[] = {
	/* Two lengths, or one that is not a number. */
	ROW("content-length and transfer-encoding", POST "Content-Length: 12\r\n" TE "\r\n" J_CHUNK, "400"),
	ROW("transfer-encoding and content-length", POST TE "Content-Length: 12\r\n\r\n" J_CHUNK, "400"),
	ROW("same length twice", POST "Content-Length: 12\r\nContent-Length: 12\r\n\r\n" J, "400"),
	ROW("two lengths", POST "Content-Length: 12\r\nContent-Length: 13\r\n\r\n" J, "400"),
	ROW("two lengths, the small one first", POST "Content-Length: 2\r\nContent-Length: 12\r\n\r\n" J, "400"),
	ROW("list of lengths", POST "Content-Length: 12, 12\r\n\r\n" J, "400"),
	ROW("length -1", POST "Content-Length: -1\r\n\r\n" J, "400"),
	ROW("length +12", POST "Content-Length: +12\r\n\r\n" J, "400"),
	ROW("length 0xc", POST "Content-Length: 0xc\r\n\r\n" J, "400"),
	ROW("length 1 2", POST "Content-Length: 1 2\r\n\r\n" J, "400"),
	ROW("length 12abc", POST "Content-Length: 12abc\r\n\r\n" J, "400"),
	ROW("empty length", POST "Content-Length:\r\n\r\n" J, "400"),
	ROW("length of 20 nines", POST "Content-Length: 99999999999999999999\r\n\r\n" J, "400"),
	ROW("length 2^64 + 12", POST "Content-Length: 18446744073709551628\r\n\r\n" J, "400"),
	ROW("length 2^63", POST "Content-Length: 9223372036854775808\r\n\r\n" J, "400"),
	ROW("length of 18 digits", POST "Content-Length: 999999999999999999\r\n\r\n" J, "413"),
	ROW("VT before the length", POST "Content-Length: \v12\r\n\r\n" J, "400"),
	ROW("white space around the length", POST "Content-Length: \t 12 \t\r\n\r\n" J, "P"),
	ROW("leading zeros in the length", POST "Content-Length: 000012\r\n\r\n" J, "P"),
	ROW("length 0", POST "Content-Length: 0\r\n\r\n" NEXT, "POST /execute 0|G"),

	/* Transfer-Encoding: the one word that is understood. */
	ROW("coding gzip", POST "Transfer-Encoding: gzip\r\n\r\n" J, "501"),
	ROW("coding xchunked", POST "Transfer-Encoding: xchunked\r\n\r\n" J_CHUNK, "501"),
	ROW("coding xchunked and a length", POST "Transfer-Encoding: xchunked\r\nContent-Length: 12\r\n\r\n" J, "501"),
	ROW("coding identity and a length", POST "Transfer-Encoding: identity\r\nContent-Length: 12\r\n\r\n" J, "501"),
	ROW("codings chunked, identity", POST "Transfer-Encoding: chunked, identity\r\n\r\n" J_CHUNK, "501"),
	ROW("codings gzip, chunked", POST "Transfer-Encoding: gzip, chunked\r\n\r\n" J_CHUNK, "501"),
	ROW("coding in two fields", POST TE "Transfer-Encoding: identity\r\n\r\n" J_CHUNK, "400"),
	ROW("coding twice", POST TE TE "\r\n" J_CHUNK, "400"),
	ROW("VT before the coding", POST "Transfer-Encoding: \vchunked\r\n\r\n" J_CHUNK, "400"),
	ROW("quoted coding", POST "Transfer-Encoding: \"chunked\"\r\n\r\n" J_CHUNK, "501"),
	ROW("empty coding", POST "Transfer-Encoding:\r\n\r\n" J_CHUNK, "501"),
	ROW("folded coding", POST "Transfer-Encoding:\r\n chunked\r\n\r\n" J_CHUNK, "501"),
	ROW("space before the coding's colon", POST "Transfer-Encoding : chunked\r\n\r\n" J_CHUNK, "400"),
	ROW("space before the coding's colon, and a length", POST "Transfer-Encoding : chunked\r\nContent-Length: 12\r\n\r\n" J, "400"),
	ROW("chunked in HTTP/1.0", "POST /execute HTTP/1.0\r\nHost: x\r\n" TE "\r\n" J_CHUNK, "400"),
	ROW("CHUNKED in capitals", POST "TRANSFER-ENCODING: CHUNKED\r\n\r\n" J_CHUNK, "P"),

	/* Chunks. */
	ROW("valid chunks", POST TE "\r\n5\r\n{\"cod\r\n7\r\ne\":\"x\"}\r\n0\r\n\r\n" NEXT, "P|G"),
	ROW("size in capitals and with zeros", POST TE "\r\n0000000C\r\n" J "\r\n00\r\n\r\n", "P"),
	ROW("chunk extension", POST TE "\r\nc;a=b\r\n" J "\r\n0\r\n\r\n", "400"),
	ROW("chunk trailer", POST TE "\r\nc\r\n" J "\r\n0\r\nX: y\r\n\r\n", "400"),
	ROW("chunk size -1", POST TE "\r\n-1\r\n" J "\r\n0\r\n\r\n", "400"),
	ROW("chunk size +c", POST TE "\r\n+c\r\n" J "\r\n0\r\n\r\n", "400"),
	ROW("chunk size 0xc", POST TE "\r\n0xc\r\n" J "\r\n0\r\n\r\n", "400"),
	ROW("space before the chunk size", POST TE "\r\n c\r\n" J "\r\n0\r\n\r\n", "400"),
	ROW("space behind the chunk size", POST TE "\r\nc \r\n" J "\r\n0\r\n\r\n", "400"),
	ROW("chunk size c xyz", POST TE "\r\nc xyz\r\n" J "\r\n0\r\n\r\n", "400"),
	ROW("chunk size of 17 F", POST TE "\r\nFFFFFFFFFFFFFFFFF\r\n" J "\r\n0\r\n\r\n", "400"),
	ROW("chunk size 2^64 + 12", POST TE "\r\n1000000000000000c\r\n" J "\r\n0\r\n\r\n", "400"),
	ROW("chunk size of 8 F", POST TE "\r\nFFFFFFFF\r\n" J, "413"),
	ROW("empty chunk size", POST TE "\r\n\r\n" J "\r\n0\r\n\r\n", "400"),
	ROW("chunk size xyz", POST TE "\r\nxyz\r\n" J "\r\n0\r\n\r\n", "400"),
	ROW("bare LF behind the chunk size", POST TE "\r\nc\n" J "\r\n0\r\n\r\n", "400"),
	ROW("bare CR behind the chunk size", POST TE "\r\nc\r" J "\r\n0\r\n\r\n", "400"),
	ROW("space and LF behind the chunk size", POST TE "\r\nc \n" J "\r\n0\r\n\r\n", "400"),
	ROW("x and LF behind chunk data", POST TE "\r\nc\r\n" J "x\n0\r\n\r\n", "400"),
	ROW("x and LF at the end of chunks", POST TE "\r\nc\r\n" J "\r\n0\r\nx\n", "400"),
	ROW("CR and x at the end of chunks", POST TE "\r\nc\r\n" J "\r\n0\r\n\rx", "400"),
	ROW("CR and x behind chunk data", POST TE "\r\nc\r\n" J "\rx0\r\n\r\n", "400"),
	ROW("chunk data that goes on", POST TE "\r\nc\r\n" J "xx\r\n0\r\n\r\n", "400"),
	ROW("chunk data without line end", POST TE "\r\nc\r\n" J "0\r\n\r\n", "400"),
	ROW("bare LF behind chunk data", POST TE "\r\nc\r\n" J "\n0\r\n\r\n", "400"),
	ROW("chunk extension with bare LF", POST TE "\r\nc;a\n" J "\r\n0\r\n\r\n", "400"),
	ROW("bare LF at the end of chunks", POST TE "\r\nc\r\n" J "\r\n0\r\n\n", "400"),

	/* Lines and fields. */
	ROW("folded header", GET "X: a\r\n b\r\n\r\n", "400"),
	ROW("NUL in a value", GET "X: a\0b\r\n\r\n", "400"),
	ROW("NUL in a name", GET "X\0Y: a\r\n\r\n", "400"),
	ROW("bare CR in a value", GET "X: a\rb\r\n\r\n", "400"),
	ROW("control byte in a value", GET "X: a\001b\r\n\r\n", "400"),
	ROW("DEL in a value", GET "X: a\177b\r\n\r\n", "400"),
	ROW("tab and high bytes in a value", GET "X: a\tb \303\251\r\n\r\n", "G"),
	ROW("space before the colon", GET "X : a\r\n\r\n", "400"),
	ROW("space inside a name", GET "X Y: a\r\n\r\n", "400"),
	ROW("high byte in a name", GET "X\351: a\r\n\r\n", "400"),
	ROW("no colon", GET "Xa\r\n\r\n", "400"),
	ROW("empty name", GET ": a\r\n\r\n", "400"),
	ROW("empty value", GET "X:\r\nY: \t\r\n\r\n", "G"),
	ROW("CR CR LF", GET "X: a\r\r\n\r\n", "400"),
	ROW("header behind a bare CR", "GET /health HTTP/1.1\r\nX: a\rHost: y\r\n\r\n", "400"),
	ROW("leading space on the first header", "GET /health HTTP/1.1\r\n Host: x\r\n\r\n", "400"),
	ROW("bare LF line ends", "GET /health HTTP/1.1\nHost: x\n\n", "400"),
	ROW("bare LF at the end of the head", GET "\n", "400"),

	/* Host. */
	ROW("no Host", "GET /health HTTP/1.1\r\n\r\n", "400"),
	ROW("two Hosts", GET "Host: y\r\n\r\n", "400"),
	ROW("same Host twice", GET "host: x\r\n\r\n", "400"),
	ROW("Host a, b", "GET /health HTTP/1.1\r\nHost: a, b\r\n\r\n", "400"),
	ROW("Host a b", "GET /health HTTP/1.1\r\nHost: a b\r\n\r\n", "400"),
	ROW("Host x@y/z", "GET /health HTTP/1.1\r\nHost: x@y/z\r\n\r\n", "400"),
	ROW("Host with a port", "GET /health HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n", "G"),

	/* The request line. */
	ROW("absolute target", "GET http://x/health HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("HTTP/1.0", "GET /health HTTP/1.0\r\nHost: x\r\n\r\n", "G|x"),
	ROW("HTTP/1.0 without Host", "GET /health HTTP/1.0\r\n\r\n", "G|x"),
	ROW("HTTP/1.0 with two Hosts", "GET /health HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n", "400"),
	ROW("HTTP/1.0 keep-alive", "GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" NEXT, "G|G"),
	ROW("HTTP/0.9", "GET /health\r\n", "400"),
	ROW("HTTP/2.0", "GET /health HTTP/2.0\r\nHost: x\r\n\r\n", "505"),
	ROW("HTTP/0.9 in words", "GET /health HTTP/0.9\r\nHost: x\r\n\r\n", "505"),
	ROW("HTTP/1.2", "GET /health HTTP/1.2\r\nHost: x\r\n\r\n", "505"),
	ROW("HTTP/1.10", "GET /health HTTP/1.10\r\nHost: x\r\n\r\n", "400"),
	ROW("http/1.1 in small letters", "GET /health http/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("HTTP/01.1", "GET /health HTTP/01.1\r\nHost: x\r\n\r\n", "400"),
	ROW("HTTP/1.1x", "GET /health HTTP/1.1x\r\nHost: x\r\n\r\n", "400"),
	ROW("two spaces", "GET  /health HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("two spaces before the version", "GET /health  HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("space behind the version", "GET /health HTTP/1.1 \r\nHost: x\r\n\r\n", "400"),
	ROW("tabs as separators", "GET\t/health\tHTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("space in the target", "GET /hea lth HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("NUL in the target", "GET /health\0 HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("tab in the target", "GET /hea\tlth HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("high bytes in the target", "GET /h\303\251 HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("%00 stays as it is", "GET /health%00 HTTP/1.1\r\nHost: x\r\n\r\n", "GET /health%00 0"),
	ROW("%zz stays as it is", "GET /health%zz HTTP/1.1\r\nHost: x\r\n\r\n", "GET /health%zz 0"),
	ROW("escapes are not decoded", "GET /%68ealth HTTP/1.1\r\nHost: x\r\n\r\n", "GET /%68ealth 0"),
	ROW("dots are not resolved", "GET /x/../health HTTP/1.1\r\nHost: x\r\n\r\n", "GET /x/../health 0"),
	ROW("slashes are not merged", "GET //health HTTP/1.1\r\nHost: x\r\n\r\n", "GET //health 0"),
	ROW("query", "GET /health?a=b?c HTTP/1.1\r\nHost: x\r\n\r\n", "GET /health?a=b?c 0"),
	ROW("method in small letters is another", "get /health HTTP/1.1\r\nHost: x\r\n\r\n", "get /health 0"),
	ROW("unknown method", "FOO /health HTTP/1.1\r\nHost: x\r\n\r\n", "FOO /health 0"),
	ROW("method that is no token", "G(T /health HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("no method", " /health HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("HEAD", "HEAD /health HTTP/1.1\r\nHost: x\r\n\r\n", "HEAD /health 0"),
	ROW("OPTIONS", "OPTIONS /health HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS /health 0"),
	ROW("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("CONNECT", "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("CONNECT with a path", "CONNECT /health HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
	ROW("TRACE", "TRACE /health HTTP/1.1\r\nHost: x\r\n\r\n", "TRACE /health 0"),
	ROW("leading empty line", "\r\n" NEXT, "400"),
	ROW("TLS hello", "\026\003\001\002\000\001\000\001\374\003\003", "400"),
	ROW("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),

	/* Several requests in one go. */
	ROW("three requests", NEXT NEXT NEXT, "G|G|G"),
	ROW("POST, then GET", POST "Content-Length: 12\r\n\r\n" J NEXT, "P|G"),
	ROW("GET with a body, then GET", GET "Content-Length: 12\r\n\r\n" J NEXT, "GET /health 12|G"),
	ROW("unknown path with a body, then GET", "POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n" J NEXT, "POST /nope 12|G"),
	ROW("wrong method, then GET", "GET /execute HTTP/1.1\r\nHost: x\r\n\r\n" NEXT, "GET /execute 0|G"),
	ROW("a refusal ends the stream", NEXT "GET /\r\n\r\n" NEXT, "G|400"),

	/* Expect and Connection. */
	ROW("Expect: 100-continue", POST "Expect: 100-Continue\r\nContent-Length: 12\r\n\r\n" J, "P"),
	ROW("Expect: foo", POST "Expect: foo\r\nContent-Length: 12\r\n\r\n" J, "417"),
	ROW("POST without a length", POST "\r\n" NEXT, "POST /execute 0|G"),
	ROW("Connection: close", GET "Connection: close\r\n\r\n" NEXT, "G|x"),
	ROW("Connection: keep-alive, close", GET "Connection: keep-alive, close\r\n\r\n" NEXT, "G|x"),
	ROW("close in a second Connection", GET "Connection: keep-alive\r\nConnection: ,CLOSE ,\r\n\r\n" NEXT, "G|x"),
	ROW("Connection: closed is not close", GET "Connection: closed, xclose\r\n\r\n" NEXT, "G|G"),
	ROW("HTTP/1.0 keep-alive, close", "GET /health HTTP/1.0\r\nConnection: close, keep-alive\r\n\r\n" NEXT, "G|x"),

	/* Too much of something. */
	BIG("header of 1 MB", GET "X: ", "a", 1000000, "\r\n\r\n", "431"),
	BIG("5000 headers", GET, "X: y\r\n", 5000, "\r\n", "431"),
	BIG("64 headers", GET, "X: y\r\n", 63, "\r\n", "G"),
	BIG("65 headers", GET, "X: y\r\n", 64, "\r\n", "431"),
	BIG("head of 16,384 bytes", GET "X: ", "a", 16384 - (sizeof(GET "X: ") - 1) - 4, "\r\n\r\n", "G"),
	BIG("head of 16,385 bytes", GET "X: ", "a", 16385 - (sizeof(GET "X: ") - 1) - 4, "\r\n\r\n", "431"),
	BIG("target of 64 KB", "GET /", "a", 65536, " HTTP/1.1\r\nHost: x\r\n\r\n", "414"),
	BIG("request line of 8,193 bytes", "GET /", "a", 8193 - 5 - 11, " HTTP/1.1\r\nHost: x\r\n\r\n", "414"),
	BIG("1 MB without a line end", "", "a", 1000000, "", "414"),
	BIG("body of 10 MB", POST "Content-Length: 10485760\r\n\r\n", "a", 10485760, "", "413"),
	BIG("body of 10 MB in chunks", POST TE "\r\n", "400\r\n"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
		10240, "0\r\n\r\n", "413"),
	BIG("body that just fits, in chunks of one byte", POST TE "\r\n", "1\r\na\r\n", 65536, "0\r\n\r\n", "POST /execute 65536"),
	BIG("chunk-size line of 2 MB", POST TE "\r\nc;", "a", 2000000, "\r\n" J "\r\n0\r\n\r\n", "400"),
	BIG("2 MB of zeros before a chunk size", POST TE "\r\n", "0", 2000000, "c\r\n" J "\r\n0\r\n\r\n", "400"),
	BIG("trailers of 2 MB", POST TE "\r\n" "c\r\n" J "\r\n0\r\n", "X: y\r\n", 333333, "\r\n", "400"),
};
/* clang-format on */

const size_t http_case_count = ARRAY_LEN(http_cases);

char *http_case_bytes(const struct http_case *c, size_t *ret_len)
{
	size_t fill_len = strlen(c->fill), tail_len = strlen(c->tail);
	char *bytes = malloc(c->len + fill_len * c->times + tail_len + 1), *at = bytes;

	CHECK(bytes);
	at = mempcpy(at, c->bytes, c->len);
	for (size_t i = 0; i < c->times; i++)
		at = mempcpy(at, c->fill, fill_len);
	at = mempcpy(at, c->tail, tail_len);
	*ret_len = (size_t)(at - bytes);
	return bytes;
}

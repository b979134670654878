/* What a program says on a connection that a name has opened, and what becomes of it. Each stream is heard
 * whole, cut in two at its bytes, and a byte at a time: the verdict has to be the same.
 *
 *   runs in    unit tests
 */
#pragma once

#include "edge/gate/speech.h"
#include "hello_play.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAY_MAX 200000u

/* To 8.8.8.8, port 443. */
extern struct play {
	struct rules rules;
	uint8_t bytes[PLAY_MAX]; /* that are said */
	size_t len;
	char name[NETWORK_NAME_MAX + 3]; /* that was refused */
} play;

/* A set-up of cmocka: the operator allows all; the request example.org, *.example.net:443 but for
 * bad.example.net, and example.com:80. */
int play_begin(void **state);
void play_allow(struct network_policy *p, const char *text);
void play_deny(struct network_policy *p, const char *text);

/* Nothing is said; say one thing more. */
void play_clear(void);
void play_add(const void *bytes, size_t len);
void play_add_text(const char *text);
void play_add_hello(struct hello_play h);
void play_add_record(uint8_t type, size_t len, uint8_t value); /* of TLS: bytes of one value */

/* The verdict; `end`: nothing comes behind it. *ret_passed: bytes that go on. */
enum network_verdict play_hear(bool end, size_t *ret_passed);

/* The verdict; what is allowed has to go on, all of it. */
enum network_verdict play_verdict(void);
enum network_verdict play_say(const char *text);

/* How much goes on when it comes in two pieces. */
size_t play_passed_in_two(size_t cut);

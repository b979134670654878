/* Compiles system-call policies (policy/NAME.seccomp) into constant BPF programs.
 *
 *   seccomp-compile OUTPUT.h POLICY...
 *   seccomp-compile --names OUTPUT.h POLICY   the numbers and names of what it denies
 *
 * A policy is lines of
 *
 *   default ACTION                         # reason
 *   ACTION CALL... [if TERM [and TERM]...] # reason
 *
 *   ACTION   allow | kill | fake (do nothing, answer 0) | errno NAME | deny NAME
 *   CALL     a name, or NAME@NUMBER for one that libseccomp may not know yet
 *   TERM     (argN | lowN) [& MASK] (== V | != V | in V...)
 *
 * lowN is the low half of argument N: right where the kernel takes an int, because it
 * ignores the other half and a comparison of 64 bits could be dodged by garbage there.
 * For each call the first line that fits decides; the last one must be unconditional.
 *
 * "deny" is "errno" for what is worth telling of. A policy that has such lines becomes two
 * programs: NAME answers them with the errno, and NAME_told has a listener told of them, with
 * the errno in the action's data, which the kernel passes over and the listener looks up.
 *
 * Names come from libseccomp, the code generation does not: libseccomp knows neither an
 * order of rules nor "otherwise" for one call, which half of these policies are made of
 * ("these ioctls; ENOTTY for the rest"). Calls of other architectures are dropped.
 *
 * The program is emitted backwards, last instruction first, so that each jump's target
 * has been placed before the jump is: one pass, and a jump that is too far for 8 bits is
 * seen at once. A label is the number of instructions from the target to the end.
 */
#include "seccomp-constants.h"

#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "argument halves are little-endian");

enum {
	CALLS_MAX = 512,
	RULES_MAX = 12, /* of one call */
	TERMS_MAX = 3,
	VALUES_MAX = 32,
	TOKENS_MAX = 128,
	NUMBERS_UNIFIED = 424, /* from here on a call has the same number everywhere */
	X32_BIT = 0x40000000,
	REASON_MIN = 4,
	RETURN_NEAR = 200 /* well below what a conditional jump spans */
};

struct term {
	unsigned arg;
	bool low, negate;
	uint64_t mask;
	unsigned value_count;
	uint64_t values[VALUES_MAX];
};

struct rule {
	uint32_t action;
	unsigned term_count;
	struct term terms[TERMS_MAX];
};

struct call {
	uint32_t nr;
	char name[48];
	unsigned rule_count;
	struct rule rules[RULES_MAX];
};

struct policy {
	const char *path;
	unsigned line;
	bool has_default;
	uint32_t default_action;
	unsigned call_count;
	struct call *calls;
};

struct tokens {
	unsigned count, next;
	char *at[TOKENS_MAX];
};

/* From `start` to the next interval's start, `call` decides, or `action` without one. */
struct interval {
	uint32_t start, action;
	const struct call *call;
};

struct program {
	bool told; /* a listener is told of what is denied */
	unsigned count;
	struct sock_filter reversed[BPF_MAXINSNS];
};

static _Noreturn void bad(const struct policy *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static _Noreturn void bad(const struct policy *p, const char *fmt, ...)
{
	va_list ap;

	(void)fprintf(stderr, "%s:%u: ", p->path, p->line);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
	exit(EXIT_FAILURE);
}

/* ---- reading ---- */

static const char *peek(const struct tokens *t)
{
	return t->next < t->count ? t->at[t->next] : "";
}

static const char *take(const struct policy *p, struct tokens *t)
{
	if (t->next == t->count)
		bad(p, "the line ends too early");
	return t->at[t->next++];
}

static bool take_if(struct tokens *t, const char *word)
{
	if (strcmp(peek(t), word) != 0)
		return false;

	t->next++;
	return true;
}

static bool find_constant(const struct constant *table, size_t n, const char *name, uint64_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(table[i].name, name) == 0) {
			*ret = table[i].value;
			return true;
		}
	}
	return false;
}

static uint64_t parse_value(const struct policy *p, const char *s)
{
	uint64_t v;
	char *end;

	if (find_constant(value_names, sizeof(value_names) / sizeof(value_names[0]), s, &v))
		return v;

	errno = 0;
	v = strtoull(s, &end, 0);
	if (errno || end == s || *end || *s == '-')
		bad(p, "%s is neither a number nor a known constant", s);
	return v;
}

static uint32_t parse_action(const struct policy *p, struct tokens *t)
{
	const char *word = take(p, t);
	uint32_t action;
	uint64_t v;

	if (strcmp(word, "allow") == 0)
		return SECCOMP_RET_ALLOW;
	if (strcmp(word, "kill") == 0)
		return SECCOMP_RET_KILL_PROCESS;
	if (strcmp(word, "fake") == 0)
		return SECCOMP_RET_ERRNO;
	if (strcmp(word, "errno") != 0 && strcmp(word, "deny") != 0)
		bad(p, "%s is no action", word);
	action = strcmp(word, "deny") == 0 ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO;
	word = take(p, t);
	if (!find_constant(errno_names, sizeof(errno_names) / sizeof(errno_names[0]), word, &v))
		bad(p, "%s is no known errno", word);
	return action | (uint32_t)v;
}

static bool is_told(uint32_t action)
{
	return (action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF;
}

/* argN or lowN, and the mask behind it. */
static void parse_operand(const struct policy *p, struct tokens *t, struct term *ret)
{
	const char *word = take(p, t);

	*ret = (struct term){ .low = strncmp(word, "low", 3) == 0 };
	if ((!ret->low && strncmp(word, "arg", 3) != 0) || word[3] < '0' || word[3] > '5' ||
		word[4])
		bad(p, "%s is no argument (arg0 to arg5, low0 to low5)", word);
	ret->arg = (unsigned)(word[3] - '0');
	ret->mask = ret->low ? UINT32_MAX : UINT64_MAX;
	if (take_if(t, "&"))
		ret->mask &= parse_value(p, take(p, t));
}

static void add_value(const struct policy *p, struct tokens *t, struct term *term)
{
	const char *word = take(p, t);
	uint64_t value = parse_value(p, word);

	if (term->value_count == VALUES_MAX)
		bad(p, "too many values");
	if (value & ~term->mask)
		bad(p, "%s can never be seen through the mask", word);
	if (term->value_count > 0 && value >> 32 != term->values[0] >> 32)
		bad(p, "%s: values of one list have the same upper half", word);
	term->values[term->value_count++] = value;
}

static void parse_term(const struct policy *p, struct tokens *t, struct term *ret)
{
	const char *word;

	parse_operand(p, t, ret);
	word = take(p, t);
	ret->negate = strcmp(word, "!=") == 0;
	if (!ret->negate && strcmp(word, "==") != 0 && strcmp(word, "in") != 0)
		bad(p, "%s is no comparison (==, !=, in)", word);

	add_value(p, t, ret);
	while (strcmp(word, "in") == 0 && *peek(t) && strcmp(peek(t), "and") != 0)
		add_value(p, t, ret);
}

/* The call's number here; false when this architecture has no such call. */
static bool resolve(const struct policy *p, const char *name, size_t len, uint32_t *ret)
{
	const char *at = memchr(name, '@', len);
	char plain[48];
	int known;

	if (len >= sizeof(plain))
		bad(p, "%s is too long", name);
	(void)snprintf(plain, sizeof(plain), "%.*s", (int)(at ? (size_t)(at - name) : len), name);
	known = seccomp_syscall_resolve_name(plain);

	if (at) {
		*ret = (uint32_t)parse_value(p, at + 1);
		if (*ret < NUMBERS_UNIFIED || *ret >= X32_BIT)
			bad(p, "%s: only calls from %d on have one number everywhere", name,
				NUMBERS_UNIFIED);
		if (known >= 0 && (uint32_t)known != *ret)
			bad(p, "%s: libseccomp says that it is %d", name, known);
		return true;
	}

	if (known == __NR_SCMP_ERROR)
		bad(p, "%s: no such system call", name);
	*ret = (uint32_t)known;
	return known >= 0; /* libseccomp gives calls of other architectures negative numbers */
}

static struct call *find_call(struct policy *p, const char *name, uint32_t nr)
{
	struct call *c;

	for (unsigned i = 0; i < p->call_count; i++) {
		if (p->calls[i].nr == nr)
			return &p->calls[i];
	}

	if (p->call_count == CALLS_MAX)
		bad(p, "too many calls");
	c = &p->calls[p->call_count++];
	c->nr = nr;
	(void)snprintf(c->name, sizeof(c->name), "%s", name);
	return c;
}

static bool is_closed(const struct call *c)
{
	return c->rule_count > 0 && c->rules[c->rule_count - 1].term_count == 0;
}

static void add_rule(struct policy *p, const char *name, const struct rule *rule)
{
	struct call *c;
	uint32_t nr;

	if (!resolve(p, name, strlen(name), &nr))
		return;

	c = find_call(p, name, nr);
	if (is_closed(c))
		bad(p, "%s: an earlier line has decided already", name);
	if (c->rule_count == RULES_MAX)
		bad(p, "%s: too many lines", name);
	c->rules[c->rule_count++] = *rule;
}

static void parse_rule(struct policy *p, struct tokens *t)
{
	struct rule rule = { .action = parse_action(p, t) };
	unsigned first = t->next, end;

	while (*peek(t) && strcmp(peek(t), "if") != 0)
		t->next++;
	end = t->next;
	if (first == end)
		bad(p, "no call is named");

	if (take_if(t, "if")) {
		do {
			if (rule.term_count == TERMS_MAX)
				bad(p, "too many conditions");
			parse_term(p, t, &rule.terms[rule.term_count++]);
		} while (take_if(t, "and"));
		if (t->next != t->count)
			bad(p, "%s is not understood", peek(t));
	}

	for (unsigned i = first; i < end; i++)
		add_rule(p, t->at[i], &rule);
}

static void parse_line(struct policy *p, char *text)
{
	char *reason = strchr(text, '#'), *word;
	struct tokens t = { 0 };

	if (reason)
		*reason++ = '\0';
	while ((word = strsep(&text, " \t\n"))) {
		if (!*word)
			continue;
		if (t.count == TOKENS_MAX)
			bad(p, "the line is too long");
		t.at[t.count++] = word;
	}
	if (t.count == 0)
		return; /* blank, or a comment of its own */

	if (!reason || strlen(reason + strspn(reason, " \t\n")) < REASON_MIN)
		bad(p, "every line says why (# reason)");
	if (take_if(&t, "default")) {
		if (p->has_default)
			bad(p, "a second default");
		p->default_action = parse_action(p, &t);
		if (is_told(p->default_action))
			bad(p, "what is not named cannot be told of");
		p->has_default = true;
		if (t.next != t.count)
			bad(p, "%s is not understood", peek(&t));
		return;
	}
	parse_rule(p, &t);
}

static void read_policy(struct policy *p)
{
	FILE *in = fopen(p->path, "re");
	size_t room = 0;
	char *text = NULL;

	if (!in)
		bad(p, "cannot open it");
	for (p->line = 1; getline(&text, &room, in) > 0; p->line++)
		parse_line(p, text);
	if (ferror(in))
		bad(p, "cannot read it");
	free(text);
	(void)fclose(in);

	if (!p->has_default)
		bad(p, "no default line");
	for (unsigned i = 0; i < p->call_count; i++) {
		if (!is_closed(&p->calls[i]))
			bad(p, "%s: no unconditional line says what happens otherwise",
				p->calls[i].name);
	}
}

/* ---- generating ---- */

static unsigned emit(struct program *g, unsigned code, uint32_t k, unsigned jt, unsigned jf)
{
	if (g->count == BPF_MAXINSNS) {
		(void)fputs("seccomp-compile: more instructions than the kernel takes\n", stderr);
		exit(EXIT_FAILURE);
	}
	if (jt > UINT8_MAX || jf > UINT8_MAX)
		abort(); /* within_reach() is wrong */
	g->reversed[g->count++] = (struct sock_filter){
		.code = (uint16_t)code, .jt = (uint8_t)jt, .jf = (uint8_t)jf, .k = k
	};
	return g->count;
}

/* The kernel translates the whole program for each process that installs it: one that is there
 * already and near enough is used again. */
static unsigned emit_return(struct program *g, uint32_t action)
{
	if (is_told(action) && !g->told)
		action = SECCOMP_RET_ERRNO | (action & SECCOMP_RET_DATA);
	for (unsigned i = g->count; i > 0 && g->count - i < RETURN_NEAR; i--) {
		const struct sock_filter *f = &g->reversed[i - 1];

		if (f->code == (BPF_RET | BPF_K) && f->k == action)
			return i;
	}
	return emit(g, BPF_RET | BPF_K, action, 0, 0);
}

static unsigned emit_load(struct program *g, size_t offset)
{
	return emit(g, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* A conditional jump spans 255 instructions; put a long one where it can reach it. */
static unsigned within_reach(struct program *g, unsigned label, unsigned reach)
{
	if (g->count - label <= reach)
		return label;
	return emit(g, BPF_JMP | BPF_JA, g->count - label, 0, 0);
}

static unsigned emit_test(struct program *g, unsigned op, uint32_t k, unsigned yes, unsigned no)
{
	yes = within_reach(g, yes, UINT8_MAX - 1); /* one less: the next line may add one */
	no = within_reach(g, no, UINT8_MAX);
	return emit(g, BPF_JMP | op | BPF_K, k, g->count - yes, g->count - no);
}

/* Is that half of the argument, as far as the mask shows it, one of `count` values? */
static unsigned emit_half(struct program *g, const struct term *t, bool high, unsigned count,
	unsigned yes, unsigned no)
{
	unsigned shift = high ? 32 : 0, next = no;
	uint32_t mask = (uint32_t)(t->mask >> shift);
	size_t at = offsetof(struct seccomp_data, args) + t->arg * sizeof(uint64_t);

	if (mask == 0)
		return yes; /* values have no bits outside the mask */

	for (unsigned i = count; i-- > 0;)
		next = emit_test(g, BPF_JEQ, (uint32_t)(t->values[i] >> shift), yes, next);
	if (mask != UINT32_MAX)
		(void)emit(g, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	return emit_load(g, at + (high ? sizeof(uint32_t) : 0));
}

static unsigned emit_term(struct program *g, const struct term *t, unsigned yes, unsigned no)
{
	unsigned hit = t->negate ? no : yes, miss = t->negate ? yes : no;
	unsigned low = emit_half(g, t, false, t->value_count, hit, miss);

	return emit_half(g, t, true, 1, low, miss); /* they have the same upper half */
}

static unsigned emit_call(struct program *g, const struct call *c)
{
	unsigned next = emit_return(g, c->rules[c->rule_count - 1].action);

	for (unsigned i = c->rule_count - 1; i-- > 0;) {
		unsigned hit = emit_return(g, c->rules[i].action);

		for (unsigned k = c->rules[i].term_count; k-- > 0;)
			hit = emit_term(g, &c->rules[i].terms[k], hit, next);
		next = hit;
	}
	return next;
}

/* Binary search for the call's number; the depth is the logarithm of the intervals. */
static unsigned emit_tree(struct program *g, const struct interval *iv, unsigned count)
{
	unsigned half = count / 2, above, below;

	if (count == 1)
		return iv->call ? emit_call(g, iv->call) : emit_return(g, iv->action);

	above = emit_tree(g, iv + half, count - half);
	below = emit_tree(g, iv, half);
	return emit_test(g, BPF_JGE, iv[half].start, above, below);
}

static int by_number(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	return x->nr < y->nr ? -1 : x->nr > y->nr;
}

static unsigned add_interval(struct interval *iv, unsigned n, const struct interval *add)
{
	if (n > 0 && !add->call && !iv[n - 1].call && iv[n - 1].action == add->action)
		return n; /* the same answer as the numbers below */

	iv[n] = *add;
	return n + 1;
}

static unsigned make_intervals(const struct policy *p, struct interval *iv)
{
	struct interval otherwise = { .action = p->default_action };
	unsigned n = 0;

	for (unsigned i = 0; i < p->call_count; i++) {
		const struct call *c = &p->calls[i];
		struct interval own = { .start = c->nr, .action = c->rules[0].action };

		if (c->rule_count > 1)
			own.call = c;
		if (otherwise.start != c->nr)
			n = add_interval(iv, n, &otherwise);
		n = add_interval(iv, n, &own);
		otherwise.start = c->nr + 1;
	}
	n = add_interval(iv, n, &otherwise);

	/* Nobody calls x32 by accident. -1 is no x32 call: it is what a tracer writes to
	 * have a call skipped. */
	if (seccomp_arch_native() == SCMP_ARCH_X86_64) {
		n = add_interval(iv, n,
			&(struct interval){ .start = X32_BIT, .action = SECCOMP_RET_KILL_PROCESS });
		otherwise.start = UINT32_MAX;
		n = add_interval(iv, n, &otherwise);
	}
	return n;
}

static void generate(struct policy *p, struct program *g)
{
	static struct interval iv[2 * CALLS_MAX + 4];
	unsigned kill, tree, body;

	qsort(p->calls, p->call_count, sizeof(p->calls[0]), by_number);
	g->count = 0;
	kill = emit_return(g, SECCOMP_RET_KILL_PROCESS);
	tree = emit_tree(g, iv, make_intervals(p, iv));
	if (tree != g->count) /* what is loaded goes on to the instruction behind */
		(void)emit(g, BPF_JMP | BPF_JA, g->count - tree, 0, 0);
	body = emit_load(g, offsetof(struct seccomp_data, nr));
	(void)emit_test(g, BPF_JEQ, seccomp_arch_native(), body, kill);
	(void)emit_load(g, offsetof(struct seccomp_data, arch));
}

static void print_program(FILE *out, const struct policy *p, const struct program *g)
{
	const char *base = strrchr(p->path, '/');

	base = base ? base + 1 : p->path;
	(void)fprintf(out, "\nstatic const struct sock_filter seccomp_%.*s%s[%u] = {\n",
		(int)strcspn(base, "."), base, g->told ? "_told" : "", g->count);
	for (unsigned i = g->count; i-- > 0;) {
		const struct sock_filter *f = &g->reversed[i];

		(void)fprintf(
			out, "\t{ 0x%02x, %3u, %3u, 0x%08x },\n", f->code, f->jt, f->jf, f->k);
	}
	(void)fputs("};\n", out);
}

static bool tells_of(const struct call *c)
{
	for (unsigned i = 0; i < c->rule_count; i++) {
		if (is_told(c->rules[i].action))
			return true;
	}
	return false;
}

static void print_programs(FILE *out, struct policy *p)
{
	static struct program program;
	bool told = false;

	for (unsigned i = 0; i < p->call_count; i++)
		told |= tells_of(&p->calls[i]);
	for (unsigned i = 0; i <= told; i++) {
		program.told = i == 1;
		generate(p, &program);
		print_program(out, p, &program);
	}
}

/* For those who have no business with filters, and get numbers. */
static void print_names(FILE *out, struct policy *p)
{
	qsort(p->calls, p->call_count, sizeof(p->calls[0]), by_number);
	(void)fputs("\n#include <stdint.h>\n\nstatic const struct {\n\tuint32_t number;\n"
		    "\tconst char *name;\n} denied_calls[] = {\n",
		out);
	for (unsigned i = 0; i < p->call_count; i++) {
		const struct call *c = &p->calls[i];

		if (tells_of(c))
			(void)fprintf(out, "\t{ %u, \"%.*s\" },\n", c->nr,
				(int)strcspn(c->name, "@"), c->name);
	}
	(void)fputs("};\n", out);
}

int main(int argc, char **argv)
{
	bool names = argc == 4 && strcmp(argv[1], "--names") == 0;
	FILE *out;

	argv += names;
	argc -= names;
	if (argc < 3) {
		(void)fputs("usage: seccomp-compile [--names] OUTPUT.h POLICY...\n", stderr);
		return EXIT_FAILURE;
	}
	out = fopen(argv[1], "we");
	if (!out) {
		perror(argv[1]);
		return EXIT_FAILURE;
	}

	(void)fprintf(out, "/* Made by tools/seccomp-compile from policy/. */\n#pragma once\n%s",
		names ? "" : "\n#include <linux/filter.h>\n");
	for (int i = 2; i < argc; i++) {
		struct policy p = { .path = argv[i] };

		p.calls = calloc(CALLS_MAX, sizeof(p.calls[0]));
		if (!p.calls)
			bad(&p, "out of memory");
		read_policy(&p);
		if (names)
			print_names(out, &p);
		else
			print_programs(out, &p);
		free(p.calls);
	}
	if (fclose(out) != 0) {
		perror(argv[1]);
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

#include "unit.h"

#include "base/check.h"
#include "wire/msg.h"

#include <string.h>

/* The list as a table of its own: written by hand, so that a line changed in the list
 * by mistake is seen here. */
static const struct {
	enum msg_type type;
	enum role from, to;
	size_t len;
	unsigned nfds;
} allowed[] = {
	{ MSG_LANGUAGE, ROLE_CONFIG, ROLE_SUPERVISOR, sizeof(struct msg_language), 0 },
	{ MSG_CONFIG, ROLE_CONFIG, ROLE_SUPERVISOR, sizeof(struct msg_config), 1 },
	{ MSG_CONFIG_BAD, ROLE_CONFIG, ROLE_SUPERVISOR, sizeof(struct msg_config_bad), 0 },
	{ MSG_HELLO, ROLE_SUPERVISOR, ROLE_CLIENT, sizeof(struct msg_hello), 0 },
	{ MSG_OFFER, ROLE_SUPERVISOR, ROLE_CLIENT, sizeof(struct msg_offer), 0 },
	{ MSG_INVENTORY, ROLE_SUPERVISOR, ROLE_CLIENT, sizeof(struct msg_inventory), 1 },
	{ MSG_HEALTH, ROLE_SUPERVISOR, ROLE_CLIENT, sizeof(struct msg_health), 0 },
	{ MSG_SELFTEST, ROLE_SUPERVISOR, ROLE_CLIENT, sizeof(struct msg_selftest), 0 },
	{ MSG_SUBMIT, ROLE_CLIENT, ROLE_SUPERVISOR, sizeof(struct msg_submit), 5 },
	{ MSG_CANCEL, ROLE_CLIENT, ROLE_SUPERVISOR, sizeof(struct msg_cancel), 0 },
	{ MSG_RESULT, ROLE_SUPERVISOR, ROLE_CLIENT, sizeof(struct msg_result), 0 },
	{ MSG_REFUSED, ROLE_SUPERVISOR, ROLE_CLIENT, sizeof(struct msg_refused), 0 },
	{ MSG_DRAIN, ROLE_SUPERVISOR, ROLE_CLIENT, sizeof(struct msg_drain), 0 },
	{ MSG_LAYER, ROLE_SUPERVISOR, ROLE_CLIENT, sizeof(struct msg_layer), 0 },
	{ MSG_LAYERS_END, ROLE_SUPERVISOR, ROLE_CLIENT, sizeof(struct msg_layers_end), 0 },
	{ MSG_BUILD, ROLE_SUPERVISOR, ROLE_BOX, sizeof(struct msg_build), 0 },
	{ MSG_MOUNT, ROLE_SUPERVISOR, ROLE_BOX, sizeof(struct msg_mount), 1 },
	{ MSG_BUILT, ROLE_BOX, ROLE_SUPERVISOR, sizeof(struct msg_built), 0 },
	{ MSG_JOIN, ROLE_SUPERVISOR, ROLE_BOX, sizeof(struct msg_join), 1 },
	{ MSG_RENEW, ROLE_SUPERVISOR, ROLE_BOX, sizeof(struct msg_renew), 1 },
	{ MSG_ENTER, ROLE_SUPERVISOR, ROLE_BOX, sizeof(struct msg_enter), 1 },
	{ MSG_START, ROLE_SUPERVISOR, ROLE_BOX, sizeof(struct msg_start), 5 },
	{ MSG_LISTENER, ROLE_BOX, ROLE_SUPERVISOR, sizeof(struct msg_listener), 1 },
	{ MSG_ENTERED, ROLE_BOX, ROLE_SUPERVISOR, sizeof(struct msg_entered), 0 },
	{ MSG_BROKEN, ROLE_BOX, ROLE_SUPERVISOR, sizeof(struct msg_broken), 0 },
	{ MSG_PRELOADING, ROLE_ZYGOTE, ROLE_SUPERVISOR, sizeof(struct msg_preloading), 0 },
	{ MSG_WARM, ROLE_ZYGOTE, ROLE_SUPERVISOR, sizeof(struct msg_warm), 0 },
	{ MSG_FORK, ROLE_SUPERVISOR, ROLE_ZYGOTE, sizeof(struct msg_fork), 3 },
	{ MSG_FORKED, ROLE_ZYGOTE, ROLE_SUPERVISOR, sizeof(struct msg_forked), 1 },
	{ MSG_UNFORKED, ROLE_ZYGOTE, ROLE_SUPERVISOR, sizeof(struct msg_broken), 0 },
	{ MSG_COLLECT, ROLE_CLIENT, ROLE_SUPERVISOR, sizeof(struct msg_collect), 1 },
	{ MSG_GATHER, ROLE_SUPERVISOR, ROLE_BOX, sizeof(struct msg_gather), 3 },
	{ MSG_NETWORK, ROLE_CLIENT, ROLE_SUPERVISOR, sizeof(struct msg_network), 1 },
	{ MSG_TUN, ROLE_SUPERVISOR, ROLE_BOX, sizeof(struct msg_tun), 1 },
	{ MSG_GATE_JOIN, ROLE_SUPERVISOR, ROLE_GATE, sizeof(struct msg_join), 1 },
	{ MSG_GATE, ROLE_SUPERVISOR, ROLE_GATE, sizeof(struct msg_gate), 3 },
	{ MSG_GATE_BAD, ROLE_GATE, ROLE_SUPERVISOR, sizeof(struct msg_broken), 0 },
	{ MSG_UNPACK, ROLE_CLIENT, ROLE_IMAGER, sizeof(struct msg_unpack), 0 },
	{ MSG_UNPACKING, ROLE_IMAGER, ROLE_CLIENT, sizeof(struct msg_unpacking), 0 },
	{ MSG_LISTED, ROLE_IMAGER, ROLE_CLIENT, sizeof(struct msg_listed), 0 },
	{ MSG_UNPACKED, ROLE_IMAGER, ROLE_CLIENT, sizeof(struct msg_unpacked), 0 },
	{ MSG_PLAN, ROLE_IMAGER, ROLE_CLIENT, sizeof(struct msg_plan), 0 },
	{ MSG_DIGEST, ROLE_IMAGER, ROLE_CLIENT, sizeof(struct msg_digest), 0 },
	{ MSG_IMAGE_BAD, ROLE_IMAGER, ROLE_CLIENT, sizeof(struct msg_image_bad), 0 },
};

#define ROLES (ROLE_GATE + 1)

static void table_names_every_message_once(void **state)
{
	(void)state;
	assert_int_equal(ARRAY_LEN(allowed), MSG_TYPE_MAX - 1);
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		assert_int_equal(allowed[i].type, i + 1);
}

static void every_message_passes_in_its_own_direction_only(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		for (int from = 0; from < ROLES; from++) {
			for (int to = 0; to < ROLES; to++) {
				const char *rule = msg_admit((enum role)from, (enum role)to,
					allowed[i].type, allowed[i].len, allowed[i].nfds);

				if (from == (int)allowed[i].from && to == (int)allowed[i].to)
					assert_null(rule);
				else
					assert_string_equal(rule, "not allowed between these two");
			}
		}
	}
}

static void any_other_length_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		size_t lens[] = { 0, allowed[i].len - 1, allowed[i].len + 1, SIZE_MAX };

		for (size_t k = 0; k < ARRAY_LEN(lens); k++)
			assert_string_equal(msg_admit(allowed[i].from, allowed[i].to,
						    allowed[i].type, lens[k], allowed[i].nfds),
				"wrong length");
	}
}

static void any_other_number_of_descriptors_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		for (unsigned n = 0; n <= MSG_FDS_MAX + 1; n++) {
			const char *rule = msg_admit(
				allowed[i].from, allowed[i].to, allowed[i].type, allowed[i].len, n);

			if (n == allowed[i].nfds)
				assert_null(rule);
			else
				assert_string_equal(rule, "wrong number of descriptors");
		}
	}
}

static void types_outside_the_list_are_refused(void **state)
{
	static const uint32_t types[] = { MSG_NONE, MSG_TYPE_MAX, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		assert_string_equal(
			msg_admit(ROLE_CLIENT, ROLE_SUPERVISOR, types[i], 0, 0), "unknown type");
}

static void sizes_and_descriptors_are_those_of_the_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		assert_int_equal(msg_size(allowed[i].type), allowed[i].len);
		assert_int_equal(msg_fds(allowed[i].type), allowed[i].nfds);
		assert_true(allowed[i].len <= sizeof(union msg_any));
	}
}

static void names_are_known_inside_the_list_only(void **state)
{
	(void)state;
	assert_int_equal(strcasecmp(msg_name(MSG_SUBMIT), "submit"), 0);
	assert_int_equal(strcasecmp(msg_name(MSG_BROKEN), "broken"), 0);
	assert_string_equal(msg_name(MSG_NONE), "unknown");
	assert_string_equal(msg_name(MSG_TYPE_MAX), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_names_every_message_once),
		cmocka_unit_test(every_message_passes_in_its_own_direction_only),
		cmocka_unit_test(any_other_length_is_refused),
		cmocka_unit_test(any_other_number_of_descriptors_is_refused),
		cmocka_unit_test(types_outside_the_list_are_refused),
		cmocka_unit_test(sizes_and_descriptors_are_those_of_the_table),
		cmocka_unit_test(names_are_known_inside_the_list_only),
	};

	return cmocka_run_group_tests_name("msg", tests, NULL, NULL);
}

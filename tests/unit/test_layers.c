/* What is said about a host that lacks something: the layer, and a remedy that fits the
 * cause. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "priv/supervisor/layers.h"

#include <errno.h>
#include <string.h>

/* All was tried and all is there, except what only a cell can show. */
static struct layers before_a_cell(void)
{
	const uint64_t rest = LAYER_ALL & ~LAYER_BIT(LAYER_ROOT) & ~LAYER_BIT(LAYER_PROC);

	return (struct layers){ .tried = rest, .in_force = rest };
}

static struct fault fault_of(int code, const char *text)
{
	struct fault f = { 0 };

	(void)fault_say(&f, code, "%s", text);
	return f;
}

static void a_cell_that_breaks_at_a_name_is_no_missing_overlay(void **state)
{
	const struct fault why =
		fault_of(-EPERM, "cell c0: init: names: sethostname: Operation not permitted");
	struct layers l = before_a_cell();
	struct fault f = { 0 };

	(void)state;
	layers_refuse_cell(&l, &why);
	assert_int_equal(layers_decide(&l, 0, &f), -EPERM);
	assert_non_null(strstr(f.text, "sethostname"));
	assert_null(strstr(f.text, "overlay"));
	assert_null(strstr(f.text, "layer "));
}

static void a_node_that_cannot_be_made_is_no_missing_overlay(void **state)
{
	const struct fault why = fault_of(-EPERM, "root view: mknod null: Operation not permitted");
	struct layers l = before_a_cell();
	struct fault f = { 0 };

	(void)state;
	layers_refuse_root(&l, &why);
	assert_true(layers_decide(&l, 0, &f) < 0);
	assert_non_null(strstr(f.text, "read-only-root"));
	assert_non_null(strstr(f.text, "CAP_MKNOD"));
	assert_null(strstr(f.text, "overlay"));
}

static void a_missing_overlay_is_told_with_its_module(void **state)
{
	const struct fault why =
		fault_of(-ENODEV, "cell c0: mounts: overlay: fsopen: No such device");
	struct layers l = before_a_cell();
	struct fault f = { 0 };

	(void)state;
	layers_refuse_cell(&l, &why);
	assert_true(layers_decide(&l, 0, &f) < 0);
	assert_non_null(strstr(f.text, "modprobe overlay"));
}

static void a_proc_that_cannot_be_mounted_is_the_layer_proc(void **state)
{
	const struct fault why =
		fault_of(-EPERM, "cell c0: init: mounts: proc: create: Operation not permitted");
	struct layers l = before_a_cell();
	struct fault f = { 0 };

	(void)state;
	layers_refuse_cell(&l, &why);
	assert_true(layers_decide(&l, 0, &f) < 0);
	assert_non_null(strstr(f.text, "layer proc is missing"));
	assert_false(l.tried & LAYER_BIT(LAYER_ROOT));
}

static void a_namespace_that_is_forbidden_is_no_matter_of_the_kernels_build(void **state)
{
	const struct fault denied = fault_of(-EPERM, "clone(CLONE_NEWPID): denied");
	const struct fault absent = fault_of(-EINVAL, "clone(CLONE_NEWPID): Invalid argument");

	(void)state;
	assert_non_null(strstr(layer_remedy_for(LAYER_PID_NS, &denied), "CAP_SYS_ADMIN"));
	assert_string_equal(layer_remedy_for(LAYER_PID_NS, &absent), layer_remedy(LAYER_PID_NS));
	assert_string_equal(layer_remedy_for(LAYER_USER_NS, &denied), layer_remedy(LAYER_USER_NS));
	assert_string_equal(layer_remedy_for(LAYER_MAX, &denied), "unknown");
}

static void what_was_not_tried_explains_nothing(void **state)
{
	struct layers l = { .tried = LAYER_BIT(LAYER_NNP), .in_force = LAYER_BIT(LAYER_NNP) };
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(layers_explain(&l, 0, &f), 0);
	l.tried |= LAYER_BIT(LAYER_SWAP);
	assert_true(layers_explain(&l, 0, &f) < 0);
	assert_int_equal(layers_explain(&l, LAYER_BIT(LAYER_SWAP), &f), 0);
	/* A cell is not made without a filter, whatever the operator says. */
	l.tried |= LAYER_BIT(LAYER_SECCOMP);
	assert_true(layers_explain(&l, LAYER_ALL, &f) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_that_breaks_at_a_name_is_no_missing_overlay),
		cmocka_unit_test(a_node_that_cannot_be_made_is_no_missing_overlay),
		cmocka_unit_test(a_missing_overlay_is_told_with_its_module),
		cmocka_unit_test(a_proc_that_cannot_be_mounted_is_the_layer_proc),
		cmocka_unit_test(a_namespace_that_is_forbidden_is_no_matter_of_the_kernels_build),
		cmocka_unit_test(what_was_not_tried_explains_nothing),
	};

	return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}

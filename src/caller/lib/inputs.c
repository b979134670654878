#include "caller/lib/inputs.h"

#include "api/inputs.h"
#include "base/fault.h"
#include "base/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct making {
	const struct gbx_request *q;
	struct inputs_plan plan;
	struct fault *f;
};

static int take_args(struct making *m)
{
	const char *const *list = m->q->args;

	for (size_t i = 0; list && list[i]; i++) {
		if (i == INPUTS_ARGS_MAX)
			return fault_say(m->f, -EINVAL, "args: more than %u", INPUTS_ARGS_MAX);
		m->plan.args[m->plan.arg_count++] = list[i];
	}
	if (inputs_plan_args_bytes(&m->plan) > INPUTS_WORDS_BYTES_MAX)
		return fault_say(
			m->f, -EINVAL, "args: more than %u bytes together", INPUTS_WORDS_BYTES_MAX);
	return 0;
}

static int take_env(struct making *m)
{
	const char *const *list = m->q->env;

	for (size_t i = 0; list && list[i]; i++) {
		size_t len = strcspn(list[i], "=");
		const char *rule = list[i][len] == '=' ? inputs_variable_fault(list[i], len)
						       : "must be NAME=VALUE";

		if (rule)
			return fault_say(m->f, -EINVAL, "env: \"%.*s\" %s",
				len < 100 ? (int)len : 100, list[i], rule);
		if (i == INPUTS_ENV_MAX)
			return fault_say(m->f, -EINVAL, "env: more than %u", INPUTS_ENV_MAX);
		m->plan.env[m->plan.env_count++] = (struct inputs_plan_variable){ list[i], NULL };
	}
	if (inputs_plan_env_bytes(&m->plan) > INPUTS_WORDS_BYTES_MAX)
		return fault_say(
			m->f, -EINVAL, "env: more than %u bytes together", INPUTS_WORDS_BYTES_MAX);
	return 0;
}

static int take_file(struct making *m, size_t i)
{
	const struct gbx_file *file = &m->q->files[i];
	size_t len = file->path ? strlen(file->path) : 0;
	const char *rule = file->path ? inputs_path_fault(file->path, len) : "is missing";

	if (rule)
		return fault_say(m->f, -EINVAL, "files[%zu]: the path \"%.100s\" %s", i,
			file->path ? file->path : "", rule);
	if (file->mode > INPUTS_MODE_MAX || file->reserved || (file->len && !file->bytes))
		return fault_say(m->f, -EINVAL,
			"files[%zu]: a mode above 0777, a reserved field, or a length without "
			"bytes",
			i);
	m->plan.files[i] = (struct inputs_plan_file){
		.path = file->path,
		.path_len = len,
		.bytes = file->bytes,
		.len = file->len,
		.size = file->len,
		.mode = file->mode ? file->mode : INPUTS_MODE,
	};
	if (m->q->entry_point && strcmp(m->q->entry_point, file->path) == 0)
		m->plan.entry = (unsigned)i + 1;
	return 0;
}

static int take_entry(struct making *m)
{
	if (!m->q->entry_point)
		return 0;
	if (m->q->code_len > 0)
		return fault_say(m->f, -EINVAL, "code and entry_point are two programs");
	if (m->plan.entry == 0)
		return fault_say(m->f, -EINVAL, "entry_point is the path of none of the files");
	if (m->q->entry_point[0] == '-' || m->q->entry_point[0] == '@')
		return fault_say(m->f, -EINVAL, "entry_point must not begin with \"-\" or \"@\"");
	if (!(m->plan.files[m->plan.entry - 1].mode & 0400))
		return fault_say(m->f, -EINVAL, "entry_point: its mode does not let it be read");
	return 0;
}

static void on_clash(void *ctx, unsigned file, const char *what)
{
	const struct making *m = ctx;

	if (m->f->code == 0)
		(void)fault_say(m->f, -EINVAL, "files[%u]: the path \"%.100s\" %s", file,
			m->plan.files[file].path, what);
}

static int check_sums(const struct making *m, const struct inputs_bounds *b)
{
	const char *main_file = m->q->entry_point ? NULL : b->main_file;
	const struct run_limits *limits = b->limits;
	const struct settings *s = b->settings;
	struct inputs_need need;
	uint64_t sum = 0;
	int r = inputs_plan_look(&m->plan, main_file, on_clash, (void *)(uintptr_t)m, &need);

	if (r < 0)
		return fault_set(m->f, r, "inputs");
	if (m->f->code < 0)
		return m->f->code;
	for (unsigned i = 0; i < m->plan.file_count; i++)
		sum += m->plan.files[i].size;
	if (sum > s->input_bytes)
		return fault_say(m->f, -EINVAL,
			"the files hold %llu bytes; %llu are allowed here (input-bytes)",
			(unsigned long long)sum, (unsigned long long)s->input_bytes);
	if (need.memory_bytes > limits->memory_bytes / 2)
		return fault_say(m->f, -EINVAL,
			"the files take %llu bytes of memory, over half of the run's %llu (memory)",
			(unsigned long long)need.memory_bytes,
			(unsigned long long)limits->memory_bytes);
	if (need.inodes + 2 > s->workspace_inodes)
		return fault_say(m->f, -EINVAL,
			"%llu files and directories do not fit into the workspace, which holds %u",
			(unsigned long long)need.inodes, s->workspace_inodes - 2);
	return 0;
}

static int take(struct making *m, const struct inputs_bounds *b)
{
	int r = take_args(m);

	if (r == 0)
		r = take_env(m);
	for (size_t i = 0; r == 0 && i < m->q->file_count; i++)
		r = take_file(m, i);
	m->plan.file_count = (unsigned)m->q->file_count;
	if (r == 0)
		r = take_entry(m);
	return r == 0 ? check_sums(m, b) : r;
}

int request_inputs_make(const struct gbx_request *q, const struct inputs_bounds *b, char **ret_blob,
	size_t *ret_len, struct fault *f)
{
	cleanup_free struct inputs_plan_file *files = NULL;
	struct making m = { .q = q, .f = f };
	int r;

	if (q->file_count > INPUTS_FILES_MAX || (q->file_count && !q->files))
		return fault_say(f, -EINVAL,
			"files: %zu of them, or none where some should be; "
			"at most %u",
			q->file_count, INPUTS_FILES_MAX);
	files = calloc(q->file_count + 1, sizeof(*files));
	if (!files)
		return fault_set(f, -ENOMEM, "inputs");
	m.plan.files = files;
	r = take(&m, b);
	if (r < 0)
		return r;
	r = inputs_plan_build(&m.plan, ret_blob, ret_len);
	return r < 0 ? fault_set(f, r, "inputs") : 0;
}

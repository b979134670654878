#include "priv/supervisor/engine.h"

#include "base/log.h"
#include "base/own.h"
#include "kernel/mount.h"
#include "kernel/needs.h"
#include "kernel/process.h"
#include "kernel/sys.h"
#include "kernel/tun.h"
#include "priv/launch/gate.h"
#include "priv/supervisor/boot.h"
#include "priv/supervisor/images.h"
#include "priv/supervisor/offered.h"
#include "priv/supervisor/scope.h"
#include "wire/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The box's program, carried in this one (src/box/meson.build). */
extern const unsigned char box_image_start[], box_image_end[];
extern const unsigned char gate_image_start[], gate_image_end[];

void engine_clear(struct engine *e)
{
	memset(e, 0, sizeof(*e));
	cgroup_clear(&e->inits);
	cgroup_clear(&e->zygotes);
	cgroup_clear(&e->others);
	cgroup_clear(&e->collectors);
	cgroup_clear(&e->gates);
	e->gate_fd = e->policy_fd = -1;
	taskstats_clear(&e->records);
	e->lease.fd = e->self_fd = e->box_fd = -1;
}

/* What a child would inherit and must not. */
static int clean_self(struct fault *f)
{
	struct rlimit files = { 0 };
	int r;

	(void)umask(077);
	r = sys.setgroups(0, NULL);
	if (r < 0)
		return fault_set(f, r, "drop supplementary groups");
	r = sys.prlimit(0, RLIMIT_NOFILE, NULL, &files);
	files.rlim_cur = files.rlim_max;
	if (r == 0)
		r = sys.prlimit(0, RLIMIT_NOFILE, &files, NULL);
	return r < 0 ? fault_set(f, r, "open files limit") : 0;
}

static int check_rights(struct layers *l, struct fault *f)
{
	if (geteuid() != 0)
		return fault_say(f, -EPERM,
			"Glovebox needs root: it makes namespaces, mounts and control groups. "
			"Start it with sudo");
	return layers_probe_caps(l, f);
}

static int open_images(struct engine *e, struct fault *f)
{
	int r = process_self_image(&e->self_fd, f);

	if (r == 0)
		r = process_image("glovebox-box", box_image_start,
			(size_t)(box_image_end - box_image_start), &e->box_fd, f);
	return r;
}

static void log_degraded(const struct engine *e)
{
	for (unsigned i = 0; i < LAYER_MAX; i++) {
		if (!(e->layers.in_force & LAYER_BIT(i)))
			log_warn("layer_missing", "layer=%s lost=\"%s\" why=%s", layer_word(i),
				layer_lost(i), LQ(e->layers.why[i].text));
	}
	if (e->layers.core_pattern_piped)
		log_warn("core_pattern",
			"why=\"core_pattern is a pipe: crashes of other programs feed a root "
			"program; cells are kept from it by RLIMIT_CORE 1\"");
}

/* Inits are ours and small; the limits are for a bug, not for a tenant. */
static const struct cgroup_limits inits_limits = { UINT64_C(1) << 30, 1000, 4096 };
/* Far above what modules need: what an import leaves running is to be found and ended. */
static const struct cgroup_limits zygotes_limits = { UINT64_C(16) << 30, 1000, 256 };

/* Each takes some 200 KiB, and the memory of its names; all of them together one CPU. */
static const struct cgroup_limits collectors_limits = { UINT64_C(1) << 30, 1000, 1024 };

/* Of all gates together: their stacks, and their sockets' buffers; no run's limits count them. */
static const struct cgroup_limits gates_limits = { UINT64_C(2) << 30, 2000, 1024 };

/* The settings name an image: its root, and what starts programs in it, take the place of the
 * host's. The host's warm interpreter goes with one that is like it only. */
static int use_image(struct engine *e, struct fault *f)
{
	struct settings *s = &e->settings;
	struct image_record record;
	cleanup_fd int root = -1;
	int r;

	if (!s->image[0])
		return 0;
	r = images_open(s->image_dir, s->image, &record, &root, f);
	if (r == 0) {
		r = view_open_image(&e->image, root, 0, f);
		if (r < 0)
			(void)fault_wrap(f, "image %s", s->image);
	}
	if (r < 0)
		return r;
	image_runtime(&record, &s->runtime);
	/* What the client has to know of number 0. */
	memcpy(e->languages.of[0].offer.main_file, s->runtime.main_file,
		sizeof(s->runtime.main_file));
	e->languages.of[0].offer.reports = s->runtime.reports;
	e->languages.of[0].offer.limits = record.start.limits;
	memset(e->languages.of[0].offer.suffixes, 0, sizeof(e->languages.of[0].offer.suffixes));
	if (!image_is_warm(&record))
		s->cold = 1;
	if (record.start.preload[0])
		memcpy(s->preload, record.start.preload, sizeof(s->preload));
	return 0;
}

/* The groups of those that are nobody's cell. */
static int make_groups(struct engine *e, struct fault *f)
{
	int r = cgroup_create(&e->tree, "inits", &inits_limits, &e->inits, f);

	if (r == 0)
		r = cgroup_create(&e->tree, "zygotes", &zygotes_limits, &e->zygotes, f);
	/* What images import at requests' wish does not slow down, or end, the server's own. */
	if (r == 0)
		r = cgroup_create(&e->tree, "image-zygotes", &zygotes_limits, &e->others, f);
	if (r == 0)
		r = cgroup_create(&e->tree, "collectors", &collectors_limits, &e->collectors, f);
	if (r == 0 && e->settings.network)
		r = cgroup_create(&e->tree, "gates", &gates_limits, &e->gates, f);
	return r;
}

static int open_gate(struct engine *e, struct fault *f)
{
	int r = process_image("glovebox-gate", gate_image_start,
		(size_t)(gate_image_end - gate_image_start), &e->gate_fd, f);

	return r < 0 ? r : gate_check(e->gate_fd, f);
}

/* May runs have a network? By itself only where `listen` is local, and where it can be given; `on`
 * where it cannot is no start. */
static int settle_network(struct engine *e, struct fault *f)
{
	struct settings *s = &e->settings;
	bool wanted = s->network == SWITCH_ON;
	struct fault *absent = &e->no_network;

	s->network_why = NETWORK_WHY_LOCAL;
	if (s->network == SWITCH_OFF)
		s->network_why = NETWORK_WHY_IS_OFF;
	else if (wanted)
		s->network_why = NETWORK_WHY_IS_ON;
	else if (e->listens && !listen_is_local(&s->listen))
		s->network_why = NETWORK_WHY_BEYOND;
	s->network = wanted || s->network_why == NETWORK_WHY_LOCAL;
	if (!s->network)
		return 0;
	if (tun_check(absent) < 0)
		s->network_why = NETWORK_WHY_NO_DEVICE;
	else if (open_gate(e, absent) < 0)
		s->network_why = NETWORK_WHY_NO_GATE;
	if (absent->code == 0)
		return 0;
	s->network = 0;
	if (wanted)
		*f = *absent;
	else
		log_info("no_network", "why=%s", LQ(absent->text));
	return wanted ? f->code : 0;
}

static int prepare(struct engine *e, struct fault *f)
{
	int swept, r = lease_take(&e->lease, f);
	char record[CGROUP_RECORD_MAX];

	if (r < 0)
		return r;
	e->settings.uid_base += e->lease.number * LEASE_UIDS;
	r = scope_enter(e->settings.cgroup, f);
	if (r < 0)
		return r;
	swept = (int)lease_sweep(&e->lease, cgroup_sweep_record);
	r = cgroup_tree_open(&e->tree, e->lease.number, e->settings.cgroup, f);
	if (r < 0)
		return r;
	e->tree_open = true;
	cgroup_record(&e->tree, record);
	r = lease_record(&e->lease, record);
	if (r < 0)
		return fault_set(
			f, r, "write down the groups in " LEASE_DIR "/lease.%u", e->lease.number);
	/* And what died before it had written a record. */
	swept += cgroup_sweep(&e->tree, lease_is_dead, &e->lease);
	if (swept > 0)
		log_warn("swept", "groups=%d why=\"an instance died without cleaning up\"", swept);
	layers_probe_cgroups(&e->layers, &e->tree);
	r = mount_make_private(f);
	if (r == 0)
		r = view_open(&e->view, &e->settings.runtime, f);
	if (r < 0) {
		layers_refuse_root(&e->layers, f);
		return r;
	}
	r = use_image(e, f);
	if (r < 0)
		return r;
	r = settle_network(e, f);
	if (r == 0)
		r = make_groups(e, f);
	if (r < 0)
		return r;
	e->factory = (struct cell_factory){
		.tree = &e->tree,
		.inits = &e->inits,
		.zygotes = &e->zygotes,
		.image_zygotes = &e->others,
		.collectors = &e->collectors,
		.gates = &e->gates,
		.policy_fd = e->policy_fd,
		.usual = e->settings.def,
		.view = e->image.image[0] ? &e->image : &e->view,
		.runtime = &e->settings.runtime,
		.box_image_fd = e->box_fd,
		.gate_image_fd = e->gate_fd,
		.uid_base = e->settings.uid_base,
		.workspace_inodes = e->settings.workspace_inodes,
		.runs_max = e->settings.cage_runs,
		.degraded = e->settings.allow_degraded,
	};
	offer_limits(&e->languages.of[0].offer, &e->settings, &e->factory.usual);
	factories_open(&e->factories, &e->factory, &e->languages, &e->settings);
	(void)layers_probe_cell(&e->layers, &e->factory);
	return 0;
}

/* Not a layer: without records a run is answered half a millisecond later. They are opened
 * before the first child is made and looked at after the last one has ended, so that it is
 * known and not believed that they come: outside of the host's network namespace none do.
 * A library's one run has to wait for the end of its pipes anyway. */
static void try_records(struct engine *e)
{
	struct taskstats_exit end;

	if (e->records.fd >= 0) {
		while (taskstats_next(&e->records, &end) == 1)
			continue;
		if (e->records.heard > 0)
			return;
		(void)fault_say(
			&e->no_records, -ENOMSG, "taskstats: nothing came of a child's end");
		taskstats_close(&e->records);
	}
	log_info("exit_records", "state=off why=%s", LQ(e->no_records.text));
}

int engine_open(struct engine *e, bool pooled, struct fault *f)
{
	struct boot boot = { &e->settings, &e->languages, -1 };
	int r = check_rights(&e->layers, f);

	if (r == 0)
		r = needs_check(f);
	if (r == 0)
		r = clean_self(f);
	if (r == 0)
		r = open_images(e, f);
	if (r == 0 && pooled && taskstats_open(&e->records, &e->no_records) < 0)
		taskstats_clear(&e->records);
	if (r == 0)
		r = boot_settings(e->self_fd, &boot, f);
	if (r < 0)
		return r;
	e->policy_fd = boot.policy_fd;
	if (!pooled)
		e->settings.pool_size = 0;
	layers_probe_kernel(&e->layers, &e->settings);
	r = prepare(e, f);
	if (r < 0) {
		/* A missing layer explains more than the step that stumbled over it. */
		int missing = layers_explain(&e->layers, e->settings.allow_degraded, f);

		return missing < 0 ? missing : r;
	}
	r = layers_decide(&e->layers, e->settings.allow_degraded, f);
	if (r == 0) {
		log_degraded(e);
		if (pooled)
			try_records(e);
	}
	return r;
}

void engine_close(struct engine *e)
{
	taskstats_close(&e->records);
	(void)cgroup_destroy(&e->tree, &e->inits);
	(void)cgroup_destroy(&e->tree, &e->zygotes);
	(void)cgroup_destroy(&e->tree, &e->others);
	(void)cgroup_destroy(&e->tree, &e->collectors);
	(void)cgroup_destroy(&e->tree, &e->gates);
	if (e->tree_open) {
		cgroup_tree_close(&e->tree);
		/* Confirms that the own groups are gone, and clears the record. Not from inside
		 * of one of them: then the next start does it. */
		if (!e->tree.moved)
			(void)lease_sweep(&e->lease, cgroup_sweep_record);
	}
	e->tree_open = false;
	drop_fd(&e->self_fd);
	drop_fd(&e->box_fd);
	drop_fd(&e->gate_fd);
	drop_fd(&e->policy_fd);
	lease_release(&e->lease);
}

void engine_hello(const struct engine *e, uint32_t port, struct msg_hello *ret)
{
	int memory = e->tree.of[CGROUP_MEMORY];

	*ret = (struct msg_hello){
		.settings = e->settings,
		.layers = e->layers.in_force,
		.cgroup_version = memory < 0 ? 2 : (uint32_t)e->tree.h[memory].version,
		.memory_counter = memory < 0                       ? MEMORY_COUNTER_NONE
				  : e->tree.h[memory].version == 1 ? MEMORY_COUNTER_V1_PEAK
								   : MEMORY_COUNTER_V2_PEAK,
		.core_pattern_piped = e->layers.core_pattern_piped,
		.port = port,
		.languages = e->languages.count,
	};
}

int engine_offer_some(const struct engine *e, int channel_fd, uint32_t *numbers)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < e->languages.count; i++) {
		const struct msg_offer m = { i, e->languages.editions[i],
			e->languages.of[i].offer };

		if (!(*numbers >> i & 1))
			continue;
		r = channel_send(channel_fd, MSG_OFFER, &m, NULL);
		if (r == 0)
			*numbers &= ~(UINT32_C(1) << i);
	}
	return r;
}

/* 0 or a negative errno of channel_send(). */
static int list_one(const struct engine *e, int channel_fd, uint32_t number)
{
	const struct msg_inventory m = { number, e->languages.editions[number] };
	const struct language *l = &e->languages.of[number];
	struct fault f = { 0 };
	cleanup_fd int fd =
		images_open_inventory(e->settings.image_dir, l, e->languages.digests[number], &f);

	/* It has gone since: then its number is told of anew. */
	if (fd >= 0)
		return channel_send(channel_fd, MSG_INVENTORY, &m, &fd);
	log_warn("inventory", "name=%s why=%s", LQ(l->runtime.name), LQ(f.text));
	return 0;
}

int engine_list_some(const struct engine *e, int channel_fd, uint32_t *numbers)
{
	int r = 0;

	for (uint32_t i = 0; i < LANGUAGES_MAX && r == 0; i++) {
		if (!(*numbers >> i & 1))
			continue;
		if (i < e->languages.count && offered_is(&e->languages, i))
			r = list_one(e, channel_fd, i);
		if (r == 0)
			*numbers &= ~(UINT32_C(1) << i);
	}
	return r;
}

int engine_offer(const struct engine *e, int channel_fd)
{
	uint32_t all = UINT32_MAX;

	return engine_offer_some(e, channel_fd, &all);
}

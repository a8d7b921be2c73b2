/* The records of one CPU in their order; see stream.h. */
#include "drivers/perf/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/perf/sys.h"
#include "engine/error.h"

/* How often a CPU is read for a reading without a switch: at some microseconds each it costs a tick
 * less than a millisecond where there is none. */
#define TRIES_STILL 32

int csw_perf_stream_init(struct csw_perf_stream *s, unsigned first)
{
	int ret;

	if (!s->common->features.turns)
		return 0;
	ret = csw_perf_turns_init(&s->turns, &s->group, s->common->plan->nr_counters, &s->now,
				  first % s->group.nr_sets);
	s->seen = s->now;
	return ret;
}

void csw_perf_stream_free(struct csw_perf_stream *s)
{
	csw_perf_turns_free(&s->turns);
	csw_perf_group_close(&s->group);
}

/* ---- on, readings, off ---- */

static const struct csw_perf_set *enabled_set(const struct csw_perf_stream *s)
{
	return &s->group.sets[s->now.set];
}

int csw_perf_stream_enable(struct csw_perf_stream *s, bool there, struct csw_error *err)
{
	/* Only the leader is disabled: enabling it sets off its group. */
	int ret = csw_perf_sys.ioctl(enabled_set(s)->leader, PERF_EVENT_IOC_ENABLE, 0);

	if (ret < 0)
		return csw_error_set(err, ret, "cannot switch on the counters of CPU %u: %s",
				     s->group.cpu, strerror(-ret));
	s->enabled_ns = csw_perf_sys.now_ns();
	/* Not allowed on that CPU (a cpuset): the first switch record will tell who ran. */
	s->starter = there ? (int32_t)syscall(SYS_gettid) : -1;
	return 0;
}

/* Reads one CPU's counters into rec, which already says what it is. */
static int read_stream(const struct csw_perf_stream *s, struct csw_record *rec,
		       struct csw_error *err)
{
	int ret = csw_perf_set_read(enabled_set(s), &s->common->features, rec);

	if (ret == 0 && s->common->features.turns)
		ret = csw_perf_turns_sum(&s->turns, &s->now, rec);
	if (ret < 0)
		return csw_error_set(err, ret, "cannot read the counters of CPU %u: %s",
				     s->group.cpu, strerror(-ret));
	rec->lost_other = csw_perf_group_sideband_lost(&s->group, &s->common->features);
	return 0;
}

/* Reads the counters into a cut, which is added to the stream's by whoever knows its kind. */
static int read_cut(struct csw_perf_stream *s, struct csw_perf_cut *cut, struct csw_error *err)
{
	int ret;

	*cut = (struct csw_perf_cut){
		.read = { .type = CSW_RECORD_READ, .cpu = s->group.cpu, .pid = -1, .tid = -1 }
	};
	ret = read_stream(s, &cut->read, err);
	cut->read.time_ns = csw_perf_sys.now_ns();
	s->gone |= (cut->read.flags & CSW_RECORD_DETACHED) != 0;
	return ret;
}

/* A tick's that is still there is none any more: this one tells all that it told. */
static struct csw_perf_cut *tick_cut(struct csw_perf_stream *s)
{
	if (!s->nr_cuts || s->cuts[s->nr_cuts - 1].kind != CSW_PERF_CUT_TICK)
		s->nr_cuts++;
	return &s->cuts[s->nr_cuts - 1];
}

/*
 * A reading that no switch tears apart. The kernel has the CPU bring its clocks and hardware
 * counters up to date, by an interrupt, and copies all values only then, while that CPU runs on:
 * software events are counted further meanwhile. But a switch leaves records, and while one is
 * under way the interrupt waits. So where the ring's head stays the same from before a reading to
 * behind the next one there was no switch in the first, nor from there to its time. 1: *cut is such
 * a reading; 0: the CPU switches too often. Then its last sample has just been.
 */
static int read_still(struct csw_perf_stream *s, struct csw_perf_cut *cut, struct csw_error *err)
{
	uint64_t before = csw_perf_ring_written(&s->group.ring);
	int ret = read_cut(s, cut, err);

	for (unsigned i = 0; i < TRIES_STILL && ret == 0; i++) {
		uint64_t between = csw_perf_ring_written(&s->group.ring);
		struct csw_perf_cut next;

		ret = read_cut(s, &next, err);
		if (ret < 0 || csw_perf_ring_written(&s->group.ring) == before)
			return ret < 0 ? ret : 1;
		before = between;
		*cut = next;
	}
	return ret;
}

int csw_perf_stream_tick(struct csw_perf_stream *s, struct csw_error *err)
{
	struct csw_perf_cut cut;
	int still = read_still(s, &cut, err);

	if (still > 0)
		*tick_cut(s) = cut;
	return still < 0 ? still : 0;
}

/* ---- turns ---- */

static int explain_turn(const struct csw_perf_stream *s, int ret, struct csw_error *err)
{
	return csw_error_set(err, ret, "cannot let the counters of CPU %u take turns: %s",
			     s->group.cpu, strerror(-ret));
}

/* Each turn begins with a whole period: what the set had counted of its last one before is said to
 * be open (CSW_RECORD_TURN). */
static int enable_next(const struct csw_perf_stream *s)
{
	uint64_t sav = s->common->plan->trigger.sav;
	int leader = enabled_set(s)->leader, ret = 0;

	if (sav > 1)
		ret = csw_perf_sys.ioctl(leader, PERF_EVENT_IOC_PERIOD, (unsigned long)&sav);
	return ret < 0 ? ret : csw_perf_sys.ioctl(leader, PERF_EVENT_IOC_ENABLE, 0);
}

int csw_perf_stream_turn(struct csw_perf_stream *s, struct csw_error *err)
{
	struct csw_perf_cut *off = &s->cuts[s->nr_cuts], *on = off + 1;
	uint64_t before_ns = csw_perf_sys.now_ns(), off_ns;
	int ret = csw_perf_sys.ioctl(enabled_set(s)->leader, PERF_EVENT_IOC_DISABLE, 0);

	if (ret < 0)
		return explain_turn(s, ret, err);
	off_ns = csw_perf_sys.now_ns();
	ret = read_cut(s, off, err);
	if (ret < 0)
		return ret;
	if (s->gone) {
		s->nr_cuts++; /* went offline: like a tick, and its last one */
		return 0;
	}
	off->kind = CSW_PERF_CUT_OFF;
	off->before_ns = before_ns;
	off->read.time_ns = off_ns;
	off->read.flags |= CSW_RECORD_TURN;
	*on = *off;
	on->kind = CSW_PERF_CUT_ON;
	on->read.flags &= ~CSW_RECORD_TURN;
	on->read.on = 0;
	csw_perf_turns_next(&s->turns, &s->now, &off->read);
	ret = enable_next(s);
	if (ret < 0)
		return explain_turn(s, ret, err);
	on->read.time_ns = csw_perf_sys.now_ns();
	s->nr_cuts += 2;
	return 0;
}

bool csw_perf_stream_may_turn(const struct csw_perf_stream *s)
{
	return s->group.nr_sets > 1 && !s->gone && s->nr_cuts <= CSW_PERF_CUTS_MAX - 3;
}

/* After a disable no value moves any more; so the last reading fits the last record. */
int csw_perf_stream_disable(struct csw_perf_stream *s, bool there, struct csw_error *err)
{
	int ret;

	s->disabling_ns = csw_perf_sys.now_ns();
	ret = csw_perf_sys.ioctl(enabled_set(s)->leader, PERF_EVENT_IOC_DISABLE, 0);
	if (ret < 0)
		return csw_error_set(err, ret, "cannot switch off the counters of CPU %u: %s",
				     s->group.cpu, strerror(-ret));
	s->disabled_ns = csw_perf_sys.now_ns();
	s->disabled = true;
	s->stop = (struct csw_record){
		.type = CSW_RECORD_STOP,
		.cpu = s->group.cpu,
		.time_ns = s->disabled_ns,
		.pid = there ? getpid() : -1,
		.tid = there ? (int32_t)syscall(SYS_gettid) : -1,
	};
	ret = read_stream(s, &s->stop, err);
	s->gone |= (s->stop.flags & CSW_RECORD_DETACHED) != 0;
	return ret;
}

/* ---- the order of records ---- */

static void make_start(const struct csw_perf_stream *s, uint64_t time_ns, struct csw_record *rec)
{
	memset(rec, 0, sizeof(*rec));
	rec->type = CSW_RECORD_START;
	rec->cpu = s->group.cpu;
	rec->time_ns = time_ns < s->enabled_ns ? time_ns : s->enabled_ns;
	rec->tid = s->starter;
	rec->pid = s->starter < 0 ? -1 : getpid();
	/* Counters opened disabled stand at 0 until they are enabled. */
	rec->nr_values = 1 + s->common->plan->nr_counters;
}

static bool is_about_cpu(uint32_t type)
{
	return type == CSW_RECORD_SWITCH_OUT || type == CSW_RECORD_SWITCH_IN ||
	       type == CSW_RECORD_LOST || type == CSW_RECORD_THROTTLE ||
	       type == CSW_RECORD_UNTHROTTLE;
}

/* When the counters went off, in a call that began at from_ns and had returned at to_ns, after
 * which they had been enabled for so long. This thread may lose its CPU within the call, after they
 * are off: such switches have no sample and belong to no counter. How long the counters were
 * enabled since the last sample tells the moment; it is another clock than the records', so it only
 * decides between the times on both sides of the call. */
static uint64_t off_ns(const struct csw_perf_stream *s, uint64_t from_ns, uint64_t to_ns,
		       uint64_t enabled_ns)
{
	uint64_t off = s->sampled_ns + (enabled_ns - s->sampled_enabled_ns);

	if (!s->sampled_ns || off > to_ns)
		return to_ns;
	return off < from_ns ? from_ns : off;
}

/* When they went off for good; as long as a turn's end is still to come, the last sample says
 * nothing of that. */
static uint64_t end_ns(const struct csw_perf_stream *s)
{
	if (s->seen.set != s->now.set)
		return s->disabled_ns;
	return off_ns(s, s->disabling_ns, s->disabled_ns, s->stop.enabled_ns);
}

/* Where a record stands towards counting. The side-band of a CPU runs before its counters and after
 * them. */
static bool is_outside(const struct csw_perf_stream *s, const struct csw_record *rec)
{
	if (!is_about_cpu(rec->type))
		return false;
	return (s->state == CSW_PERF_STREAM_BEFORE && rec->time_ns <= s->enabled_ns) ||
	       (s->disabled && rec->time_ns > end_ns(s));
}

static bool opens_stream(const struct csw_perf_stream *s, const struct csw_record *rec)
{
	/* A sample proves that counting has begun, a switch record only by its time. */
	return s->state == CSW_PERF_STREAM_BEFORE && s->enabled_ns &&
	       (rec->type == CSW_RECORD_SAMPLE || is_about_cpu(rec->type));
}

static uint64_t cut_ns(const struct csw_perf_stream *s, const struct csw_perf_cut *cut)
{
	if (cut->kind != CSW_PERF_CUT_OFF)
		return cut->read.time_ns;
	return off_ns(s, cut->before_ns, cut->read.time_ns, cut->read.enabled_ns);
}

/* Samples of a set stand between the beginning of its turn and its end, whatever their times. A
 * tick's reading stands before the first sample that counted more. Of all other records the time
 * decides. foreign: a sample of another set than those before it. */
static bool cut_comes_before(const struct csw_perf_stream *s, const struct csw_record *rec,
			     bool foreign)
{
	const struct csw_perf_cut *cut = &s->cuts[0];

	if (!s->nr_cuts || s->state != CSW_PERF_STREAM_COUNTING)
		return false;
	if (rec->type != CSW_RECORD_SAMPLE)
		return rec->time_ns > cut_ns(s, cut);
	return foreign || (cut->kind == CSW_PERF_CUT_TICK && rec->values[0] > cut->read.values[0]);
}

/* At most one turn's end is waiting, so that what begins with it is the turn that is now. */
static int hand_out_cut(struct csw_perf_stream *s, uint64_t latest_ns, struct csw_record *rec)
{
	struct csw_perf_cut *cut = &s->cuts[0];

	*rec = cut->read;
	rec->time_ns = cut_ns(s, cut);
	if (rec->time_ns > latest_ns)
		rec->time_ns = latest_ns;
	if (cut->kind == CSW_PERF_CUT_ON) {
		s->seen = s->now;
		s->sampled_ns = 0; /* that was another set's */
	}
	memmove(cut, cut + 1, --s->nr_cuts * sizeof(*cut));
	return 1;
}

/* The ring is read out: what is left to say. */
static int finish_ring(struct csw_perf_stream *s, struct csw_record *rec)
{
	if (s->state == CSW_PERF_STREAM_BEFORE && (s->nr_cuts || s->disabled)) {
		make_start(s, s->enabled_ns, rec);
		s->state = CSW_PERF_STREAM_COUNTING;
		return 1;
	}
	if (s->nr_cuts && s->state == CSW_PERF_STREAM_COUNTING)
		return hand_out_cut(s, UINT64_MAX, rec);
	if (!s->disabled || s->state == CSW_PERF_STREAM_ENDED)
		return 0;
	*rec = s->stop;
	rec->time_ns = end_ns(s);
	s->state = CSW_PERF_STREAM_ENDED;
	return 1;
}

/*
 * The kernel fills in a sample once for all software events that overflow together, in the form
 * that the first of them asked for: where another program counts the same event by another clock,
 * or in another PID namespace, our sample has its time and its TID. So a sample's time counts only
 * within the side-band records around it, which are ours alone. Where only samples follow, as of a
 * trigger that is no switch, it is at least no later than the snapshot. 0: nothing follows yet.
 */
static int bound_time(struct csw_perf_stream *s, struct csw_record *rec)
{
	bool last, leaves;
	uint64_t latest_ns = csw_perf_ring_next_time(
		&s->group.ring, csw_perf_time_from_end(&s->common->form), &last, &leaves);

	if (!latest_ns && last && !s->disabled)
		return 0;
	if (!latest_ns)
		latest_ns = s->disabled ? s->disabled_ns : s->common->snapshot_ns;
	if (rec->time_ns > latest_ns ||
	    (leaves && s->common->plan->trigger.phase == CSW_PHASE_BEFORE &&
	     latest_ns - rec->time_ns > CSW_PERF_SAMPLE_TO_SWITCH_NS))
		rec->time_ns = latest_ns;
	if (rec->time_ns < s->last_ns)
		rec->time_ns = s->last_ns;
	return 1;
}

/* What stands before the record just decoded, which stays for the next call: 1 and *rec, else 0. */
static int precede(struct csw_perf_stream *s, struct csw_record *rec, bool foreign)
{
	if (opens_stream(s, rec)) {
		make_start(s, rec->time_ns, rec);
		s->state = CSW_PERF_STREAM_COUNTING;
		return 1;
	}
	return cut_comes_before(s, rec, foreign) ? hand_out_cut(s, rec->time_ns, rec) : 0;
}

/* Is a sample of the set whose turn comes behind the one that the stream is in? Where another
 * program counts the same software event the id may be that program's, as time and TID may
 * (bound_time); then the time decides. */
static bool is_of_next_turn(const struct csw_perf_stream *s, const struct csw_record *rec,
			    uint64_t id)
{
	if (id == s->group.sets[s->seen.set].id)
		return false;
	for (unsigned i = 0; i < s->group.nr_sets; i++) {
		if (id == s->group.sets[i].id)
			return true;
	}
	for (unsigned i = 0; i < s->nr_cuts; i++) {
		/* Between the two there is no sample. */
		if (s->cuts[i].kind != CSW_PERF_CUT_TICK)
			return s->cuts[i].kind == CSW_PERF_CUT_ON ||
			       rec->time_ns > cut_ns(s, &s->cuts[i]);
	}
	return false;
}

/* A sample where counters take turns: the sums over all sets, once the turn of its own has been
 * handed out. -EINVAL: such a turn was never begun. */
static int sum_up(const struct csw_perf_stream *s, const struct perf_event_header *raw,
		  struct csw_record *rec, bool *foreign)
{
	*foreign = is_of_next_turn(s, rec, csw_perf_sample_id(raw));
	if (!*foreign)
		return csw_perf_turns_sum(&s->turns, &s->seen, rec);
	return s->nr_cuts ? 0 : -EINVAL;
}

int csw_perf_stream_next(struct csw_perf_stream *s, struct csw_record *rec)
{
	struct csw_perf_ring *r = &s->group.ring;

	for (;;) {
		int ret;
		bool foreign = false;
		const struct perf_event_header *raw = csw_perf_ring_peek(r, &ret);

		if (!raw)
			return ret < 0 ? ret : finish_ring(s, rec);
		ret = csw_perf_decode(&s->common->form, raw, rec);
		if (ret < 0)
			return ret;
		if (ret > 0 && rec->type == CSW_RECORD_SAMPLE) {
			if (!bound_time(s, rec))
				return 0;
			if (s->common->features.turns && sum_up(s, raw, rec, &foreign) < 0)
				return -EINVAL;
		}
		if (ret > 0 && !is_outside(s, rec) && precede(s, rec, foreign))
			return 1;
		if (ret > 0)
			s->last_ns = rec->time_ns;
		if (ret > 0 && rec->type == CSW_RECORD_SAMPLE) {
			s->sampled_ns = rec->time_ns;
			s->sampled_enabled_ns = rec->enabled_ns;
		}
		csw_perf_ring_consume(r, raw);
		if (ret > 0 && !is_outside(s, rec))
			return 1;
	}
}

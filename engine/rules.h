/*
 * Whose is a slice? The slicing rules, once: plain functions over one CPU's state, for the engine
 * and for a BPF program.
 *
 * They see the records of one CPU in ring order and rule on two accounts:
 *   time      a *charge* gives a run's time on the CPU to its owner; switch records cut it, so it
 * needs no sample; counters  a *slice* gives what was counted between two samples to whoever ran
 * between them.
 *
 * The owner comes from the side-band (SWITCH records); a sample's own TID is not asked: it may be
 * the outgoing thread, the incoming one or -1. A switch belongs to the sample that it caused,
 * wherever the two stand in the ring: the software event's sample comes before SWITCH_OUT, a load
 * in the kernel's switch code between OUT and IN, a late interrupt after IN.
 *
 * Owners are handles that are only compared (the engine's are row numbers). No libc, no loops
 * without a constant bound.
 *
 * Invariant: every ns between START and STOP is charged to exactly one owner; every counter delta
 * falls into exactly one slice.
 */
#ifndef CSW_ENGINE_RULES_H
#define CSW_ENGINE_RULES_H

typedef unsigned long long csw_u64;
typedef unsigned int csw_u32;
typedef unsigned char csw_u8;

/* Handles below CSW_OWNER_FIRST are no threads. */
#define CSW_OWNER_IDLE 0u
#define CSW_OWNER_UNKNOWN 1u
#define CSW_OWNER_LOST 2u /* nobody can tell: the records are lost */
#define CSW_OWNER_FIRST 4u
#define CSW_OWNER_EXITED 0xffffffffu /* a record's -1: an exiting thread, whoever it was */

#define CSW_CHARGES_MAX 4u    /* one record never ends more than three runs */
#define CSW_STRETCH_OWNERS 8u /* more distinct owners between two samples are not told apart */

enum csw_run_end {
	CSW_RUN_CUT,       /* not a switch: counting began or ended here, or records are missing */
	CSW_RUN_VOLUNTARY, /* the thread gave up the CPU */
	CSW_RUN_PREEMPTED, /* the CPU was taken from it */
	CSW_RUN_UNSEEN,    /* a switch known only from the other side's record */
};

enum csw_slice_class {
	CSW_SLICE_NONE,
	CSW_SLICE_EXACT, /* one proven owner */
	CSW_SLICE_IDLED, /* one thread, and the idle task whose own sample never came */
	CSW_SLICE_MIXED, /* several owners, or an unseen switch */
	CSW_SLICE_LOST,  /* records are missing or the trigger was stopped in it */
};

/* Why trigger occurrences beyond the sample's own have no sample. */
enum csw_missing {
	CSW_MISSING_UNSEEN,
	CSW_MISSING_LOST,
	CSW_MISSING_THROTTLED,
};

/* What the record behind a sample says of who ran. */
struct csw_behind {
	csw_u8 is_in;          /* it is a SWITCH_IN, of subject; */
	csw_u32 subject, prev; /* prev (or EXITED) ran before */
};

/* Who ran between the last sample and now. */
struct csw_stretch {
	csw_u32 nr; /* of owner[]; CSW_STRETCH_OWNERS + 1: too many to tell apart */
	csw_u32 owner[CSW_STRETCH_OWNERS];
	csw_u64 ns[CSW_STRETCH_OWNERS];
	csw_u64 from_ns; /* time of the sample that it began with */
	csw_u64 to_ns;   /* ... and of the one that ended it */
};

struct csw_cpu_state {
	csw_u32 owner;        /* who runs now */
	csw_u32 left;         /* who made room for it */
	csw_u64 since_ns;     /* the owner's time is charged up to here */
	csw_u64 last_ns;      /* time of the last record */
	csw_u64 trigger;      /* the trigger's count at the last sample */
	long long open;       /* occurrences not yet accounted for by a sample: below sav, but for
				 hardware skid */
	csw_u32 switches;     /* seen since the last sample, without the one that caused it */
	csw_u8 counting;      /* between START and STOP */
	csw_u8 switching;     /* SWITCH_OUT was seen, its SWITCH_IN not yet */
	csw_u8 own_to_come;   /* the switch that caused the last sample was not seen yet */
	csw_u8 lost;          /* records are missing since the last sample */
	csw_u8 throttled;     /* the trigger is stopped */
	csw_u8 was_throttled; /* ... or was since the last sample */
	csw_u8 resumes;       /* the SWITCH_IN that comes now says who runs, and no more */
	csw_u8 whole;         /* the stretch began with a sample */
	struct csw_stretch stretch;
};

/* What does not change while counting. */
struct csw_rules {
	csw_u64 sav;
	csw_u32 per_switch; /* trigger occurrences per switch; 0: not known */
	csw_u8 before;      /* the trigger fires before SWITCH_OUT */
	csw_u8 inside;      /* ... between OUT and IN, or just after, per_switch times each */
};

struct csw_charge {
	csw_u32 owner;
	csw_u32 end; /* enum csw_run_end */
	csw_u64 ns;
};

/* The answer to one record. */
struct csw_ruling {
	csw_u32 nr_charges;
	struct csw_charge charge[CSW_CHARGES_MAX];
	csw_u32 unseen_switches; /* a record was missing at this switch */
	csw_u32 slice;           /* enum csw_slice_class */
	csw_u32 owner;           /* of an EXACT or IDLED slice */
	csw_u8 whole;            /* the slice began and ended with a sample */
	csw_u32 missing_why;     /* enum csw_missing */
	csw_u64 missing; /* trigger occurrences in it whose sample never came; a multiple of sav */
	struct csw_stretch stretch; /* of the slice */
};

/* An answer that says nothing yet. The rest counts only with what sets it: no record pays for what
 * it does not use. */
static inline void csw_ruling_begin(struct csw_ruling *r)
{
	r->nr_charges = 0;
	r->unseen_switches = 0;
}

static inline int csw_owner_proven(csw_u32 owner)
{
	return owner != CSW_OWNER_UNKNOWN && owner != CSW_OWNER_LOST;
}

static inline void csw_stretch_add(struct csw_stretch *st, csw_u32 owner, csw_u64 ns)
{
	csw_u32 i;

	for (i = 0; i < CSW_STRETCH_OWNERS && i < st->nr; i++) {
		if (st->owner[i] == owner) {
			st->ns[i] += ns;
			return;
		}
	}
	if (i < CSW_STRETCH_OWNERS && i == st->nr) {
		st->owner[i] = owner;
		st->ns[i] = ns;
	}
	if (st->nr <= CSW_STRETCH_OWNERS)
		st->nr++;
}

/* What is known of a stretch that ends at t. Nearly always it has one owner: the others' places are
 * not copied. */
static inline void csw_stretch_end(const struct csw_stretch *st, struct csw_stretch *out, csw_u64 t)
{
	csw_u32 i;

	out->nr = st->nr;
	out->from_ns = st->from_ns;
	out->to_ns = t;
	for (i = 0; i < CSW_STRETCH_OWNERS && i < st->nr; i++) {
		out->owner[i] = st->owner[i];
		out->ns[i] = st->ns[i];
	}
}

/* Ends a run at t: its time goes to `owner`. Returns it. */
static inline csw_u64 csw_rule_charge_time(struct csw_cpu_state *s, struct csw_ruling *r,
					   csw_u32 owner, csw_u64 t, csw_u32 end)
{
	struct csw_charge *c = &r->charge[r->nr_charges++ % CSW_CHARGES_MAX];

	c->owner = owner;
	c->end = end;
	c->ns = t > s->since_ns ? t - s->since_ns : 0;
	if (t > s->since_ns)
		s->since_ns = t;
	return c->ns;
}

/* The same, and it joins those that ran in this stretch. */
static inline void csw_rule_charge(struct csw_cpu_state *s, struct csw_ruling *r, csw_u32 owner,
				   csw_u64 t, csw_u32 end)
{
	csw_stretch_add(&s->stretch, owner, csw_rule_charge_time(s, r, owner, t, end));
}

/* The switch that caused the last sample: its run ended with the sample, which has charged it. */
static inline void csw_rule_own_switch(struct csw_cpu_state *s, struct csw_ruling *r, csw_u32 end)
{
	struct csw_charge *c = &r->charge[r->nr_charges++ % CSW_CHARGES_MAX];

	c->owner = s->owner;
	c->end = end;
	c->ns = 0;
	s->own_to_come = 0;
}

static inline void csw_rule_start(struct csw_cpu_state *s, csw_u64 t, csw_u32 owner,
				  csw_u64 trigger)
{
	*s = (struct csw_cpu_state){ .owner = owner,
				     .left = CSW_OWNER_EXITED,
				     .since_ns = t,
				     .last_ns = t,
				     .trigger = trigger,
				     .counting = 1,
				     .stretch = { .from_ns = t } };
}

/* A switch whose records contradict each other: somebody ran unseen. Nobody can be charged for the
 * time since the last one. */
static inline void csw_rule_contradiction(struct csw_cpu_state *s, struct csw_ruling *r,
					  csw_u32 other, csw_u64 t)
{
	r->unseen_switches++;
	if (csw_owner_proven(s->owner))
		csw_stretch_add(&s->stretch, s->owner, 0);
	if (other != CSW_OWNER_EXITED)
		csw_stretch_add(&s->stretch, other, 0);
	csw_rule_charge(s, r, CSW_OWNER_UNKNOWN, t, CSW_RUN_CUT);
	s->owner = CSW_OWNER_UNKNOWN;
	s->own_to_come = 0;
	s->switches++;
}

/* `prev` (or EXITED) leaves, `next` comes. */
static inline void csw_rule_switch_out(struct csw_cpu_state *s, struct csw_ruling *r, csw_u64 t,
				       csw_u32 prev, csw_u32 next, int preempted)
{
	csw_u32 end = preempted ? CSW_RUN_PREEMPTED : CSW_RUN_VOLUNTARY;

	/* After a gap, and where counting began in an unknown thread, the records are complete
	 * again up to here: whoever leaves now has run since then. */
	if (!csw_owner_proven(s->owner) && prev != CSW_OWNER_EXITED)
		s->owner = prev;
	if (prev == CSW_OWNER_EXITED)
		prev = s->owner;
	if (prev != s->owner) {
		csw_rule_contradiction(s, r, prev, t);
	} else if (s->own_to_come) {
		csw_rule_own_switch(s, r, end);
	} else {
		csw_rule_charge(s, r, s->owner, t, end);
		s->switches++;
	}
	s->left = prev;
	s->owner = next;
	s->own_to_come = 0;
	s->switching = 1;
	s->last_ns = t;
}

/* `subject` has come, `prev` (or EXITED) has left. */
static inline void csw_rule_switch_in(struct csw_cpu_state *s, struct csw_ruling *r, csw_u64 t,
				      csw_u32 subject, csw_u32 prev)
{
	int known = prev != CSW_OWNER_EXITED;

	if (!csw_owner_proven(s->owner) && known && !s->resumes)
		s->owner = prev;
	if (s->resumes) {
		csw_rule_charge_time(s, r, CSW_OWNER_UNKNOWN, t, CSW_RUN_CUT);
	} else if (subject == s->owner && s->switching) {
		/* The usual case: it is who SWITCH_OUT announced. */
		if (known && s->left != CSW_OWNER_EXITED && csw_owner_proven(s->left) &&
		    prev != s->left)
			csw_rule_contradiction(s, r, prev, t);
	} else if (subject != s->owner && (!known || prev == s->owner)) {
		/* The owner's SWITCH_OUT is missing, but this record says that it ran until now. */
		r->unseen_switches++;
		if (s->own_to_come) {
			csw_rule_own_switch(s, r, CSW_RUN_UNSEEN);
		} else {
			csw_rule_charge(s, r, s->owner, t, CSW_RUN_UNSEEN);
			s->switches++;
		}
	} else {
		csw_rule_contradiction(s, r, prev, t);
	}
	s->owner = subject;
	s->own_to_come = 0;
	s->switching = 0;
	s->resumes = 0;
	s->last_ns = t;
}

/* Records are missing from the last one up to t. */
static inline void csw_rule_lost(struct csw_cpu_state *s, struct csw_ruling *r, csw_u64 t)
{
	if (!s->own_to_come)
		csw_rule_charge(s, r, s->owner, s->last_ns, CSW_RUN_CUT);
	csw_rule_charge(s, r, CSW_OWNER_LOST, t, CSW_RUN_CUT);
	s->owner = CSW_OWNER_LOST;
	s->switching = 0;
	s->own_to_come = 0;
	s->lost = 1;
	s->last_ns = t;
}

static inline void csw_rule_throttle(struct csw_cpu_state *s, int stopped)
{
	s->throttled = stopped != 0;
	s->was_throttled |= s->throttled;
}

/* Which class the stretch is of, from who ran in it. */
static inline void csw_rule_classify(const struct csw_cpu_state *s, struct csw_ruling *r)
{
	const struct csw_stretch *st = &s->stretch;

	r->whole = s->whole && st->nr; /* between two samples of one switch nobody ran */
	r->owner = CSW_OWNER_UNKNOWN;
	if (s->lost || s->was_throttled) {
		r->slice = CSW_SLICE_LOST;
	} else if (st->nr <= 1) {
		r->slice = CSW_SLICE_EXACT;
		r->owner = st->nr ? st->owner[0] : s->owner;
	} else if (st->nr == 2 && st->owner[0] == CSW_OWNER_IDLE &&
		   st->owner[1] >= CSW_OWNER_FIRST) {
		r->slice = CSW_SLICE_IDLED;
		r->owner = st->owner[1];
	} else if (st->nr == 2 && st->owner[1] == CSW_OWNER_IDLE &&
		   st->owner[0] >= CSW_OWNER_FIRST) {
		r->slice = CSW_SLICE_IDLED;
		r->owner = st->owner[0];
	} else {
		r->slice = CSW_SLICE_MIXED;
	}
}

/* Ends the slice and begins the next one. d: trigger occurrences in it; own: those that its sample
 * stands for. */
static inline void csw_rule_close(const struct csw_rules *rules, struct csw_cpu_state *s,
				  struct csw_ruling *r, csw_u64 t, csw_u64 d, csw_u64 own)
{
	long long sav = (long long)rules->sav;

	csw_rule_classify(s, r);
	csw_stretch_end(&s->stretch, &r->stretch, t);
	/* Without signs: the counts of a broken recording may be anything. */
	s->open = (long long)((csw_u64)s->open + d - own);
	r->missing = s->open >= sav ? (csw_u64)(s->open - s->open % sav) : 0;
	r->missing_why = s->lost            ? CSW_MISSING_LOST
			 : s->was_throttled ? CSW_MISSING_THROTTLED
					    : CSW_MISSING_UNSEEN;
	s->open -= (long long)r->missing;
	s->trigger += d;
	s->stretch.nr = 0;
	s->stretch.from_ns = t;
	s->switches = 0;
	s->lost = 0;
	s->was_throttled = s->throttled;
	s->whole = 1;
}

/* d occurrences of the trigger, `seen` switches: does the count prove that somebody ran unseen?
 * Then either before the owner came, and its time is its own, or, where no switch was seen at all,
 * in the middle of what looks like its run. */
static inline void csw_rule_check_count(const struct csw_rules *rules, struct csw_cpu_state *s,
					struct csw_ruling *r, csw_u64 t, csw_u64 d, csw_u64 seen)
{
	if (!rules->per_switch || s->lost || s->was_throttled || d <= seen * rules->per_switch)
		return;
	if (s->switches)
		csw_stretch_add(&s->stretch, CSW_OWNER_UNKNOWN, 0);
	else
		csw_rule_contradiction(s, r, s->owner, t);
}

/*
 * A trigger that fires inside the switch samples between the records of the two threads, and the
 * record behind it is the other half of the proof. Where the trigger counted one switch more than
 * the records in front show, that switch is the sample's, and nothing contradicts that the thread
 * that they show last ran up to it, then that thread's own records are missing.
 */
static inline void csw_rule_infer(const struct csw_rules *rules, struct csw_cpu_state *s,
				  struct csw_ruling *r, csw_u64 t, csw_u64 d,
				  const struct csw_behind *behind)
{
	int agrees = behind->is_in
			     ? behind->subject != s->owner && (behind->prev == s->owner ||
							       behind->prev == CSW_OWNER_EXITED)
			     : !s->switching; /* it was seen coming */

	if (!agrees || !csw_owner_proven(s->owner) ||
	    d != (csw_u64)(s->switches + 1) * rules->per_switch)
		return;
	r->unseen_switches++;
	csw_rule_charge(s, r, s->owner, t, CSW_RUN_UNSEEN);
	s->switches++;
	s->left = s->owner;
	s->owner = behind->is_in ? behind->subject : CSW_OWNER_UNKNOWN;
	s->switching = 1;
}

/* Who ran up to a sample inside a switch. Either that switch is the last one seen, and the thread
 * that it brought is no part of the slice, or it is a later one. */
static inline void csw_rule_inside(const struct csw_rules *rules, struct csw_cpu_state *s,
				   struct csw_ruling *r, csw_u64 t, csw_u64 d,
				   const struct csw_behind *behind)
{
	int later;

	csw_rule_infer(rules, s, r, t, d, behind);
	later = d > (csw_u64)s->switches * rules->per_switch;
	if (d < (csw_u64)s->switches * rules->per_switch)
		csw_stretch_add(&s->stretch, CSW_OWNER_UNKNOWN, 0);
	if (!later && (s->switching || s->switches))
		return;
	if (s->switching && behind->is_in && behind->subject == s->owner &&
	    (behind->prev == s->left || behind->prev == CSW_OWNER_EXITED)) {
		/* Somebody ran unseen before the last switch seen, which is the sample's. */
		csw_stretch_add(&s->stretch, CSW_OWNER_UNKNOWN, 0);
		return;
	}
	/* Nobody knows who ran since the last record, nor whether the IN behind is the other half
	 * of this very switch. It is taken for that: of a switch counted too few the next sample's
	 * count tells, of one too many nothing. */
	csw_rule_contradiction(s, r, s->owner, t);
	s->resumes = behind->is_in;
}

/* The same for a trigger that fires before the switch, or that knows nothing of switches. */
static inline void csw_rule_outside(const struct csw_rules *rules, struct csw_cpu_state *s,
				    struct csw_ruling *r, csw_u64 t, csw_u64 d, int denied)
{
	csw_u64 seen = s->switches + 1; /* with the one before which this sample was taken */

	/* The last sample's own switch never came, or this is another thread's sample: both records
	 * of a switch are missing and nobody knows who ran. */
	if (s->own_to_come || (denied && d > seen * rules->per_switch && rules->per_switch))
		csw_rule_contradiction(s, r, s->owner, t);
	else
		csw_rule_check_count(rules, s, r, t, d, seen);
	/* Between OUT and IN the thread that comes is no part of the slice yet. */
	if (rules->before || !s->switching)
		csw_rule_charge(s, r, s->owner, t, CSW_RUN_CUT);
	s->own_to_come = rules->before;
}

/* One overflow; trigger: its counter's reading; behind: the record behind it, asked of a trigger
 * that fires inside the switch; denied: the sample's own TID is not that of the owner. That alone
 * proves nothing: the kernel fills in a sample once for all events that overflow together, in the
 * form that the first of them asked for. */
static inline void csw_rule_sample(const struct csw_rules *rules, struct csw_cpu_state *s,
				   struct csw_ruling *r, csw_u64 t, csw_u64 trigger,
				   const struct csw_behind *behind, int denied)
{
	csw_u64 d = trigger - s->trigger;

	if (rules->inside)
		csw_rule_inside(rules, s, r, t, d, behind);
	else
		csw_rule_outside(rules, s, r, t, d, denied);
	csw_rule_close(rules, s, r, t, d, rules->sav);
	s->last_ns = t;
}

/* The counters were read in mid-slice. trigger: its counter's reading; tail_lost: the kernel says
 * that records are missing since the last one. Cuts the slice in two, of which neither is whole. */
static inline void csw_rule_tick(const struct csw_rules *rules, struct csw_cpu_state *s,
				 struct csw_ruling *r, csw_u64 t, csw_u64 trigger, int tail_lost)
{
	csw_u64 d = trigger - s->trigger;

	if (tail_lost)
		csw_rule_lost(s, r, t);
	else if (s->own_to_come)
		csw_rule_contradiction(s, r, s->owner, t);
	else
		csw_rule_check_count(rules, s, r, t, d, s->switches);
	if (!tail_lost)
		csw_rule_charge(s, r, s->owner, t, CSW_RUN_CUT);
	csw_rule_close(rules, s, r, t, d, 0);
	r->whole = 0;
	s->whole = 0;
}

/* Counting ended. */
static inline void csw_rule_stop(const struct csw_rules *rules, struct csw_cpu_state *s,
				 struct csw_ruling *r, csw_u64 t, csw_u64 trigger, int tail_lost)
{
	csw_rule_tick(rules, s, r, t, trigger, tail_lost);
	s->counting = 0;
}

#endif

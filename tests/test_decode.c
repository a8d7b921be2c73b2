/* drivers/perf/decode: records laid out by hand as perf_event_open(2) says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/perf/decode.h"
#include "fuzz/fuzz.h"

#define RAW_MAX 2048

struct raw {
	_Alignas(8) unsigned char bytes[RAW_MAX];
	size_t nr;
};

static void put64(struct raw *r, uint64_t value)
{
	memcpy(r->bytes + r->nr, &value, sizeof(value));
	r->nr += sizeof(value);
}

static void put32(struct raw *r, uint32_t value)
{
	memcpy(r->bytes + r->nr, &value, sizeof(value));
	r->nr += sizeof(value);
}

static void put_text(struct raw *r, const char *text, size_t bytes)
{
	memcpy(r->bytes + r->nr, text, bytes);
	r->nr += bytes;
}

static void begin(struct raw *r, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = { .type = type, .misc = misc };

	memset(r, 0xee, sizeof(*r));
	memcpy(r->bytes, &header, sizeof(header));
	r->nr = sizeof(header);
}

static void set_size(struct raw *r, size_t size)
{
	struct perf_event_header *header = (void *)r->bytes;

	header->size = (uint16_t)size;
}

/* Decodes just `size` bytes of it, at the very end of a block: memory checkers see a read beyond.
 */
static int decode_cut(const struct csw_perf_form *form, struct raw *r, size_t size,
		      struct csw_record *out)
{
	size_t held =
		size < sizeof(struct perf_event_header) ? sizeof(struct perf_event_header) : size;
	void *copy = malloc(held);
	int ret;

	assert_non_null(copy);
	set_size(r, size);
	memcpy(copy, r->bytes, held);
	memset(out, 0xaa, sizeof(*out));
	ret = csw_perf_decode(form, copy, out);
	free(copy);
	return ret;
}

static int decode(const struct csw_perf_form *form, struct raw *r, struct csw_record *out)
{
	return decode_cut(form, r, r->nr, out);
}

/* Whole it is good, with any byte less than `least` it is refused. */
static void check_cuts(const struct csw_perf_form *form, struct raw *r, size_t least)
{
	struct csw_record out;

	for (size_t size = 0; size < least; size++)
		assert_int_equal(decode_cut(form, r, size, &out), -EINVAL);
	for (size_t size = least; size <= r->nr; size++)
		assert_int_equal(decode_cut(form, r, size, &out), 1);
}

/* ---- samples ---- */

#define PLAIN (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_READ)
#define EVERYTHING                                                                                 \
	(PLAIN | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |     \
	 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_PERIOD)
#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

#define NR_VALUES 3

static void put_reading(struct raw *r, uint64_t format, uint64_t nr)
{
	const bool group = format & PERF_FORMAT_GROUP;

	if (group)
		put64(r, nr);
	else
		put64(r, 1000);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		put64(r, 70);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		put64(r, 60);
	for (uint64_t i = 0; i < (group ? nr : 1); i++) {
		if (group)
			put64(r, 1000 + i);
		if (format & PERF_FORMAT_ID)
			put64(r, 500 + i);
		if (format & PERF_FORMAT_LOST)
			put64(r, 8 + i);
	}
}

static void put_sample(struct raw *r, uint64_t type, uint64_t format)
{
	begin(r, PERF_RECORD_SAMPLE, 0);
	if (type & PERF_SAMPLE_IDENTIFIER)
		put64(r, 0x1d);
	if (type & PERF_SAMPLE_IP)
		put64(r, 0x1f);
	if (type & PERF_SAMPLE_TID) {
		put32(r, 4242);
		put32(r, 4243);
	}
	if (type & PERF_SAMPLE_TIME)
		put64(r, 123456789012345);
	if (type & PERF_SAMPLE_ADDR)
		put64(r, 0xadd);
	if (type & PERF_SAMPLE_ID)
		put64(r, 0x1d);
	if (type & PERF_SAMPLE_STREAM_ID)
		put64(r, 0x51d);
	if (type & PERF_SAMPLE_CPU) {
		put32(r, 7);
		put32(r, 0xffffffff);
	}
	if (type & PERF_SAMPLE_PERIOD)
		put64(r, 1);
	if (type & PERF_SAMPLE_READ)
		put_reading(r, format, NR_VALUES);
}

static void check_reading(const struct csw_record *out, uint64_t format)
{
	unsigned nr = format & PERF_FORMAT_GROUP ? NR_VALUES : 1;

	assert_int_equal(out->nr_values, nr);
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(out->values[i], 1000 + i);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		assert_int_equal(out->enabled_ns, 70);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		assert_int_equal(out->running_ns, 60);
}

static void check_sample(uint64_t type, uint64_t format)
{
	const struct csw_perf_form form = { .sample_type = type,
					    .read_format = format,
					    .sample_id_all = true };
	struct csw_record out;
	struct raw r;

	put_sample(&r, type, format);
	assert_int_equal(decode(&form, &r, &out), 1);
	assert_int_equal(out.type, CSW_RECORD_SAMPLE);
	assert_int_equal(out.flags, 0);
	assert_int_equal(out.pid, type & PERF_SAMPLE_TID ? 4242 : -1);
	assert_int_equal(out.tid, type & PERF_SAMPLE_TID ? 4243 : -1);
	if (type & PERF_SAMPLE_TIME)
		assert_int_equal(out.time_ns, 123456789012345);
	if (type & PERF_SAMPLE_CPU)
		assert_int_equal(out.cpu, 7);
	if (type & PERF_SAMPLE_READ)
		check_reading(&out, format);
	check_cuts(&form, &r, r.nr);
	/* What stands behind it (a call chain, say) is of no interest. */
	put64(&r, 99);
	assert_int_equal(decode(&form, &r, &out), 1);
}

static void test_samples(void **state)
{
	(void)state;
	/* Every combination of read_format's five bits. */
	for (uint64_t format = 0; format < 32; format++) {
		check_sample(PLAIN, format);
		check_sample(EVERYTHING, format);
		check_sample(PLAIN | PERF_SAMPLE_IDENTIFIER, format);
		check_sample(PLAIN | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD, format);
	}
	check_sample(EVERYTHING & ~(uint64_t)PERF_SAMPLE_READ, 0);
	/* Each field missing. */
	for (unsigned bit = 0; bit < 24; bit++) {
		if (EVERYTHING & (1u << bit))
			check_sample(EVERYTHING & ~(uint64_t)(1u << bit),
				     PERF_FORMAT_GROUP | TIMES | PERF_FORMAT_LOST);
	}
}

/* An exiting thread is -1, not a huge number. */
static void test_exiting_sample(void **state)
{
	const struct csw_perf_form form = { .sample_type = PERF_SAMPLE_TID };
	struct csw_record out;
	struct raw r;

	(void)state;
	begin(&r, PERF_RECORD_SAMPLE, 0);
	put32(&r, 0xffffffff);
	put32(&r, 0xffffffff);
	assert_int_equal(decode(&form, &r, &out), 1);
	assert_int_equal(out.pid, -1);
	assert_int_equal(out.tid, -1);
}

static int sample_with_nr(uint64_t says, uint64_t holds, struct csw_record *out)
{
	const struct csw_perf_form form = { .sample_type = PERF_SAMPLE_READ,
					    .read_format = PERF_FORMAT_GROUP };
	struct raw r;

	begin(&r, PERF_RECORD_SAMPLE, 0);
	put64(&r, says);
	for (uint64_t i = 0; i < holds; i++)
		put64(&r, i);
	return decode(&form, &r, out);
}

/* The number of values comes from the record: it is believed only as far as the record holds it. */
static void test_number_of_values(void **state)
{
	struct csw_record out;
	const uint64_t max = 1 + CSW_COUNTERS_MAX;

	(void)state;
	assert_int_equal(sample_with_nr(0, 0, &out), 1);
	assert_int_equal(out.nr_values, 0);
	assert_int_equal(sample_with_nr(max, max, &out), 1);
	assert_int_equal(out.nr_values, max);
	assert_int_equal(out.values[max - 1], max - 1);
	assert_int_equal(sample_with_nr(max, max - 1, &out), -EINVAL);
	assert_int_equal(sample_with_nr(max + 1, max + 1, &out), -EINVAL);
	assert_int_equal(sample_with_nr(UINT64_MAX, 3, &out), -EINVAL);
	assert_int_equal(sample_with_nr(1ull << 61, 3, &out), -EINVAL);
	assert_int_equal(sample_with_nr(1ull << 32, 3, &out), -EINVAL);
}

/* ---- read(2) ---- */

static void test_readings(void **state)
{
	struct csw_record out;
	uint64_t lost;

	(void)state;
	for (uint64_t format = 0; format < 32; format++) {
		struct raw r = { .nr = 0 };

		put_reading(&r, format, NR_VALUES);
		for (size_t bytes = 0; bytes <= r.nr; bytes++) {
			unsigned char *copy = malloc(bytes ? bytes : 1);

			assert_non_null(copy);
			memcpy(copy, r.bytes, bytes);
			assert_int_equal(csw_perf_decode_reading(format, copy, bytes, &out, &lost),
					 bytes < r.nr ? -EINVAL : (int)r.nr);
			free(copy);
		}
		check_reading(&out, format);
		/* The first event's, which is the trigger. */
		assert_true(lost == (format & PERF_FORMAT_LOST ? 8 : CSW_LOST_UNKNOWN));
	}
}

/* ---- the side-band ---- */

static size_t put_sample_id(struct raw *r, const struct csw_perf_form *form)
{
	size_t before = r->nr;

	if (!form->sample_id_all)
		return 0;
	if (form->sample_type & PERF_SAMPLE_TID) {
		put32(r, 51);
		put32(r, 52);
	}
	if (form->sample_type & PERF_SAMPLE_TIME)
		put64(r, 987654321);
	if (form->sample_type & PERF_SAMPLE_ID)
		put64(r, 0x1d);
	if (form->sample_type & PERF_SAMPLE_STREAM_ID)
		put64(r, 0x51d);
	if (form->sample_type & PERF_SAMPLE_CPU) {
		put32(r, 3);
		put32(r, 0);
	}
	if (form->sample_type & PERF_SAMPLE_IDENTIFIER)
		put64(r, 0x1d);
	return r->nr - before;
}

static const struct csw_perf_form forms[] = {
	{ .sample_type = PLAIN, .read_format = PERF_FORMAT_GROUP, .sample_id_all = true },
	{ .sample_type = EVERYTHING, .read_format = PERF_FORMAT_GROUP, .sample_id_all = true },
	{ .sample_type = PLAIN | PERF_SAMPLE_IDENTIFIER, .sample_id_all = true },
	{ .sample_type = PERF_SAMPLE_TIME, .sample_id_all = true },
	{ .sample_type = PLAIN },
};
#define NR_FORMS (sizeof(forms) / sizeof(forms[0]))

static void check_id(const struct csw_perf_form *form, const struct csw_record *out)
{
	if (!form->sample_id_all)
		return;
	assert_int_equal(out->time_ns, 987654321);
	if (form->sample_type & PERF_SAMPLE_CPU)
		assert_int_equal(out->cpu, 3);
}

static void check_switch(const struct csw_perf_form *form, uint16_t misc, uint32_t type,
			 uint32_t flags)
{
	struct csw_record out;
	struct raw r;

	begin(&r, PERF_RECORD_SWITCH_CPU_WIDE, misc);
	put32(&r, 11);
	put32(&r, 0xffffffff);
	put_sample_id(&r, form);
	assert_int_equal(decode(form, &r, &out), 1);
	assert_int_equal(out.type, type);
	assert_int_equal(out.flags, flags);
	assert_int_equal(out.other_pid, 11);
	assert_int_equal(out.other_tid, -1);
	/* The subject is who wrote it. */
	if (form->sample_id_all && (form->sample_type & PERF_SAMPLE_TID)) {
		assert_int_equal(out.pid, 51);
		assert_int_equal(out.tid, 52);
	}
	check_id(form, &out);
	check_cuts(form, &r, r.nr);
}

static void test_switches(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_FORMS; i++) {
		check_switch(&forms[i], 0, CSW_RECORD_SWITCH_IN, 0);
		check_switch(&forms[i], PERF_RECORD_MISC_SWITCH_OUT, CSW_RECORD_SWITCH_OUT, 0);
		check_switch(&forms[i],
			     PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
			     CSW_RECORD_SWITCH_OUT, CSW_RECORD_PREEMPTED);
		/* The bit has another meaning in other records: only with OUT it is PREEMPT. */
		check_switch(&forms[i], PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, CSW_RECORD_SWITCH_IN,
			     0);
	}
}

static void test_fork_and_exit(void **state)
{
	static const struct {
		uint32_t raw, type;
	} types[] = { { PERF_RECORD_FORK, CSW_RECORD_FORK },
		      { PERF_RECORD_EXIT, CSW_RECORD_EXIT } };
	struct csw_record out;
	struct raw r;

	(void)state;
	for (size_t i = 0; i < 2 * NR_FORMS; i++) {
		const struct csw_perf_form *form = &forms[i / 2];

		begin(&r, types[i % 2].raw, 0);
		put32(&r, 21); /* pid, ppid, tid, ptid, time */
		put32(&r, 22);
		put32(&r, 23);
		put32(&r, 24);
		put64(&r, 5555);
		put_sample_id(&r, form);
		assert_int_equal(decode(form, &r, &out), 1);
		assert_int_equal(out.type, types[i % 2].type);
		assert_int_equal(out.pid, 21);
		assert_int_equal(out.other_pid, 22);
		assert_int_equal(out.tid, 23);
		assert_int_equal(out.other_tid, 24);
		check_id(form, &out);
		check_cuts(form, &r, r.nr);
	}
}

static void check_comm(const struct csw_perf_form *form, const char *name, size_t bytes,
		       uint16_t misc, const char *expected)
{
	const char zeros[CSW_COMM_BYTES] = "";
	struct csw_record out;
	struct raw r;
	size_t id;

	begin(&r, PERF_RECORD_COMM, misc);
	put32(&r, 31);
	put32(&r, 32);
	put_text(&r, name, bytes);
	id = put_sample_id(&r, form);
	assert_int_equal(decode(form, &r, &out), 1);
	assert_int_equal(out.type, CSW_RECORD_COMM);
	assert_int_equal(out.flags, misc & PERF_RECORD_MISC_COMM_EXEC ? CSW_RECORD_EXEC : 0);
	assert_int_equal(out.pid, 31);
	assert_int_equal(out.tid, 32);
	assert_string_equal(out.comm, expected);
	/* Filled up with NULs. */
	assert_memory_equal(out.comm + strlen(expected), zeros, CSW_COMM_BYTES - strlen(expected));
	check_id(form, &out);
	check_cuts(form, &r, sizeof(struct perf_event_header) + 8 + id);
}

static void test_comm(void **state)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

	(void)state;
	for (size_t i = 0; i < NR_FORMS; i++) {
		check_comm(&forms[i], "bash\0\0\0\0", 8, 0, "bash");
		check_comm(&forms[i], "bash\0xyz", 8, PERF_RECORD_MISC_COMM_EXEC, "bash");
		check_comm(&forms[i], "\0\0\0\0\0\0\0\0", 8, 0, "");
		check_comm(&forms[i], "", 0, 0, "");
		check_comm(&forms[i], "abcdefghijklmno\0", 16, 0, "abcdefghijklmno");
		/* No NUL in it, and longer than a name can be. */
		check_comm(&forms[i], letters, 8, 0, "abcdefgh");
		check_comm(&forms[i], letters, 16, 0, "abcdefghijklmno");
		check_comm(&forms[i], letters, 24, 0, "abcdefghijklmno");
	}
}

static void test_lost(void **state)
{
	struct csw_record out;
	struct raw r;

	(void)state;
	for (size_t i = 0; i < NR_FORMS; i++) {
		begin(&r, PERF_RECORD_LOST, 0);
		put64(&r, 0x1d);
		put64(&r, 17);
		put_sample_id(&r, &forms[i]);
		assert_int_equal(decode(&forms[i], &r, &out), 1);
		assert_int_equal(out.type, CSW_RECORD_LOST);
		assert_int_equal(out.lost, 17);
		assert_int_equal(out.lost_other, 0);
		check_id(&forms[i], &out);
		check_cuts(&forms[i], &r, r.nr);

		begin(&r, PERF_RECORD_LOST_SAMPLES, 0);
		put64(&r, 18);
		put_sample_id(&r, &forms[i]);
		assert_int_equal(decode(&forms[i], &r, &out), 1);
		assert_int_equal(out.type, CSW_RECORD_LOST);
		assert_int_equal(out.lost, 18);
		check_cuts(&forms[i], &r, r.nr);
	}
}

static void test_throttle(void **state)
{
	struct csw_record out;
	struct raw r;

	(void)state;
	for (size_t i = 0; i < NR_FORMS; i++) {
		size_t id;

		begin(&r, PERF_RECORD_THROTTLE, 0);
		put64(&r, 1); /* time, id, stream_id */
		put64(&r, 2);
		put64(&r, 3);
		id = put_sample_id(&r, &forms[i]);
		assert_int_equal(decode(&forms[i], &r, &out), 1);
		assert_int_equal(out.type, CSW_RECORD_THROTTLE);
		check_id(&forms[i], &out);
		check_cuts(&forms[i], &r, sizeof(struct perf_event_header) + id);

		begin(&r, PERF_RECORD_UNTHROTTLE, 0);
		put64(&r, 1);
		put64(&r, 2);
		put64(&r, 3);
		put_sample_id(&r, &forms[i]);
		assert_int_equal(decode(&forms[i], &r, &out), 1);
		assert_int_equal(out.type, CSW_RECORD_UNTHROTTLE);
	}
}

/* Records of no interest, known and not, are passed over; their size still has to be sound. */
static void test_other_types(void **state)
{
	struct csw_record out;
	struct raw r;

	(void)state;
	for (uint32_t type = 0; type < 200; type++) {
		if (type == PERF_RECORD_SAMPLE || type == PERF_RECORD_SWITCH_CPU_WIDE ||
		    type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT ||
		    type == PERF_RECORD_COMM || type == PERF_RECORD_LOST ||
		    type == PERF_RECORD_LOST_SAMPLES || type == PERF_RECORD_THROTTLE ||
		    type == PERF_RECORD_UNTHROTTLE)
			continue;
		begin(&r, type, 0xffff);
		for (int i = 0; i < 20; i++)
			put64(&r, 0xffffffffffffffff);
		assert_int_equal(decode(&forms[1], &r, &out), 0);
		assert_int_equal(decode_cut(&forms[1], &r, 16, &out), -EINVAL);
		assert_int_equal(decode_cut(&forms[4], &r, 8, &out), 0);
		assert_int_equal(decode_cut(&forms[4], &r, 7, &out), -EINVAL);
	}
	begin(&r, 0xffffffff, 0);
	assert_int_equal(decode(&forms[4], &r, &out), 0);
}

/* The target itself checks what must hold. */
static void test_corpus(void **state)
{
	(void)state;
	assert_true(fuzz_run_corpus(CSW_SOURCE_DIR "/tests/fuzz/corpus/decode", 1) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_exiting_sample),
		cmocka_unit_test(test_number_of_values),
		cmocka_unit_test(test_readings),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_fork_and_exit),
		cmocka_unit_test(test_comm),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_throttle),
		cmocka_unit_test(test_other_types),
		cmocka_unit_test(test_corpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

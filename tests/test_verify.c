/*
 * csw-sample verify on the real kernel: sound code passes, and code with a broken rule fails.
 *
 * Invariant: the lines are counted here once more; what the last one claims must be so.
 */
#include "truth.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

struct verdict {
	int status;
	unsigned passed, failed, skipped;
	char text[8192];
};

static void run(struct verdict *v, const char *program)
{
	char command[1024], line[1024], last[1024] = "", expected[128];
	FILE *pipe;

	memset(v, 0, sizeof(*v));
	snprintf(command, sizeof(command), "'%s' verify 2>&1", program);
	pipe = popen(command, "re");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		v->passed += !strncmp(line, "PASS  ", 6);
		v->failed += !strncmp(line, "FAIL  ", 6);
		v->skipped += !strncmp(line, "SKIP  ", 6);
		strncat(v->text, line, sizeof(v->text) - strlen(v->text) - 1);
		strcpy(last, line);
	}
	v->status = pclose(pipe);
	if (!WIFEXITED(v->status))
		fail_msg("%s did not end by itself: %s", program, v->text);
	v->status = WEXITSTATUS(v->status);
	snprintf(expected, sizeof(expected), "verify: %u passed, %u failed, %u skipped\n",
		 v->passed, v->failed, v->skipped);
	assert_string_equal(last, expected);
	assert_int_equal(v->status, v->failed ? 1 : 0);
}

static void test_sound(void **state)
{
	struct verdict v;

	(void)state;
	run(&v, CSW_SAMPLE);
	if (v.failed)
		fail_msg("sound code failed:\n%s", v.text);
	assert_int_equal(v.passed + v.skipped, 7);
	assert_int_equal(v.skipped, truth_no_tracepoints() ? 2 : 0);
}

/* The same findings as JSON: each with its result, and the sums that the last line has. */
static void test_json(void **state)
{
	json_t *report, *checks, *check;
	int64_t passed = 0, skipped = 0;
	FILE *pipe = popen("'" CSW_SAMPLE "' verify --format=json", "re");
	size_t i;

	(void)state;
	assert_non_null(pipe);
	report = json_loadf(pipe, 0, NULL);
	assert_non_null(report);
	assert_int_equal(pclose(pipe), 0);
	checks = json_object_get(report, "checks");
	assert_int_equal(json_array_size(checks), 7);
	json_array_foreach(checks, i, check)
	{
		const char *result = json_string_value(json_object_get(check, "result"));

		passed += !strcmp(result, "passed");
		skipped += !strcmp(result, "skipped");
		assert_non_null(json_string_value(json_object_get(check, "finding")));
	}
	assert_int_equal(json_integer_value(json_object_get(report, "passed")), passed);
	assert_int_equal(json_integer_value(json_object_get(report, "skipped")), skipped);
	assert_int_equal(json_integer_value(json_object_get(report, "failed")), 0);
	assert_int_equal(passed + skipped, 7);
	json_decref(report);
}

#ifdef CSW_VERIFY_MUTANTS /* not in sanitized builds, which make no mutants */
/* The check that the broken rule belongs to must be among those that fail. */
static void check_mutant(const char *name, const char *check)
{
	char program[1024], wanted[64];
	struct verdict v;

	snprintf(program, sizeof(program), "%s/%s", CSW_VERIFY_MUTANTS, name);
	snprintf(wanted, sizeof(wanted), "FAIL  %s ", check);
	run(&v, program);
	if (v.status != 1 || !strstr(v.text, wanted))
		fail_msg("%s: %s did not fail:\n%s", name, check, v.text);
}

/* The TID of a sample is a hint, and -1 at an exit. */
static void test_sample_tid_is_owner(void **state)
{
	(void)state;
	check_mutant("sample_tid_is_owner", "short threads");
}

/* A reading that is subtracted twice counts what was never caused. */
static void test_reading_not_kept(void **state)
{
	(void)state;
	check_mutant("reading_not_kept", "conservation");
	check_mutant("reading_not_kept", "page faults");
}

#endif

static void test_usage(void **state)
{
	(void)state;
	assert_int_equal(WEXITSTATUS(system("'" CSW_SAMPLE "' verify --no-such 2>/dev/null")), 2);
	assert_int_equal(WEXITSTATUS(system("'" CSW_SAMPLE "' verify --help >/dev/null")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_sound),
		cmocka_unit_test(test_json),
#ifdef CSW_VERIFY_MUTANTS
		cmocka_unit_test(test_sample_tid_is_owner),
		cmocka_unit_test(test_reading_not_kept),
#endif
	};
	const char *reason = truth_refused();

	if (reason)
		return truth_skip(reason);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

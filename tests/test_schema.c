/* The tests' own schema checker: every keyword passes what is right and refuses what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "schema.h"

/* With ' for ", so that it can be read. */
static json_t *parse(const char *text)
{
	char quoted[2048];
	json_t *value;
	size_t i;

	for (i = 0; text[i]; i++)
		quoted[i] = text[i] == '\'' ? '"' : text[i];
	quoted[i] = '\0';
	value = json_loads(quoted, JSON_DECODE_ANY, NULL);
	if (!value)
		fail_msg("no JSON: %s", quoted);
	return value;
}

static void test_keywords(void **state)
{
	static const struct {
		const char *schema, *right, *wrong;
	} cases[] = {
		{ "{'type': 'object'}", "{}", "[]" },
		{ "{'type': 'array'}", "[]", "{}" },
		{ "{'type': 'string'}", "'a'", "1" },
		{ "{'type': 'integer'}", "1", "1.5" },
		{ "{'type': 'number'}", "1.5", "'1.5'" },
		{ "{'type': 'number'}", "1", "null" },
		{ "{'type': 'boolean'}", "false", "0" },
		{ "{'type': 'null'}", "null", "false" },
		{ "{'type': ['integer', 'null']}", "null", "'a'" },
		{ "{'const': 1}", "1", "2" },
		{ "{'enum': ['a', 'b']}", "'b'", "'c'" },
		{ "{'minimum': 0}", "0", "-1" },
		{ "{'minimum': 0}", "'a'", "-0.5" },
		{ "{'maximum': 1}", "1.0", "1.1" },
		{ "{'required': ['a']}", "{'a': null}", "{'b': 1}" },
		{ "{'properties': {'a': {'type': 'null'}}}", "{'a': null, 'b': 1}", "{'a': 1}" },
		{ "{'properties': {'a': {}}, 'additionalProperties': false}", "{'a': 1}",
		  "{'a': 1, 'b': 1}" },
		{ "{'properties': {'a': {}}, 'additionalProperties': {'type': 'null'}}",
		  "{'a': 1, 'b': null}", "{'b': 1}" },
		{ "{'items': {'type': 'integer'}}", "[1, 2]", "[1, 'a']" },
		{ "{'uniqueItems': true}", "[1, 2]", "[1, 2, 1]" },
		{ "{'oneOf': [{'type': 'null'}, {'const': 1}]}", "1", "2" },
		{ "{'oneOf': [{'type': 'number'}, {'type': 'integer'}]}", "1.5", "1" },
		{ "{'$ref': '#/$defs/x', '$defs': {'x': {'const': 3}}}", "3", "4" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		json_t *schema = parse(cases[i].schema), *right = parse(cases[i].right);
		json_t *wrong = parse(cases[i].wrong);
		char why[256] = "";

		if (!schema_check(schema, schema, right, why, sizeof(why)))
			fail_msg("%s refuses %s: %s", cases[i].schema, cases[i].right, why);
		if (schema_check(schema, schema, wrong, why, sizeof(why)))
			fail_msg("%s passes %s", cases[i].schema, cases[i].wrong);
		assert_true(*why);
		json_decref(schema);
		json_decref(right);
		json_decref(wrong);
	}
}

/* A schema with a rule that is not checked, or that leads nowhere, passes nothing. */
static void test_what_is_not_checked_is_refused(void **state)
{
	static const char *const schemas[] = {
		"{'pattern': 'a'}",           "{'items': {'maxLength': 3}}",
		"{'$ref': 'elsewhere.json'}", "{'$ref': '#/$defs/none'}",
		"{'type': 'text'}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++) {
		json_t *schema = parse(schemas[i]), *value = parse("['a']");
		char why[256];

		assert_false(schema_check(schema, schema, value, why, sizeof(why)));
		json_decref(schema);
		json_decref(value);
	}
}

static const char report[] =
	"{'csw': '0', 'schema': 1, 'driver': 'perf', 'simulated': false, 'estimate': false,"
	" 'duration_ns': 5, 'cpus': 2, 'cpus_missed': 0, 'cpus_gone': 0, 'ring_bytes': 0, 'sets': "
	"1,"
	" 'mixed': 'split',"
	" 'trigger': {'name': 'a', 'event': 'b', 'hardware': true, 'sav': 1},"
	" 'counters': ['c'], 'rows': [{'kind': 'thread', 'pid': 1, 'tid': null, 'comm': 'x',"
	" 'slices': 1, 'oncpu_ns': 1, 'voluntary': 1, 'preempted': 1, 'migrations': 0,"
	" 'exact_ns': 1, 'counts': {'c': {'value': 1, 'enabled_ns': 1, 'running_ns': 1, 'min': 0,"
	" 'max': 1, 'shared': 1, 'per_second': 1.5, 'share': null, 'histogram': [0, 1]}}}],"
	" 'totals': {'c': {'counter': 1, 'rows': 1, 'unproven': 0, 'shared': 0, 'difference': 0}},"
	" 'completeness': {'trigger': 1, 'sav': 1, 'samples': 1, 'lost': 0, 'throttled': 0,"
	" 'unseen': 0, 'open': 0}, 'time': {'cpus_ns': 5, 'rows_ns': 5}, 'slices': 1, "
	"'exact_share': 1.0, 'shared_share': 0.5, 'owner_disagreements': 0, 'broken': null}";

/* What no report may say: each replaces a piece of a right one. */
static void test_the_report_schema_refuses(void **state)
{
	static const struct {
		const char *from, *to;
	} wrong[] = {
		{ "'schema': 1", "'schema': 2" },
		{ "'csw': '0', ", "" },
		{ "'cpus_missed': 0, ", "" },
		{ "'ring_bytes': 0", "'ring_bytes': null" },
		{ "'kind': 'thread'", "'kind': 'bread'" },
		{ "'pid': 1", "'pid': -1" },
		{ "'pid': 1", "'pid': 1.5" },
		{ "'comm': 'x'", "'comm': 'x', 'cgroup': null" },
		{ "'comm': 'x'", "'comm': 'x', 'colour': 1" },
		{ "'migrations': 0", "'migrations': null" },
		{ "'migrations': 0,", "" },
		{ "'value': 1", "'value': null" },
		{ "'value': 1", "'value': -1" },
		{ "'share': null", "'share': '1'" },
		{ "[0, 1]", "[0, -1]" },
		{ "['c']", "['c', 'c']" },
		{ "'exact_share': 1.0", "'exact_share': 1.1" },
		{ "'difference': 0", "'difference': null" },
		{ "'mixed': 'split'", "'mixed': 'guess'" },
		{ "'shared': 1", "'shared': null" },
		{ "'shared_share': 0.5, ", "" },
	};
	json_t *schema = schema_of_reports(), *value = parse(report);
	char why[256];

	(void)state;
	if (!schema_check(schema, schema, value, why, sizeof(why)))
		fail_msg("a right report is refused: %s", why);
	json_decref(value);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const char *at = strstr(report, wrong[i].from);
		char text[sizeof(report) + 64];

		assert_non_null(at);
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - report), report, wrong[i].to,
			 at + strlen(wrong[i].from));
		value = parse(text);
		if (schema_check(schema, schema, value, why, sizeof(why)))
			fail_msg("passes: %s", text);
		json_decref(value);
	}
	json_decref(schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keywords),
		cmocka_unit_test(test_what_is_not_checked_is_refused),
		cmocka_unit_test(test_the_report_schema_refuses),
	};

	return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}

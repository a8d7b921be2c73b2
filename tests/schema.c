/*
 * JSON Schema over jansson: $ref into $defs, type, enum, const, required, properties,
 * additionalProperties, items, uniqueItems, oneOf, minimum, maximum.
 *
 * Invariant: what a schema demands is either checked or refused as unknown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "schema.h"

struct checker {
	const json_t *root;
	char *why;
	size_t bytes;
	char path[512]; /* where in the document */
};

typedef bool keyword_fn(struct checker *c, const json_t *schema, const json_t *rule,
			const json_t *value);

static bool check(struct checker *c, const json_t *schema, const json_t *value);

static bool refuse(struct checker *c, const char *what, const char *detail)
{
	snprintf(c->why, c->bytes, "%s: %s %s", *c->path ? c->path : "/", what, detail);
	return false;
}

/* Checks a part of the value, one step further down. */
static bool check_below(struct checker *c, const char *step, const json_t *schema,
			const json_t *value)
{
	size_t bytes = strlen(c->path);
	bool ret;

	snprintf(c->path + bytes, sizeof(c->path) - bytes, "/%s", step);
	ret = check(c, schema, value);
	c->path[bytes] = '\0';
	return ret;
}

static bool annotation(struct checker *c, const json_t *schema, const json_t *rule,
		       const json_t *value)
{
	(void)c;
	(void)schema;
	(void)rule;
	(void)value;
	return true;
}

static bool check_ref(struct checker *c, const json_t *schema, const json_t *rule,
		      const json_t *value)
{
	static const char prefix[] = "#/$defs/";
	const char *ref = json_string_value(rule);
	const json_t *target;

	(void)schema;
	if (!ref || strncmp(ref, prefix, strlen(prefix)) != 0)
		return refuse(c, "cannot follow $ref", ref ? ref : "?");
	target = json_object_get(json_object_get(c->root, "$defs"), ref + strlen(prefix));
	return target ? check(c, target, value) : refuse(c, "no such $ref:", ref);
}

static bool has_type(const char *type, const json_t *value)
{
	static const struct {
		const char *name;
		int type;
	} types[] = {
		{ "object", JSON_OBJECT },   { "array", JSON_ARRAY }, { "string", JSON_STRING },
		{ "integer", JSON_INTEGER }, { "null", JSON_NULL },
	};

	if (!strcmp(type, "boolean"))
		return json_is_boolean(value);
	if (!strcmp(type, "number"))
		return json_is_number(value);
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (!strcmp(type, types[i].name))
			return json_typeof(value) == (json_type)types[i].type;
	}
	return false;
}

static bool check_type(struct checker *c, const json_t *schema, const json_t *rule,
		       const json_t *value)
{
	const json_t *one;
	size_t i;

	(void)schema;
	if (json_is_string(rule))
		return has_type(json_string_value(rule), value) ||
		       refuse(c, "is not of type", json_string_value(rule));
	json_array_foreach(rule, i, one)
	{
		if (has_type(json_string_value(one), value))
			return true;
	}
	return refuse(c, "is of none of the types", "");
}

static bool check_const(struct checker *c, const json_t *schema, const json_t *rule,
			const json_t *value)
{
	(void)schema;
	return json_equal(rule, value) || refuse(c, "is not the constant", "");
}

static bool check_enum(struct checker *c, const json_t *schema, const json_t *rule,
		       const json_t *value)
{
	const json_t *one;
	size_t i;

	(void)schema;
	json_array_foreach(rule, i, one)
	{
		if (json_equal(one, value))
			return true;
	}
	return refuse(c, "is none of the values:", json_string_value(value) ?: "?");
}

static bool check_required(struct checker *c, const json_t *schema, const json_t *rule,
			   const json_t *value)
{
	const json_t *one;
	size_t i;

	(void)schema;
	json_array_foreach(rule, i, one)
	{
		if (json_is_object(value) && !json_object_get(value, json_string_value(one)))
			return refuse(c, "lacks", json_string_value(one));
	}
	return true;
}

static bool check_properties(struct checker *c, const json_t *schema, const json_t *rule,
			     const json_t *value)
{
	const char *key;
	json_t *one;

	(void)schema;
	json_object_foreach((json_t *)(uintptr_t)rule, key, one)
	{
		const json_t *member = json_object_get(value, key);

		if (member && !check_below(c, key, one, member))
			return false;
	}
	return true;
}

static bool check_additional(struct checker *c, const json_t *schema, const json_t *rule,
			     const json_t *value)
{
	const json_t *known = json_object_get(schema, "properties");
	const char *key;
	json_t *one;

	json_object_foreach((json_t *)(uintptr_t)value, key, one)
	{
		if (json_object_get(known, key) || json_is_true(rule))
			continue;
		if (json_is_false(rule))
			return refuse(c, "has the unknown key", key);
		if (!check_below(c, key, rule, one))
			return false;
	}
	return true;
}

static bool check_items(struct checker *c, const json_t *schema, const json_t *rule,
			const json_t *value)
{
	const json_t *one;
	size_t i;

	(void)schema;
	json_array_foreach(value, i, one)
	{
		char step[32];

		snprintf(step, sizeof(step), "%zu", i);
		if (!check_below(c, step, rule, one))
			return false;
	}
	return true;
}

static bool check_unique(struct checker *c, const json_t *schema, const json_t *rule,
			 const json_t *value)
{
	(void)schema;
	for (size_t i = 0; json_is_true(rule) && i < json_array_size(value); i++) {
		for (size_t k = 0; k < i; k++) {
			if (json_equal(json_array_get(value, i), json_array_get(value, k)))
				return refuse(c, "has an item twice", "");
		}
	}
	return true;
}

static bool check_one_of(struct checker *c, const json_t *schema, const json_t *rule,
			 const json_t *value)
{
	const json_t *one;
	unsigned nr = 0;
	size_t i;

	(void)schema;
	json_array_foreach(rule, i, one) nr += check(c, one, value);
	if (nr > 1)
		return refuse(c, "fits several of oneOf", "");
	return nr == 1; /* else the last one said why not */
}

static bool check_minimum(struct checker *c, const json_t *schema, const json_t *rule,
			  const json_t *value)
{
	(void)schema;
	return !json_is_number(value) || json_number_value(value) >= json_number_value(rule) ||
	       refuse(c, "is below the minimum", "");
}

static bool check_maximum(struct checker *c, const json_t *schema, const json_t *rule,
			  const json_t *value)
{
	(void)schema;
	return !json_is_number(value) || json_number_value(value) <= json_number_value(rule) ||
	       refuse(c, "is above the maximum", "");
}

static keyword_fn *keyword(const char *name)
{
	static const struct {
		const char *name;
		keyword_fn *fn;
	} keywords[] = {
		{ "$schema", annotation },
		{ "title", annotation },
		{ "description", annotation },
		{ "$defs", annotation },
		{ "$ref", check_ref },
		{ "type", check_type },
		{ "const", check_const },
		{ "enum", check_enum },
		{ "required", check_required },
		{ "properties", check_properties },
		{ "additionalProperties", check_additional },
		{ "items", check_items },
		{ "uniqueItems", check_unique },
		{ "oneOf", check_one_of },
		{ "minimum", check_minimum },
		{ "maximum", check_maximum },
	};

	for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++) {
		if (!strcmp(name, keywords[i].name))
			return keywords[i].fn;
	}
	return NULL;
}

static bool check(struct checker *c, const json_t *schema, const json_t *value)
{
	const char *name;
	json_t *rule;

	if (!json_is_object(schema))
		return refuse(c, "has a schema that is no object", "");
	json_object_foreach((json_t *)(uintptr_t)schema, name, rule)
	{
		keyword_fn *fn = keyword(name);

		if (!fn)
			return refuse(c, "has a schema with a keyword not known here:", name);
		if (!fn(c, schema, rule, value))
			return false;
	}
	return true;
}

bool schema_check(const json_t *root, const json_t *schema, const json_t *value, char *why,
		  size_t bytes)
{
	struct checker c = { .root = root, .why = why, .bytes = bytes };

	return check(&c, schema, value);
}

json_t *schema_of_reports(void)
{
	static const char path[] = CSW_SOURCE_DIR "/docs/report.schema.json";
	json_error_t error;
	json_t *schema = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

	if (!schema)
		fail_msg("%s:%d: %s", path, error.line, error.text);
	return schema;
}

json_t *schema_load(const json_t *schema, const char *text)
{
	char why[1024];
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("%s in line %d of %s", error.text, error.line, text);
	if (!schema_check(schema, schema, root, why, sizeof(why)))
		fail_msg("not as the schema says: %s", why);
	return root;
}

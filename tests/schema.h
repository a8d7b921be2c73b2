/* A checker for the part of JSON Schema that docs/report.schema.json uses. */
#ifndef CSW_TESTS_SCHEMA_H
#define CSW_TESTS_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether value is as schema (the document itself or a part of root) says; if not, why[bytes] says
 * where. A keyword that is not known here is an error, so that no rule is passed over. */
bool schema_check(const json_t *root, const json_t *schema, const json_t *value, char *why,
		  size_t bytes);

/* The report's schema; the caller's to json_decref. Fails the test when it cannot be read. */
json_t *schema_of_reports(void);

/* Fails the test unless text is one JSON document that is as schema says. It is returned, the
 * caller's to json_decref. */
json_t *schema_load(const json_t *schema, const char *text);

#endif

/* Finding what is wrong with an option; see explain.h. */
#include "cli/explain.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

#define NAME_BYTES 32 /* no option is longer: a longer word is near to none */
#define SEE "; see csw-sample --help"

static bool is_end(const struct argp_option *o)
{
	return !o->name && !o->key && !o->doc && !o->group;
}

/* 256 and above: it has no letter. */
static bool has_letter(const struct argp_option *o)
{
	return o->name && o->key > ' ' && o->key < 0x7f;
}

static const struct argp_option *find_letter(const struct argp_option *options, int letter)
{
	for (const struct argp_option *o = options; !is_end(o); o++) {
		if (has_letter(o) && o->key == letter)
			return o;
	}
	return NULL;
}

/* ---- the nearest ---- */

/* How many characters must be changed, put in or left out to make b of a, which are short. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_BYTES + 1];
	unsigned nr = (unsigned)strlen(b);

	for (unsigned j = 0; j <= nr; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= nr; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
		}
	}
	return row[nr];
}

static bool holds(const char *text, const char *part)
{
	return strlen(part) > 2 && strstr(text, part);
}

/* NULL: none is near enough to have been meant. */
static const char *nearest(const struct argp_option *options, const char *word)
{
	unsigned least = (unsigned)strlen(word) / 3 + 1;
	const char *found = NULL, *part = NULL;

	if (strlen(word) > NAME_BYTES)
		return NULL;
	for (const struct argp_option *o = options; !is_end(o); o++) {
		unsigned d = o->name ? distance(word, o->name) : least;

		if (d < least) {
			least = d;
			found = o->name;
		}
		if (o->name && (holds(o->name, word) || holds(word, o->name)))
			part = o->name;
	}
	return found ? found : part;
}

/* ---- what is said ---- */

/* What other programs call it. */
static bool wants_whole_machine(const char *word)
{
	static const char *const names[] = { "all", "all-cpus", "system-wide" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(word, names[i]))
			return true;
	}
	return false;
}

static void say_unknown_letter(const struct argp_option *options, char letter)
{
	const struct argp_option *other;
	char meant[96] = "";

	if (letter == 'a') { /* perf's --all-cpus */
		csw_complain("-a: no such option; the whole machine is the default" SEE);
		return;
	}
	/* The same letter in the other case, and the options that begin with it. */
	other = find_letter(options, isupper((unsigned char)letter)
					     ? tolower((unsigned char)letter)
					     : toupper((unsigned char)letter));
	if (other)
		snprintf(meant, sizeof(meant), "; nearest: -%c (--%s)", other->key, other->name);
	for (const struct argp_option *o = options; !is_end(o); o++) {
		size_t at = strlen(meant);

		if (o->name && !has_letter(o) && o->name[0] == letter)
			snprintf(meant + at, sizeof(meant) - at, "%s--%s",
				 at ? ", " : "; nearest: ", o->name);
	}
	csw_complain("-%c: no such option%s" SEE, letter, meant);
}

static void say_unknown_name(const struct argp_option *options, const char *name)
{
	const char *near = nearest(options, name);

	if (wants_whole_machine(name))
		csw_complain("--%s: no such option; the whole machine is the default" SEE, name);
	else
		csw_complain("--%s: no such option%s%s" SEE, name, near ? "; nearest: --" : "",
			     near ? near : "");
}

static void say_no_value(const char *option, const struct argp_option *o)
{
	csw_complain("%s: its value is missing: %s%s%s" SEE, option, option,
		     option[1] == '-' ? "=" : " ", o->arg);
}

/* ---- reading ---- */

/* Whole, or as far as it is typed if only one begins so; *more: another one that does. */
static const struct argp_option *find_name(const struct argp_option *options, const char *name,
					   const char **more)
{
	const struct argp_option *found = NULL;

	*more = NULL;
	for (const struct argp_option *o = options; !is_end(o); o++) {
		if (!o->name || strncmp(o->name, name, strlen(name)) != 0)
			continue;
		if (!o->name[strlen(name)]) {
			*more = NULL;
			return o;
		}
		*more = found ? found->name : NULL;
		found = o;
	}
	return found;
}

/* "--name" or "--name=value". How many words it takes; 0: it is what is wrong, and that was said.
 */
static int read_name(const struct argp_option *options, const char *word, bool is_last)
{
	const char *equals = strchr(word, '='), *more;
	char name[256];
	const struct argp_option *o;

	snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - word - 2) : 255, word + 2);
	o = find_name(options, name, &more);
	if (!o)
		say_unknown_name(options, name);
	else if (more)
		csw_complain("--%s: could be --%s or --%s" SEE, name, more, o->name);
	else if (equals && !o->arg)
		csw_complain("%s: --%s takes no value" SEE, word, o->name);
	else if (!equals && o->arg && is_last)
		say_no_value(word, o);
	else
		return !equals && o->arg ? 2 : 1;
	return 0;
}

/* "-abc": letters, of which one may take what follows it, or the next word. */
static int read_letters(const struct argp_option *options, const char *word, bool is_last)
{
	for (const char *c = word + 1; *c; c++) {
		const struct argp_option *o = find_letter(options, *c);
		char option[] = { '-', *c, '\0' };

		if (!o) {
			say_unknown_letter(options, *c);
			return 0;
		}
		if (o->arg && !c[1] && is_last) {
			say_no_value(option, o);
			return 0;
		}
		if (o->arg)
			return c[1] ? 1 : 2;
	}
	return 1;
}

void csw_explain(const struct argp_option *options, int argc, char **argv)
{
	int words = 1;

	for (int i = 1; i < argc && words; i += words) {
		const char *word = argv[i];

		if (word[0] != '-' || !word[1] || !strcmp(word, "--"))
			break;
		words = word[1] == '-' ? read_name(options, word, i + 1 == argc)
				       : read_letters(options, word, i + 1 == argc);
	}
	if (words)
		csw_complain("the arguments are not understood" SEE);
}

/*
 * csw-sample list: the names that this machine knows, and why not for those that do not work here.
 *
 * Invariant: a name is never shown as usable on a guess; what libcsw says is printed.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "csw/csw.h"

#define NAME_COLUMNS 44

static const char usage[] =
	"Usage: csw-sample list triggers|events|drivers [--json] [WORD...]\n"
	"Lists the names that hold all the words, and why not for those that do not work here.\n"
	"\n"
	"  csw-sample list triggers\n"
	"  csw-sample list events fault\n"
	"  csw-sample list events sysfs --json\n";

static const char *const lists[] = {
	[CSW_LIST_TRIGGERS] = "triggers",
	[CSW_LIST_EVENTS] = "events",
	[CSW_LIST_DRIVERS] = "drivers",
};

struct listing {
	bool json;
	unsigned long nr, nr_usable;
	char group[128];
	char reason[CSW_ERROR_BYTES]; /* of the line before: said once for a row of names */
};

static void put_json(const struct csw_item *item, bool first)
{
	fputs(first ? "\n{ \"name\": " : ",\n{ \"name\": ", stdout);
	csw_print_json(stdout, item->name);
	fputs(", \"group\": ", stdout);
	csw_print_json(stdout, item->group);
	fputs(", \"summary\": ", stdout);
	csw_print_json(stdout, item->summary);
	printf(", \"usable\": %s, \"reason\": ", item->usable ? "true" : "false");
	csw_print_json(stdout, item->usable ? NULL : item->reason);
	fputs(", \"becomes\": ", stdout);
	csw_print_json(stdout, item->usable ? item->reason : NULL);
	fputs(" }", stdout);
}

static void put_line(struct listing *l, const struct csw_item *item)
{
	if (strcmp(l->group, item->group)) {
		printf("%s%s:\n", l->nr ? "\n" : "", item->group);
		snprintf(l->group, sizeof(l->group), "%s", item->group);
		l->reason[0] = '\0';
	}
	fputs(item->usable ? "  yes  " : "  no   ", stdout);
	csw_print_padded(stdout, item->name, NAME_COLUMNS);
	csw_print_text(stdout, item->summary);
	if (item->usable && item->reason) {
		fputs(" [", stdout);
		csw_print_text(stdout, item->reason);
		fputc(']', stdout);
	}
	fputc('\n', stdout);
	if (item->usable || !item->reason || !strcmp(l->reason, item->reason))
		return;
	fputs("       ", stdout);
	csw_print_text(stdout, item->reason);
	fputc('\n', stdout);
	snprintf(l->reason, sizeof(l->reason), "%s", item->reason);
}

/* Ends the list when nobody reads it any more. */
static int put(void *ctx, const struct csw_item *item)
{
	struct listing *l = ctx;

	if (l->json)
		put_json(item, !l->nr);
	else
		put_line(l, item);
	l->nr++;
	l->nr_usable += item->usable;
	return ferror(stdout) ? 1 : 0;
}

static int list(uint32_t what, const char *const *words, size_t nr, bool json)
{
	struct listing l = { .json = json };
	struct csw_error err;
	int ret;

	if (json)
		printf("{ \"csw\": \"%s\", \"list\": \"%s\", \"items\": [", csw_version(),
		       lists[what]);
	ret = csw_list(what, words, nr, put, &l, &err);
	if (ret < 0) {
		csw_complain("%s", err.text);
		return EXIT_FAILED;
	}
	if (json)
		fputs(l.nr ? "\n] }\n" : "] }\n", stdout);
	else if (l.nr)
		printf("\n%lu %s, %lu of them usable here\n", l.nr, lists[what], l.nr_usable);
	else
		printf("no %s hold all these words\n", lists[what]);
	return 0;
}

int csw_cmd_list(int argc, char **argv)
{
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	size_t nr = 0;
	bool json = false;
	int status = EXIT_USAGE;

	if (!words) {
		csw_complain("out of memory");
		return EXIT_FAILED;
	}
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			free(words);
			return 0;
		}
		if (csw_options_json(argc, argv, &i))
			json = true;
		else if (argv[i][0] == '-') {
			csw_complain("list: there is no option %s; see csw-sample list --help",
				     argv[i]);
			goto out;
		} else {
			words[nr++] = argv[i];
		}
	}
	for (uint32_t what = 0; nr && what < sizeof(lists) / sizeof(lists[0]); what++)
		if (!strcmp(words[0], lists[what])) {
			status = list(what, words + 1, nr - 1, json);
			goto out;
		}
	csw_complain(nr ? "list: there is no list %s; there are triggers, events and drivers"
			: "list: of what? triggers, events or drivers%s",
		     nr ? words[0] : "");
out:
	free(words);
	return status;
}

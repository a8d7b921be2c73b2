/*
 * csw-sample doctor: what counting depends on here, each finding with its remedy.
 *
 * Invariant: the exit status is the verdict's: 1 only when nothing can be counted.
 */
#include <stdbool.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "csw/csw.h"

#define NAME_COLUMNS 28
#define VERDICT "counting" /* the check that sums up the others */

static const char usage[] =
	"Usage: csw-sample doctor [--json]\n"
	"Looks at everything that counting depends on, by trying, and says what to change.\n"
	"Exit status: 0 when counting works here, 1 when it does not.\n";

static const char *const states[] = {
	[CSW_STATE_OK] = "ok",
	[CSW_STATE_LIMITED] = "limited",
	[CSW_STATE_MISSING] = "missing",
};

struct visit {
	bool json, can_count;
	unsigned nr[3];
};

static void put_json(const struct csw_check *check, bool first)
{
	fputs(first ? "\n{ \"name\": " : ",\n{ \"name\": ", stdout);
	csw_print_json(stdout, check->name);
	printf(", \"state\": \"%s\", \"finding\": ", states[check->state]);
	csw_print_json(stdout, check->finding);
	fputs(", \"remedy\": ", stdout);
	csw_print_json(stdout, check->remedy);
	fputs(" }", stdout);
}

static void put_line(const struct csw_check *check)
{
	printf("%-9s", states[check->state]);
	csw_print_padded(stdout, check->name, NAME_COLUMNS);
	csw_print_text(stdout, check->finding);
	fputc('\n', stdout);
	if (!check->remedy)
		return;
	fputs("         -> ", stdout);
	csw_print_text(stdout, check->remedy);
	fputc('\n', stdout);
}

static int put(void *ctx, const struct csw_check *check)
{
	struct visit *v = ctx;

	if (v->json)
		put_json(check, !(v->nr[0] + v->nr[1] + v->nr[2]));
	else
		put_line(check);
	v->nr[check->state]++;
	if (!strcmp(check->name, VERDICT))
		v->can_count = check->state != CSW_STATE_MISSING;
	fflush(stdout); /* a check may take a moment: what is known is shown */
	return 0;       /* the status is the last check's, whether somebody reads on or not */
}

static int examine(bool json)
{
	struct visit v = { .json = json };
	struct csw_error err;
	int ret;

	if (json)
		printf("{ \"csw\": \"%s\", \"checks\": [", csw_version());
	ret = csw_doctor(put, &v, &err);
	if (ret < 0) {
		csw_complain("%s", err.text);
		return EXIT_FAILED;
	}
	if (json)
		printf("\n], \"can_count\": %s }\n", v.can_count ? "true" : "false");
	else
		printf("\n%u ok, %u limited, %u missing\n", v.nr[CSW_STATE_OK],
		       v.nr[CSW_STATE_LIMITED], v.nr[CSW_STATE_MISSING]);
	return v.can_count ? 0 : EXIT_FAILED;
}

int csw_cmd_doctor(int argc, char **argv)
{
	return csw_options_run_plain(argc, argv, usage, examine);
}

/* Which report, with which options, and whether all of it was written; see report.h. */
#include "engine/report.h"

#include <errno.h>
#include <string.h>

#include "engine/error.h"
#include "engine/opts.h"

int csw_report(const struct csw_table *t, FILE *file, const struct csw_report_opts *opts,
	       struct csw_error *err)
{
	struct csw_report_opts o;
	int ret = csw_opts_take(&o, sizeof(o), opts, "csw_report_opts", err);

	if (ret < 0)
		return ret;
	/* stdio may touch errno on success; it counts only together with the stream's error flag.
	 */
	errno = 0;
	if (o.format == CSW_FORMAT_TABLE)
		ret = csw_report_text(t, file, &o, err);
	else if (o.format == CSW_FORMAT_JSON)
		ret = csw_report_json(t, file, &o, err);
	else if (o.format == CSW_FORMAT_CSV)
		ret = csw_report_csv(t, file, &o, err);
	else
		return csw_error_set(err, -EINVAL, "no such report format: %u", o.format);
	if (ret == 0 && ferror(file)) {
		ret = errno ? -errno : -EIO;
		return csw_error_set(err, ret, "cannot write the report: %s", strerror(-ret));
	}
	return ret;
}

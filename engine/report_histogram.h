/* Histograms below the table for people. */
#ifndef CSW_ENGINE_REPORT_HISTOGRAM_H
#define CSW_ENGINE_REPORT_HISTOGRAM_H

#include <stdio.h>

#include "csw/csw.h"

/* One block per counter, the shown rows summed: a line per bucket with its limits, a bar and its
 * count. verbose: a line per row besides. Where histograms were not kept it says so. */
void csw_report_histogram(const struct csw_table *t, FILE *file,
			  const struct csw_report_opts *opts);

#endif

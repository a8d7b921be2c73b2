/*
 * Reports print a table and nothing else: all they know of it comes through the calls of csw.h and
 * of view.h.
 *
 * Invariant: what was not counted is never printed as a number, and no name reaches the output raw.
 */
#ifndef CSW_ENGINE_REPORT_H
#define CSW_ENGINE_REPORT_H

#include <stdio.h>

#include "csw/csw.h"

/* They write to file and leave its error flag to csw_report. opts is complete. 0 or -errno. */
int csw_report_text(const struct csw_table *t, FILE *file, const struct csw_report_opts *opts,
		    struct csw_error *err);
int csw_report_json(const struct csw_table *t, FILE *file, const struct csw_report_opts *opts,
		    struct csw_error *err);
int csw_report_csv(const struct csw_table *t, FILE *file, const struct csw_report_opts *opts,
		   struct csw_error *err);

#endif

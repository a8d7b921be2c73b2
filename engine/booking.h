/*
 * Booking: what the rules have ruled of a run or a slice, added to the rows: the owner's, and the
 * CPU's own (csw_slicer.by_cpu). Slices of several owners are shared here: clocks by the time on
 * the CPU, the counters to nobody, or by the estimate that was asked for.
 *
 * Invariant: all of the deltas are booked, to one row or another, whatever the ruling.
 */
#ifndef CSW_ENGINE_BOOKING_H
#define CSW_ENGINE_BOOKING_H

#include "engine/slicer.h"

/* Where things stand in readings and deltas. */
#define CSW_ENABLED 0
#define CSW_RUNNING 1
#define CSW_COUNTERS_AT 2

#define CSW_EVERY_COUNTER UINT32_MAX /* a bit for each */

/* Time on a CPU, and what ended the run. */
void csw_book_charges(struct csw_slicer *s, unsigned cpu, const struct csw_ruling *r);

/* Is all that was counted in the slice one proven owner's? */
bool csw_book_is_exact(const struct csw_slicer *s, const struct csw_ruling *r);

/* What was counted in the slice that a ruling has ended; takes the deltas apart. 0 or -ENOMEM. */
int csw_book_slice(struct csw_slicer *s, unsigned cpu, const struct csw_ruling *r,
		   uint64_t *deltas);

/* An ordinary sample (CSW_RECORD_ESTIMATE). 0 or -ENOMEM. */
int csw_book_estimate(struct csw_slicer *s, const struct csw_record *rec);

#endif

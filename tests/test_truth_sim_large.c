/* The engine against the simulated machine's truth at the size of a large server: 64 CPUs, 10,000
 * threads, 5 million slices. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "csw/csw.h"
#include "tests/truth_sim.h"

static void five_million_slices(void **state)
{
	struct sim_run run = { .ticks = false };

	(void)state;
	sim_run_all(&run, "seg_load", "LLC_MISSES,instructions,page-faults", 1,
		    "seed=20,cpus=64,threads=10000,processes=400,switches=20000,duration_ms=7000,"
		    "pid_max=65536,"
		    "ring=65536");
	printf("figure: %" PRIu64 " slices of %zu threads on 64 CPUs, %zu bytes a row\n",
	       run.slicer.slices, csw_sim_truths(run.drv), run.agg.stride);
	assert_true(run.slicer.slices >= 5000000);
	assert_true(csw_sim_truths(run.drv) >= 10000);
	assert_true(run.agg.stride <= 256);
	sim_run_check_sums(&run);
	sim_run_check_equal(&run, 0);
	assert_int_equal(run.done.all, run.done.samples);
	sim_run_free(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(five_million_slices) };

	return cmocka_run_group_tests_name("truth_sim_large", tests, NULL, NULL);
}

/*
 * Why a command line is refused that getopt does not understand: it tells only that it does not.
 *
 * Invariant: words are read as getopt_long reads them, so what is found first is what it gave up
 * at.
 */
#ifndef CSW_CLI_EXPLAIN_H
#define CSW_CLI_EXPLAIN_H

#include <argp.h>

/* One line on stderr: an option that does not exist (with the nearest), lacks its value, or has one
 * that it does not take. */
void csw_explain(const struct argp_option *options, int argc, char **argv);

#endif

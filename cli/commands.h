/*
 * The subcommands of csw-sample: those that measure nothing for the user.
 *
 * Invariant: each takes the arguments behind "csw-sample", argv[0] being its own name, prints what
 * goes wrong itself, and returns the exit status (cli/options.h).
 */
#ifndef CSW_CLI_COMMANDS_H
#define CSW_CLI_COMMANDS_H

/* list triggers|events|drivers [WORDS...]: the names that hold all words, and why not for those
 * that do not work here. */
int csw_cmd_list(int argc, char **argv);

/* doctor: what counting depends on here, each finding with its remedy. */
int csw_cmd_doctor(int argc, char **argv);

/* calibrate --trigger=NAME: how often an event comes per context switch, by the kind of switch. */
int csw_cmd_calibrate(int argc, char **argv);

/* verify: known faults, system calls, time and exits, counted here and compared. */
int csw_cmd_verify(int argc, char **argv);

/* report FILE: the tables from a recording. */
int csw_cmd_report(int argc, char **argv);

/* slices [-i FILE]: a line for every slice, of a recording or as they come. */
int csw_cmd_slices(int argc, char **argv);

#endif

#!/bin/sh
# usage: expect_failure.sh PROGRAM
# Passes when the cmocka program notices that something is broken: a test of it fails by an assertion. A crash is no
# notice, whether it ends the program or cmocka catches it, and neither is a program that does not start.
set -u

output=$("$1" 2>&1)
status=$?

printf '%s\n' "$output" | tail -n 40
if [ "$status" -eq 0 ]; then
	echo "expect_failure: all tests passed on broken code"
	exit 1
fi
if [ "$status" -gt 125 ]; then
	echo "expect_failure: ended with status $status: crashed or did not start"
	exit 1
fi
case $output in
*"failed with exception"*)
	echo "expect_failure: a test crashed"
	exit 1
	;;
*FAILED*)
	echo "expect_failure: noticed"
	exit 0
	;;
esac
echo "expect_failure: ended with status $status without a failed test"
exit 1

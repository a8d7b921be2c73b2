#!/bin/sh
# usage: valgrind.sh sim|perf CSW-SAMPLE
# A short run under valgrind: no invalid access, no leak. Status 77: cannot run here.
set -eu

driver=$1 sample=$2

if ! command -v valgrind >/dev/null; then
	echo "skip: valgrind is not installed"
	exit 77
fi
if [ "$driver" = perf ] && ! refusal=$("$sample" --driver=perf -d 0 2>&1 >/dev/null); then
	echo "skip: $refusal"
	exit 77
fi
exec valgrind --quiet --error-exitcode=99 --leak-check=full \
	--errors-for-leak-kinds=definite,indirect,possible --track-fds=no \
	"$sample" --driver="$driver" -d 0.3

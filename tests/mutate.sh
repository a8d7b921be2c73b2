#!/bin/sh
# usage: mutate.sh SCRIPT.sed ORIGINAL COPY
# Makes the broken copy of a source file; a script that changes nothing breaks no rule and is an error.
set -eu

script=$1 original=$2 copy=$3

mkdir -p "$(dirname "$copy")"
sed -f "$script" "$original" >"$copy.new"
if cmp -s "$original" "$copy.new"; then
	rm -f "$copy.new"
	echo "$script changes nothing in $original: the line it breaks is no longer there" >&2
	exit 1
fi
mv "$copy.new" "$copy"

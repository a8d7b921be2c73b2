#!/bin/sh
# usage: install.sh BUILD SOURCE CC
# What `cmake --install` puts down is enough: the example builds with pkg-config's words alone, shared and static, and runs.
# Status 77: cannot be tried here.
set -eu

build=$1 source=$2 cc=$3

if ! command -v pkg-config >/dev/null; then
	echo "skip: pkg-config is not installed"
	exit 77
fi
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >"$prefix/log" 2>&1 || {
	cat "$prefix/log"
	exit 1
}

installed() {
	find "$prefix" -path "*/$1" | grep -q . || {
		echo "not installed: $1"
		exit 1
	}
}
for file in bin/csw-sample csw/csw.h man1/csw-sample.1 completions/csw-sample doc/csw-sample/README.md \
	doc/csw-sample/LICENSE doc/csw-sample/report.schema.json doc/csw-sample/accuracy.md doc/csw-sample/embed.c; do
	installed "$file"
done

pc=$(dirname "$(find "$prefix" -name libcsw.pc)")
PKG_CONFIG_PATH=$pc
export PKG_CONFIG_PATH
example=$(find "$prefix" -name embed.c)
cmp "$example" "$source/examples/embed.c"

# A line of csw-sample's kind where counting is not permitted, else a table: anything but a signal or a missing library.
runs() {
	status=0
	LD_LIBRARY_PATH=$(pkg-config --variable=libdir libcsw) "$1" >"$prefix/out" 2>&1 || status=$?
	[ "$status" -le 1 ] || {
		cat "$prefix/out"
		echo "$1: status $status"
		exit 1
	}
}

# shellcheck disable=SC2046 # several words
$cc -o "$prefix/shared" "$example" $(pkg-config --cflags --libs libcsw)
runs "$prefix/shared"

# shellcheck disable=SC2046
if ! $cc -static -o "$prefix/static" "$example" $(pkg-config --static --cflags --libs libcsw) 2>"$prefix/err"; then
	grep -q 'cannot find -l\|static library\|unable to find library' "$prefix/err" || {
		cat "$prefix/err"
		exit 1
	}
	echo "skip: no static library of $(sed -n 's/.*cannot find -l\([a-z0-9]*\).*/\1/p' "$prefix/err" | sort -u | tr '\n' ' ')"
	exit 77
fi
runs "$prefix/static"

#!/bin/sh
# test.sh CMAKE SOURCE BUILD WORK CC: installed into a staging folder and moved from there, stint compiles and trains, and programs
# find libstint.
set -u
cmake=$1 source=$2 build=$3 work=$4 cc=$5
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "FAILED: $*"; cat log; exit 1; }
do_() { "$@" >log 2>&1 || fail "$*"; }
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1
DESTDIR=$work/stage do_ "$cmake" --install "$build" --prefix /opt/stint --strip
mv stage/opt/stint moved || fail "nothing in the staging folder"
[ -z "$(find stage -type f)" ] || fail "files outside the prefix"
if grep -rlF -e "$build" -e "$source" moved >log; then fail "files know where they were built"; fi

# the command
PATH=$work/moved/bin:$PATH
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' "$source/debian/changelog")
[ "$(stint --version)" = "stint $version" ] || fail "debian/changelog has version $version"
cp "$source/examples/models/mlp.onnx" m.onnx
python3 "$source/tests/cli/tensors.py" make x.npy f4 8,1,28,28
python3 "$source/tests/cli/tensors.py" make t.npy i8 8
do_ stint compile m.onnx --loss cross-entropy --optimizer sgd:lr=0.01 --batch 4 --portable --budget min -o step
do_ stint train step --input x.npy --target t.npy --epochs 2 --checkpoint saved
[ -e saved/step-00000004.safetensors ] || fail "no checkpoint"
do_ stint export step --checkpoint saved -o trained.onnx

# the sources that a step's folder has are those that are there to be read
for f in step/*.[ch] step/kernels/*; do
	name=${f#step/}
	case $name in step*.c | step_*.h | stint_step.h) continue ;; kernels/*) ;; *) name=runtime/$name ;; esac
	cmp -s "$f" "moved/share/stint/$name" || fail "$name is not the one in share/stint"
done

# programs
pc=$(find "$work/moved" -name stint.pc)
lib=$(dirname "$(dirname "$pc")")
export LD_LIBRARY_PATH="$lib"
works() { do_ "$1" m.onnx; grep -q '^stint [0-9.]*: [0-9]* bytes$' log || fail "$1"; }
if command -v pkg-config >/dev/null; then
	flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs stint) || fail "pkg-config does not find it"
	# shellcheck disable=SC2086
	do_ $cc -Wall -Werror "$here/program.c" -o by_pkg_config $flags
	works ./by_pkg_config
fi
mkdir found
cat >found/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(found LANGUAGES C)
find_package(stint 0.1 REQUIRED)
add_executable(by_find_package $here/program.c)
target_link_libraries(by_find_package PRIVATE stint::stint)
END
do_ env CC="$cc" "$cmake" -S found -B found/build -DCMAKE_PREFIX_PATH="$work/moved"
do_ "$cmake" --build found/build
works found/build/by_find_package
do_ $cc -std=c11 -Wall -Werror -shared -fPIC -I moved/include/stint -o more.so "$source/tests/custom/more.c"

# manual pages: one a command, and nothing to say about them
stint --help >help
sed -n 's/^  \([a-z]*\) .*/\1/p' help >commands
[ "$(wc -l <commands)" -gt 9 ] || fail "no commands"
while read -r command; do
	[ -e "moved/share/man/man1/stint-$command.1" ] || fail "stint $command has no page"
done <commands
for page in moved/share/man/man1/*.1; do
	if command -v man >/dev/null; then
		man --warnings -E UTF-8 -l "$page" >text 2>log || fail "$page"
		[ ! -s log ] || fail "$page"
		grep -q NAME text || fail "$page is empty"
	fi
	if command -v mandoc >/dev/null; then
		mandoc -T lint -W warning "$page" 2>&1 | grep -v 'missing date' >log
		[ ! -s log ] || fail "$page"
	fi
done
grep -q 'micro' moved/share/man/man1/stint-compile.1 || fail "the page lacks options"

# completion
if command -v bash >/dev/null; then
	bash -c '
	. moved/share/bash-completion/completions/stint
	try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _stint; printf "%s|" "${COMPREPLY[@]}"; echo; }
	try stint comp
	try stint compile --micro
	try stint compile m.onnx --fuse ""
	try stint compile m.onnx --fuse = of
	try stint train --resu
	try stint train step' >log
	printf '%s\n' 'compile|' '--micro-batch|' 'on|off|' 'off|' '--resume|' '|' | cmp -s - log || fail "bash completes otherwise"
fi
if command -v zsh >/dev/null; then do_ zsh -n moved/share/zsh/site-functions/_stint; fi
if command -v fish >/dev/null; then
	do_ fish -c 'source moved/share/fish/vendor_completions.d/stint.fish; complete -C "stint compile --micro"; complete -C "stint comp"'
	grep -q '^--micro-batch' log && grep -q '^compile' log || fail "fish does not complete"
fi
echo "installed, moved, used"

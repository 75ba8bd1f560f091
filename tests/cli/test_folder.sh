# compile -o DIR: all of it or nothing, and never over what somebody else wrote.
. "$(dirname "$0")/lib.sh"

make_model linear m.onnx
base="compile m.onnx --batch 2 --loss mse --optimizer sgd --portable --threads 1"
quick="$base --no-build"

# what stint writes, without the compiler's
files="Makefile eval-plan.json graph.json kernels model.onnx plan.json safetensors.c safetensors.h safetensors_write.c step.c step_arena.h step_eval.h step_tables.h step_train.h
	stint_call.h stint_kinds.h stint_links.c stint_links.h stint_machine.h stint_mix.h stint_outside.c stint_rt.c stint_rt.h stint_rt_cpu.c stint_rt_device.h stint_schedule.c stint_schedule.h stint_sha256.c stint_sha256.h stint_shards.c stint_step.h stint_tree.h weights.safetensors"
# holds DIR NAME...: these and nothing else, hidden ones included
holds()
{
	dir=$1
	shift
	have=$(cd "$dir" && find . -mindepth 1 -maxdepth 1 | sed 's|^\./||' | LC_ALL=C sort | tr '\n' ' ')
	want=$(printf '%s\n' "$@" | LC_ALL=C sort | tr '\n' ' ')
	[ "$have" = "$want" ] || fail "$dir holds $have, not $want"
}
# the bytes and names of a folder
sum_of() { (cd "$1" && find . | LC_ALL=C sort && find . -type f | LC_ALL=C sort | xargs -d '\n' cksum); }
unchanged() { sum_of "$1" >after.sum; same before.sum after.sum; }
clean() { holds . "$@" out err m.onnx before.sum after.sum; }
: >before.sum
: >after.sum

# a new folder, under names of all kinds; beside it nothing
umask 022
expect 0 stint $base -o new
holds new $files step.so
[ "$(stat -c %a new)" = 755 ] || fail "the folder's mode is $(stat -c %a new)"
expect 0 stint $quick -o "with 'odd' * %s names/"
holds "with 'odd' * %s names" $files
expect 0 make -s -q -C new step.so
expect 0 stint $quick -o "$(printf 'n%.0s' $(seq 255))"
rm -r n?????*n "with 'odd' * %s names"
clean new
expect 5 stint $quick -o no/such/dir
expect 5 stint $quick -o "$(printf 'n%.0s' $(seq 256))"
expect 2 stint $quick -o ""
clean new

# again into our own: ours are replaced, what is of no use to the new step goes, others' files stay
mkdir new/ck "new/my notes"
echo checkpoint >new/ck/step-00000001.safetensors
echo note >"new/my notes/a"
make -s -C new libstep.a >out 2>err || fail "make libstep.a"
cp new/step.so old.so
plain="compile m.onnx --batch 2 --portable --threads 1"
expect 0 stint $plain --loss mse --optimizer adam -o new
holds new $files step.so ck "my notes" libstep.a
differ new/step.so old.so
same new/ck/step-00000001.safetensors - <<'X'
checkpoint
X
grep -q adam new/step.c || fail "the step is the old one"
expect 0 stint $plain --loss none --no-build -o new
holds new $(echo $files | sed 's/eval-plan.json //; s/ step_train.h//') ck "my notes" libstep.a
make -s -C new libstep.a step.so >out 2>err || fail "make after another compilation"
expect 0 stint compile m.onnx --batch 2 --loss mse --optimizer sgd --target cuda --no-build -o new
present new/kernels.cu new/stint_rt_gpu.c
expect 0 stint $quick -o new
holds new $files ck "my notes" libstep.a
# built beside, the debug information names this folder
for dir in new "a 'new' one"; do
	expect 0 env CFLAGS="-O0 -g" "$STINT" $base -o "$dir"
	grep -qF "$PWD/$dir" "$dir/step.so" || fail "no debug information for $dir"
	! grep -q '[.]stint-' "$dir/step.so" || fail "the temporary folder's name stays in $dir"
	make -s -q -C "$dir" step.so || fail "$dir is not up to date"
done
rm -r new old.so "a 'new' one"

# through a link, as ".", within a folder that nobody may write
mkdir real sub
ln -s real link
expect 0 stint $quick -o link/
[ -L link ] || fail "the link was replaced"
holds real $files
(cd sub && "$STINT" compile ../m.onnx --batch 2 --loss mse --optimizer sgd --portable --no-build -o . >../out 2>../err) ||
	fail "-o ."
holds sub $files
rm -r real link sub
ln -s nowhere link
expect 5 stint $quick -o link
rm link
: >file
expect 5 stint $quick -o file
rm file

# a stranger's folder: refused before anything else is looked at, and what is in the way is named
mkdir theirs
stranger() # NAME
{
	sum_of theirs >before.sum
	expect 2 stint $base -o theirs
	said "theirs" "'$1'" --force
	expect 2 stint compile none.onnx -o theirs
	said "'$1'"
	unchanged theirs
}
echo note >theirs/notes.txt
stranger notes.txt
echo 'int main(void);' >theirs/step.c
stranger step.c
rm theirs/step.c
echo 'all:' >theirs/Makefile
stranger Makefile
expect 0 stint $quick --force -o theirs
holds theirs $files notes.txt
rm theirs/notes.txt
# ours, but for one file: that it is named like the compiler's, or ours, does not matter
echo 'all:' >theirs/Makefile
stranger Makefile
expect 0 stint $quick --force -o theirs
rm theirs/weights.safetensors
mkdir theirs/weights.safetensors
echo kept >theirs/weights.safetensors/kept
for force in "" --force; do
	sum_of theirs >before.sum
	expect 2 stint $quick $force -o theirs
	said weights.safetensors folder
	! grep -q -e --force err || fail "--force is advised, which would not help"
	unchanged theirs
done
rm -r theirs
# by force only what is written again goes: a kernels.c of theirs is no file of this step
mkdir theirs
echo theirs >theirs/kernels.c
echo theirs >theirs/step.so
expect 0 stint $quick --force -o theirs
holds theirs $files kernels.c
rm -r theirs

# a failure, of any kind, leaves nothing, and an earlier folder as it was
expect 0 stint $base -o kept
sum_of kept >before.sum
nothing() # CODE COMMAND...
{
	expect "$@" -o new
	absent new
	expect "$@" -o kept
	unchanged kept
	clean kept $also
}
also=
make_model outside big.onnx
also=big.onnx
nothing 3 stint compile big.onnx --batch 2 --loss mse --optimizer sgd
said "big.bin" hint:
also=
rm big.onnx
nothing 4 stint $base --budget 1
nothing 3 stint compile before.sum --loss mse --optimizer sgd
echo 'cc: step.c:1: too bad' >said.txt
printf '#!/bin/sh\ncat "%s/said.txt" >&2\nexit 1\n' "$PWD" >cc
chmod +x cc
also="cc said.txt"
nothing 5 env CC="$PWD/cc" "$STINT" $base
said "did not compile" "too bad" "--no-build"
# what the disk has no room for: 8 blocks of 512 bytes
nothing 5 sh -c 'ulimit -f 8; exec "$@"' - "$STINT" $base
said "too large"
rm cc said.txt

# a signal, with the compiler running: it ends, and its files go
printf '#!/bin/sh\ncase "$*" in *shared*) echo $$ >"%s/pid"; sleep 60 & wait; echo no >late.c;; esac\n' "$PWD" >cc
chmod +x cc
for signal in INT TERM HUP; do
	for dir in new kept; do
		rm -f pid
		# a shell's background command ignores SIGINT; not so what setsid's own shell starts
		env CC="$PWD/cc" python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$STINT" $base -o $dir >out 2>err &
		stint=$!
		for i in $(seq 300); do
			[ -s pid ] && break
			sleep 0.1
		done
		[ -s pid ] || fail "the compiler was not started"
		kill -$signal $stint
		kill -$signal $stint 2>/dev/null # a second one does not end it in the middle
		wait $stint
		got=$?
		[ $got = 130 ] || fail "exit $got instead of 130 at SIG$signal"
		said interrupted
		! kill -0 "$(cat pid)" 2>/dev/null || fail "the compiler still runs"
		absent new
		unchanged kept
		clean kept cc pid
	done
done
finished

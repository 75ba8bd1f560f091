# Less address space than a command wants: a documented exit code and a message at every limit, never a signal; and the limit that the
# message tells is enough.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
within() { (ulimit -v "$1" && shift && exec "$STINT" "$@") >out 2>err </dev/null; }

# the least that the program itself starts in; a sanitizer's never does
least=40000
until within $least --version; do
	least=$((least + 4000))
	[ $least -lt 400000 ] || exit 77
done

# 64 pictures of 28 by 28, as in MNIST's files, and their labels
{ printf '\000\000\010\003\000\000\000\100\000\000\000\034\000\000\000\034' && head -c 50176 /dev/zero | tr '\000' '\101'; } >x.idx
{ printf '\000\000\010\001\000\000\000\100' && head -c 64 /dev/zero | tr '\000' '\003'; } >t.idx
model="$SOURCE/examples/models/cnn.onnx --loss cross-entropy --optimizer sgd --batch 32 --threads 2"
train="train dir --input x.idx --target t.idx --epochs 1 --no-save"
expect 0 stint compile $model -o dir
expect 0 stint $train

# sweep STEP COMMAND ...: so many KiB more each time, from the least to where it succeeds, which it goes on to do
sweep()
{
	limit=$least met=0 failures=0 more=$1
	shift
	while [ $met -lt 2 ]; do
		[ $limit -lt 1000000 ] || fail "no success within $limit KiB: $*"
		within $limit "$@"
		got=$?
		checks=$((checks + 1))
		case $got in
		0) met=$((met + 1)) ;;
		1)
			grep -q '^stint: error: .*out of \(memory\|address space\)' err || fail "no word of memory within $limit KiB: $*"
			! grep -q -e --effort err || fail "a hint that has nothing to do with memory"
			[ $met = 0 ] || fail "exit 1 within $limit KiB, but not within less: $*"
			failures=$((failures + 1))
			would=$(sed -n 's/.*fits in `ulimit -v \([0-9]*\)`.*/\1/p' err)
			if [ -n "$would" ] && [ $((failures % 4)) = 1 ]; then
				mv err told
				[ "$would" -gt $limit ] || fail "$would KiB are told to do, and $limit do not"
				# bench has more in memory than the step
				within "$would" "$@" || [ "$1" = bench ] || fail "$would KiB are told to do, and do not: $*"
			fi
			;;
		*) fail "exit $got within $limit KiB: $*" ;;
		esac
		limit=$((limit + more))
	done
	[ $failures -gt 0 ] || fail "nothing failed: $*"
}
sweep 3500 $train
present told
sweep 6000 plan $model --keep-all
sweep 30000 bench dir --steps 1
sweep 13000 eval dir --input x.idx --target t.idx
finished

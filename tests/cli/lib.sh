# What the command line's tests share: sh TEST.sh STINT FIXTURE SOURCE FOLDER. Works in FOLDER, which
# is made anew. Every check that fails says so and ends the test.
set -u
STINT=$1 FIXTURE=$2 SOURCE=$3
rm -rf "$4"
mkdir -p "$4"
cd "$4" || exit 1
unset NO_COLOR
export STINT_PROGRESS=0 # on a busy machine some commands take long enough to be told of
checks=0

fail()
{
	echo "FAILED: $*" >&2
	echo "--- stdout"; head -c 2000 out
	echo "--- stderr"; head -c 4000 err
	exit 1
} >&2

# expect CODE COMMAND ...: its output in `out`, its messages in `err`.
expect()
{
	want=$1
	shift
	checks=$((checks + 1))
	"$@" >out 2>err </dev/null
	got=$?
	[ -z "${STINT_TOLD-}" ] || cat err >>"$STINT_TOLD" # for tools/messages.py --seen
	[ "$got" = "$want" ] || fail "exit $got instead of $want: $*"
	# a failure says why, a success has no error to tell
	if [ "$want" = 0 ]; then
		! grep -q 'error:' err || fail "an error is told, yet exit 0: $*"
	else
		grep -q '^stint: error: ' err || fail "no error is told: $*"
	fi
}

stint() { "$STINT" "$@"; }
make_model() { "$FIXTURE" model "$@" || fail "fixture model $*"; }
make_data() { "$FIXTURE" data "$@" || fail "fixture data $*"; }

make_rows() { "$FIXTURE" rows "$@" || fail "fixture rows $*"; }
make_npy() { "$FIXTURE" npy "$@" || fail "fixture npy $*"; }

# usual OPTION...: into usual.txt, one a line; what is given beside --options usual.txt may say otherwise
usual() { echo "$*" | sed 's/ --/\n--/g' >usual.txt; }

said() { for t in "$@"; do grep -qF -e "$t" err || fail "no '$t' in the messages"; done; }
told() { for t in "$@"; do grep -qF -e "$t" out || fail "no '$t' in the output"; done; }
absent() { for f in "$@"; do [ ! -e "$f" ] || fail "$f was written"; done; }
present() { for f in "$@"; do [ -e "$f" ] || fail "$f is missing"; done; }
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }
differ() { ! cmp -s "$1" "$2" || fail "$1 and $2 are the same"; }
# wait_for FILE [LINES]: until a program in the background has written so many
wait_for()
{
	tries=0
	while [ "$(wc -l <"$1" 2>/dev/null || echo 0)" -lt "${2:-1}" ]; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || fail "no line in $1 after 30 s"
		sleep 0.05
	done
}
# log_lines FILE: how many lines a log of training has besides those of epochs' times, each of them JSON
log_lines() { grep -v '"seconds":' "$1" >log.lines; "$FIXTURE" json-lines log.lines; }
# same_log FILE FILE: the same but for the times
same_log()
{
	for f in "$1" "$2"; do grep -v '"seconds":' "$f" >"$f.timeless"; done
	same "$1.timeless" "$2.timeless"
}
is_json() { for f in "$@"; do "$FIXTURE" json "$f" || fail "$f is no JSON"; done; }
# json_of FILE A B: the value at {"A":{"B":...}} (or [2])
json_of() { "$FIXTURE" json "$@"; }
finished() { echo "$checks commands checked"; }

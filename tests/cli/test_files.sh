# Single files that commands write: whole or as they were; links, pipes and devices stay what they are.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
base="m.onnx --batch 4 --loss cross-entropy --optimizer sgd --portable --threads 1"
make_data x 4 x.npy
make_data label 4 t.npy
expect 0 stint compile $base -o dir
printf 'id,lower,upper,size\n' >b.csv
for i in $(seq 200); do echo "buffer$i,$i,$((i + 5)),64"; done >>b.csv
mkdir w
rm out err
keep="$(ls -A)"

# writes OPTION... FILE-OPTION: of the command whose last argument is the file's
writes()
{
	# new, and again
	expect 0 stint "$@" w/new
	expect 0 stint "$@" w/new
	mv w/new whole
	# no room: what was there stays, and nothing lies beside
	echo before >w/old
	expect 5 sh -c 'ulimit -f 1; exec "$@"' - "$STINT" "$@" w/old
	[ "$(cat w/old)" = before ] || fail "a file was spoilt: $*"
	# a link's target, in a folder of its own
	mkdir w/there
	ln -s there/file w/link
	echo before >w/there/file
	expect 0 stint "$@" w/link
	[ -L w/link ] || fail "a link was replaced: $*"
	[ "$(wc -c <w/there/file)" -gt 100 ] || fail "the link's target was not written: $*"
	[ "$(ls -A w w/there | tr '\n' ' ')" = "w: link old there  w/there: file " ] || fail "left: $(ls -A w w/there)"
	rm -r w/link w/there w/old
	# neither a pipe nor a device becomes a file
	mkfifo w/pipe
	ln -s /dev/full w/full
	case $1 in
	run) expect 5 stint "$@" w/pipe && said "no ordinary file" ;;
	*)
		cat w/pipe >piped &
		expect 0 stint "$@" w/pipe
		wait $!
		[ "$(wc -c <piped)" = "$(wc -c <whole)" ] || fail "not all of it came through the pipe: $*"
		rm piped
		;;
	esac
	[ -p w/pipe ] || fail "a pipe was replaced: $*"
	[ ! -c /dev/full ] || expect 5 stint "$@" w/full
	[ "$(ls -A w | tr '\n' ' ')" = "full pipe " ] || fail "left: $(ls -A w)"
	rm w/pipe w/full whole
}
writes plan $base -o
writes plan $base --dump-graph
writes frontier $base --points 2 -o
writes frontier $base --points 2 --svg
writes show dir --html
writes show dir --trace
writes show dir --onnx
writes layout b.csv --capacity 1MB -o
writes run dir --input x.npy --target t.npy -o
writes export dir -o
rm out err
[ "$(ls -A)" = "$keep" ] || fail "left: $(ls -A)"
finished

# Training that is stopped, and files that cannot be written: nothing is lost, and told in time.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
make_model dropout m.onnx
make_data x 42 x.npy
make_data label 42 t.npy
data="--last drop --input x.npy --target t.npy"
expect 0 stint compile m.onnx --loss cross-entropy --optimizer sgd --batch 4 --threads 1 --portable -o dir

# what cannot be written is told before the first step
unwritable() # NAME: the last command did nothing
{
	said "$1"
	! grep -q "^training\|^epoch" out err || fail "training began"
}
expect 5 stint train dir $data --checkpoint x.npy/inner --log new.jsonl
unwritable "cannot list $PWD/x.npy/inner: "
absent new.jsonl
expect 5 stint train dir $data --checkpoint x.npy
unwritable "$PWD/x.npy: "
expect 5 stint train dir $data --checkpoint /proc/self
unwritable "/proc/self"
expect 5 stint train dir --no-save $data --log no/such/log
unwritable "$PWD/no/such/log: cannot write"
# where the folder and the file are there, and the disk is full
limited() { # limited OPTIONS: no file may grow
	(trap '' XFSZ; ulimit -f 0; "$STINT" train dir $data "$@" 2>&1; echo "exit $?") | cat >err
	grep -qx "exit 5" err || fail "$(tail -n 1 err) instead of 5: $*"
	checks=$((checks + 1))
}
mkdir full
limited --checkpoint full
said "$PWD/full/step-" "File too large"
[ -z "$(ls -A full)" ] || fail "something stayed"
limited --log full.jsonl --no-save
said "$PWD/full.jsonl: cannot write" "File too large"
! grep -q "^training" err || fail "training began"
# a log that fills up later does not end a training
expect 5 stint train dir $data --epochs 2 --checkpoint kept --log /dev/full
said "warning: /dev/full: cannot write" "lines of the log are missing"
[ "$(grep -c warning err)" = 1 ] || fail "it is told again and again"
present kept/step-00000020.safetensors
# nothing to write, nothing to try
chmod a-w kept && expect 0 stint train dir $data --epochs 2 --checkpoint kept --resume
chmod u+w kept

# a reader that goes away does not end a training
(sleep 0.2; "$STINT" train dir $data --epochs 2 --checkpoint unread 2>err; echo $? >code) | true
i=0
while [ ! -s code ] && [ $i -lt 200 ]; do sleep 0.05; i=$((i + 1)); done
[ "$(cat code)" = 5 ] || fail "exit $(cat code)"
said "cannot write to standard output"
present unread/step-00000020.safetensors

# begin NAME COMMAND...: training without end, in the background; it has begun
begin()
{
	name=$1
	shift
	: >"$name.jsonl"
	"$@" "$STINT" train dir $data --epochs 1000000 --checkpoint "$name" --log "$name.jsonl" >out 2>err &
	pid=$!
	wait_for "$name.jsonl"
}
ended() # CODE
{
	wait $pid
	got=$?
	[ $got = "$1" ] || fail "exit $got instead of $1"
	checks=$((checks + 1))
}

for signal in HUP TERM INT; do
	begin $signal env
	kill -$signal $pid
	ended 130
	said "interrupted after step" "by SIG$signal; checkpoint saved" "--resume"
	[ "$(log_lines $signal.jsonl)" = "$(ls $signal | sort | tail -n 1 | tr -dc 0-9 | sed 's/^0*//')" ] ||
		fail "the log has other steps than the checkpoint"
done
# a second one ends it at once; both are there before the first is seen
begin second env
kill -STOP $pid
kill -TERM $pid
kill -INT $pid
kill -CONT $pid
wait $pid
! grep -q "checkpoint saved" err || fail "the second signal was waited for"
# but a terminal that closes sends SIGHUP twice
begin closing env
kill -STOP $pid
kill -TERM $pid
kill -HUP $pid
kill -CONT $pid
ended 130
said "by SIG" "checkpoint saved"
# nohup
begin deaf nohup
kill -HUP $pid
n=$(wc -l <deaf.jsonl)
wait_for deaf.jsonl $((n + 100))
kill -TERM $pid
ended 130
# each line of the log is there when the next step begins: killed, it has no half of one
begin killed env
kill -KILL $pid
wait $pid
"$FIXTURE" json-lines killed.jsonl >out || fail "half a line in the log"

# while held-out data are evaluated, too: the epoch's steps are not lost
make_data x 1000000 ex.npy
make_data label 1000000 et.npy
eval="--eval-input ex.npy --eval-target et.npy"
: >eval.jsonl
"$STINT" train dir $data $eval --checkpoint eval --log eval.jsonl >out 2>err &
pid=$!
wait_for eval.jsonl 10
kill -TERM $pid
ended 130
said "interrupted after step 10 by SIGTERM; checkpoint saved"
! grep -q eval_samples eval.jsonl || fail "evaluated to the end"
make_data x 40 ex.npy && make_data label 40 et.npy
expect 0 stint train dir $data $eval --checkpoint eval --log eval.jsonl --resume
told "resumed from eval/step-00000010" "epoch 1/1  eval loss"
[ "$(log_lines eval.jsonl)" = 11 ] || fail "not ten steps and an evaluation in the log"
finished

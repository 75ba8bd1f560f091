# Steps for several lengths in one arena: --dim NAME=A,B,C and train --pad.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
make_model sequence m.onnx
# rows of 8 tokens, of which 2, 3, 4, 5, 8 are no filling; what their labels are behind them nobody may see
make_rows x.npy 8 1 2 0 0 0 0 0 0  2 5 1 0 0 0 0 0  3 3 1 4 0 0 0 0  4 0 0 1 2 0 0 0  5 4 3 2 1 2 3 4 \
	2 2 0 0 0 0 0 0  1 1 1 0 0 0 0 0  4 5 0 0 0 0 0 0
make_rows t.npy 8 1 0 2 2 2 2 2 2  3 1 4 5 5 5 5 5  2 2 0 1 3 3 3 3  1 1 2 3 0 0 0 0  0 1 2 3 4 5 0 1 \
	1 4 4 4 4 4 4 4  5 0 3 1 1 1 1 1  0 2 2 2 2 2 2 2
make_rows masked.npy 8 1 0 -100 -100 -100 -100 -100 -100  3 1 4 -100 -100 -100 -100 -100  2 2 0 1 -100 -100 -100 -100 \
	1 1 2 3 0 -100 -100 -100  0 1 2 3 4 5 0 1  1 4 -100 -100 -100 -100 -100 -100  5 0 3 -100 -100 -100 -100 -100 \
	0 2 -100 -100 -100 -100 -100 -100
make_data x 8 tone.npy 64
data="--input x.npy --input tone.npy"
usual --loss cross-entropy --batch 2 --threads 1 --portable --optimizer adam:lr=0.02
compile() { expect 0 stint compile m.onnx --options usual.txt "$@"; }

# a plan for each, in the arena of the longest
compile --dim T=4,8,3 -o dir
told "in the same arena, by 'T'"
arena=$(sed -n 's/^  arena .* = \([0-9]*\) bytes/\1/p' out)
present dir/lengths.json dir/length-3/step.so dir/length-4/step.so
absent dir/length-8 dir/length-3/stint_rt.c
expect 0 stint compile m.onnx --loss cross-entropy --batch 2 --threads 1 --portable --optimizer adam:lr=0.02 --dim T=8 -o longest
[ "$(sed -n 's/^  arena .* = \([0-9]*\) bytes/\1/p' out)" = "$arena" ] || fail "more memory than the longest"
expect 0 stint plan m.onnx --loss cross-entropy --batch 2 --optimizer adam --dim T=3,4,8 --json
is_json out
told '"dim":"T","lengths_arena_bytes":' ',"lengths":[{"length":3,' '{"length":4,'

# the same training as the longest step alone gives, whose labels are masked by hand
train() { expect 0 stint train "$@" --epochs 6 --seed 3; }
train longest $data --target masked.npy --log longest.jsonl --checkpoint longest.kept
train dir $data --target t.npy --pad 0 --log dir.jsonl --checkpoint dir.kept --json
steps() { json_of out steps_by_length "$1"; }
[ $(($(steps 3) + $(steps 4) + $(steps 8))) = 24 ] || fail "not 24 steps"
[ "$(steps 8)" -ge 6 ] && [ "$(steps 3)" -ge 1 ] && [ "$(steps 8)" -lt 24 ] || fail "not all lengths were taken"
losses() { sed -n 's/.*"step":[0-9]*.*"loss":\([-+0-9.e]*\).*/\1/p' "$1"; }
losses longest.jsonl >a && losses dir.jsonl >b
[ "$(wc -l <a)" -ge 24 ] || fail "no losses"
paste a b | awk '{d = $1 / $2 - 1; if (!(d < 2e-6 && d > -2e-6)) exit 1}' || fail "other losses: $(paste a b)"

# the same bits at every budget; each length's are those of a step for that length alone
for budget in min 95%; do
	compile --dim T=3,4,8 --budget $budget -o least
	train least $data --target t.npy --pad 0 --checkpoint "$budget.kept"
	same "dir.kept/step-00000024.safetensors" "$budget.kept/step-00000024.safetensors"
done
make_rows short.npy 8 1 2 0 0 0 0 0 0  2 5 1 0 0 0 0 0  2 2 0 0 0 0 0 0  1 1 1 0 0 0 0 0
make_rows short.t.npy 8 1 0 0 0 0 0 0 0  3 1 4 0 0 0 0 0  1 4 0 0 0 0 0 0  5 0 3 0 0 0 0 0
make_rows cut.npy 3 1 2 0  2 5 1  2 2 0  1 1 1
make_rows cut.t.npy 3 1 0 -100  3 1 4  1 4 -100  5 0 3
# shellcheck disable=SC2046 # numbers
make_rows still.npy 64 $(yes 0 | head -n 256)
# shellcheck disable=SC2046
make_rows cut.still.npy 24 $(yes 0 | head -n 96)
compile --dim T=3 -o alone
expect 0 stint train alone --input cut.npy --input cut.still.npy --target cut.t.npy --epochs 2 --checkpoint alone.kept
expect 0 stint train dir --input short.npy --input still.npy --target short.t.npy --pad x=0 --epochs 2 \
	--checkpoint short.kept --json
[ "$(steps 3)" = 4 ] || fail "short rows did not take the shortest step"
for which in alone short; do
	dir=$([ $which = alone ] && echo alone || echo dir)
	expect 0 stint export $dir --checkpoint $which.kept -o $which.onnx
done
same alone.onnx short.onnx

# one to the next, and resumed: a run that says another --pad is another run
expect 0 stint train dir $data --target t.npy --pad 0 --epochs 3 --seed 3 --checkpoint twice
expect 0 stint train dir $data --target t.npy --pad 0 --epochs 6 --seed 3 --checkpoint twice --resume
same dir.kept/step-00000024.safetensors twice/step-00000024.safetensors
expect 0 stint eval dir $data --target masked.npy
expect 0 stint train dir --no-save $data --target masked.npy --epochs 1
said "every step takes the longest 'T'" "--pad TOKEN"

# held-out data, where a row has one label, take the shortest step that holds them, too: this model's sum tells how long that was
make_model sentence s.onnx
make_rows label.npy 1 0 2 1 0
for length in 3 8 3,8; do
	expect 0 stint compile s.onnx --loss cross-entropy --batch 2 --threads 1 --portable --optimizer sgd --dim T=$length -o s$length
done
judged() { # DIR FILE [OPTION...]: the loss of what is held out, before the first step has changed anything that counts
	dir=$1 held=$2
	shift 2
	expect 0 stint train "$dir" --input "$held" --target label.npy --eval-input "$held" --eval-target label.npy --lr 0 --epochs 1 --no-save --json "$@"
	json_of out eval_loss
}
alone=$(judged s3 cut.npy) all=$(judged s8 short.npy) both=$(judged s3,8 short.npy --pad 0)
[ "$both" = "$alone" ] && [ "$both" != "$all" ] || fail "held-out rows: $both, of 3 tokens $alone, of 8 $all"

# a peak that no length changes leaves a shorter one's own inputs no room: the arena grows by them, within the budget
muon() { stint compile s.onnx --loss cross-entropy --batch 1 --threads 1 --portable --optimizer muon --dim T=3,7,8 "$@"; }
expect 0 muon -o free
expect 0 muon --budget min -o tight
told "with room for all inputs"
arena=$(sed -n '/recomputed/,$d; s/^  arena .* = \([0-9]*\) bytes.*/\1/p' out)
all=$(sed -n 's/^  arena .* = \([0-9]*\) bytes, with room.*/\1/p' out)
[ "$all" -gt "$arena" ] && grep -q "S_ARENA_BYTES $all\$" tight/stint_step.h || fail "an arena of $arena bytes, for all $all"
for dir in free tight; do
	expect 0 stint train $dir --input short.npy --target label.npy --pad 0 --epochs 3 --checkpoint $dir.kept --json
	[ "$(steps 3)" -gt 0 ] || fail "no short step"
done
same free.kept/step-00000012.safetensors tight.kept/step-00000012.safetensors
expect 0 muon --budget "$all" -o tight --force
expect 4 muon --budget $((all - 1)) -o no
said "with T="
absent no

# micro-batches, an incomplete last batch, held-out data
compile --dim T=4,8 --micro-batch 1 -o micro
expect 0 stint train micro --no-save $data --target t.npy --eval-input x.npy --eval-input tone.npy --eval-target t.npy --pad 0 --epochs 2
compile --dim T=4,8 --batch 3 -o three.rows
expect 0 stint train three.rows --no-save $data --target t.npy --pad 0 --epochs 2

# a program of one's own
compile --dim T=4,8 -o dir
absent dir/length-3
(cd dir && make -s libstep.a && cd length-4 && make -s libstep.a) >out 2>err || fail "make libstep.a"
${CC:-cc} -O0 -Idir "$SOURCE/tests/cli/beside.c" dir/length-4/libstep.a dir/libstep.a -lm -fopenmp -o beside 2>err || fail "the program does not build"
./beside dir/weights.safetensors dir/length-4/weights.safetensors >out 2>err || fail "the program's losses differ"

# refusals
refused() { words=$1; shift; expect 2 stint compile m.onnx --loss cross-entropy --batch 2 --optimizer adam -o no "$@"; said "$words"; absent no; }
refused "--dim wants different sizes" --dim T=4,8,4
refused "--dim wants a size of at least 1" --dim T=4,x
refused "has several sizes already" --dim T=4,8 --dim N=2,4
refused "does not go with --bare" --dim T=4,8 --bare
refused "does not go with --target cuda" --dim T=4,8 --target cuda
refused "does not go with --split" --dim T=4,8 --split 2
expect 0 stint show dir
told "for 'T' of 4: dir/length-4"
expect 0 stint show dir/length-4
expect 2 stint train longest --no-save $data --target t.npy --pad 0
said "was compiled for one length"
expect 2 stint train dir --no-save $data --target t.npy --pad none
said "--pad wants the number of a token"
expect 2 stint train dir --no-save $data --target t.npy --pad tone=0
said "no input tone of rows of tokens"
expect 3 stint train dir/length-4 --no-save $data --target t.npy
said "runs in the arena of the one for the longest"
echo '{}' >dir/lengths.json
expect 3 stint train dir --no-save $data --target t.npy --pad 0
said "is no list of lengths"
finished

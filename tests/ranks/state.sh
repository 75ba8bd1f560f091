#!/bin/sh
# state.sh STINT DELAY CASE WORK RANKS SHARD [OPTION...]: steps compiled for a number of ranks, each with a piece of the optimizer's states
# and, SHARD being parameters:1, of the parameters: the losses and values of one process after 20 steps, also with messages that come late (libdelay.so), and where a run goes on with another number
# of ranks, alone, or in pieces again; a piece is as large as it should be; who is not as many is told how to start.
stint=$1 delay=$2 case=$3 work=$4 ranks=$5 shard=$6
shift 6
. "${0%/*}/common.sh"
need_mpi
rm -rf "$work" && mkdir -p "$work" || exit 1
failed=0
compile "$work/step" "$@" || exit 1
for n in $ranks; do
	compile "$work/step-$n" "$@" --ranks "$n" --shard "$shard" || exit 1
done

run() { # LOG COMMAND...
	log=$work/$1
	shift
	"$@" >"$log" 2>&1 || { cat "$log"; echo "FAILED: $*"; failed=1; }
}

train() { # FOLDER RANKS EPOCHS [OPTION...]: in the step for so many, or (0) in that for any number, alone
	folder=$1 n=$2 epochs=$3
	shift 3
	# shellcheck disable=SC2046 # words
	set -- $(data) --epochs "$epochs" --lr 0.01 --seed 5 --checkpoint "$work/$folder" --log "$work/$folder.csv" "$@"
	if [ "$n" = 0 ]; then
		run "$folder.log" "$stint" train "$work/step" "$@"
	else
		# shellcheck disable=SC2086 # words
		run "$folder.log" $late mpirun -n "$n" "$stint" train "$work/step-$n" "$@" --check-ranks 1
	fi
}

same() { # FOLDER
	values "$work/$1" | cmp - "$work/whole.values" && cut -d , -f 1-4 "$work/$1.csv" | cmp - "$work/whole.losses" ||
		{ echo "FAILED: $1 has other bits than one process"; failed=1; }
}

train whole 0 20
values "$work/whole" >"$work/whole.values"
cut -d , -f 1-4 "$work/whole.csv" >"$work/whole.losses"
[ -s "$work/whole.values" ] || exit 1
before='' late=''
for many in $ranks; do
	train "ranks-$many" "$many" 20
	same "ranks-$many"
	late="env LD_PRELOAD=$delay STINT_DELAY_SEED=$many STINT_DELAY_US=2000"
	train "late-$many" "$many" 20
	late=
	same "late-$many"
	train "from-$many" "$many" 7
	train "from-$many" "${before:-0}" 13 --resume
	train "from-$many" 0 20 --resume
	same "from-$many"
	train "to-$many" 0 9
	train "to-$many" "$many" 20 --resume
	same "to-$many"
	before=$many
done

# Bytes of the states and parameters by the plan: elements / n, rounded up, of each.
states() { # DIR N
	python3 - "$work/step/graph.json" "$1/graph.json" "$2" "$shard" <<'END' || { echo "FAILED: the states of $1"; failed=1; }
import json, sys
def lasting(path):
    return {t["name"]: t["bytes"] for t in json.load(open(path))["tensors"]
            if t["name"].startswith("state/") or (t["kind"] == "parameter" and not t["name"].startswith("constant/"))}
def constants(path):
    return sum(t["bytes"] for t in json.load(open(path))["tensors"] if t["name"].startswith("constant/"))
whole, piece, n, parameters = lasting(sys.argv[1]), lasting(sys.argv[2]), int(sys.argv[3]), sys.argv[4] != "state"
assert any("state/" in name for name in whole) and whole.keys() == piece.keys()
for name, size in whole.items():
    state = name.startswith("state/")
    shared = name.count("/") > 1 and "mu_product" not in name if state else parameters
    want = -(-(size // 4) // n) * 4 if shared else size
    assert piece[name] == want, (name, size, piece[name], want)
if parameters and any("lora_" in name for name in whole): # most constants are weights that adapters stand beside
    assert constants(sys.argv[2]) < constants(sys.argv[1]) * 0.75, (constants(sys.argv[1]), constants(sys.argv[2]))
END
}
for n in $ranks; do
	states "$work/step-$n" "$n"
done

# Who is told what.
told() { # CODE WORDS COMMAND...
	code=$1 words=$2
	shift 2
	"$@" >"$work/told.log" 2>&1
	got=$?
	[ $got = "$code" ] && grep -q -e "$words" "$work/told.log" ||
		{ echo "FAILED: exit $got, wanted $code and '$words': $*"; cat "$work/told.log"; failed=1; }
}
# shellcheck disable=SC2086 # words
many=$(printf '%s\n' $ranks | tail -n 1)
dir=$work/step-$many
# shellcheck disable=SC2046 # words
set -- $(data) --epochs 1
told 2 "was compiled for $many ranks, this is 1" "$stint" train "$dir" "$@"
told 2 "was compiled for $many ranks, these are" "$stint" train "$dir" "$@" --ranks $((many + 1))
told 2 "was compiled for $many ranks, th" mpirun -n $((many - 1)) "$stint" train "$dir" "$@"
told 0 "epoch 1/1" "$stint" train "$dir" "$@" --ranks "$many"
# shellcheck disable=SC2046 # words
[ "$shard" = state ] && code=3 words=processes || code=2 words="ranks, each with a piece of its parameters"
told $code "was compiled for $many $words" "$stint" run "$dir" $(data) -o "$work/out.safetensors"
compiled() { "$stint" compile "$case/model.onnx" --loss cross-entropy --optimizer sgd --batch 4 -o "$work/none" --no-build "$@"; }
told 2 "a step is 4 micro-batches" compiled --micro-batch 1 --ranks 5
told 2 "a step is 1 micro-batch$" compiled --ranks 2
told 2 "a step is 4 micro-batches at most" compiled --micro-batch auto --ranks 5
told 2 "do not go together" compiled --micro-batch auto --ranks 2 --split auto
told 2 "trains alone" compiled --micro-batch 1 --ranks 2 --bare
told 2 "says what so many processes share" compiled --micro-batch 1 --shard none
told 2 "wants a size of at least 1" compiled --micro-batch 1 --ranks 0
told 2 "it is state, none, parameters or parameters:SIZE" compiled --micro-batch 1 --ranks 2 --shard optimizer
told 2 "wants bytes, 1 or more" compiled --micro-batch 1 --ranks 2 --shard parameters:70%
told 2 "not the same number for each of 3" compiled --micro-batch 1 --ranks 3 --shard parameters
[ ! -e "$work/none" ] || { echo "FAILED: a refused step was written"; failed=1; }

# --micro-batch auto: all that give each rank one, and of these what the busiest rank is done with first. Each is planned as by a
# --micro-batch of that number, with as much effort.
planned() { # RANKS OPTION...
	of=$1
	shift
	# shellcheck disable=SC2046 # words
	"$stint" plan "$case/model.onnx" $(sed 's/--dropout off//' "$case/options") --optimizer adamw --threads 1 --batch 12 --ranks "$of" --json "$@" \
		2>"$work/told.log" || { cat "$work/told.log"; failed=1; }
}
planned 3 --micro-batch auto >"$work/auto.json"
for n in 1 2 3 4; do
	planned 3 --micro-batch $n --effort 0.25 >"$work/auto-$n.json"
done
planned 2 --micro-batch auto --shard state --link 1GB/s,1us >"$work/auto-link.json"
for n in 2 3 5; do
	planned $n --micro-batch 1 --shard none >"$work/auto-of-$n.json"
done
python3 - "$work" <<'END' || { echo "FAILED: --micro-batch auto"; failed=1; }
import json, sys
read = lambda name: json.load(open(f"{sys.argv[1]}/auto{name}.json"))
tried = {x["micro_batches"]: x for x in read("")["tried"]}
assert sorted(tried) == [3, 4, 6, 12], tried
for shards, x in tried.items():
    one = read(f"-{12 // shards}")["cost"]
    assert x["cost"] == one["total" if x["state"] == "planned" else "once"], (x, one)
    assert x["chosen"] == (x["cost"] == min(t["cost"] for t in tried.values())), tried
# of 12 micro-batches the busiest of 2, 3 and 5 ranks has 6, 4 and 3: what is predicted is its time
two, three, five = (read(f"-of-{n}")["cost"]["once"] for n in (2, 3, 5))
alone, two_ranks = read("-link")["rows"] # one takes the batch whole
assert alone["micro_batches"] == two_ranks["micro_batches"] == 1 and alone["step_us"] == alone["compute_us"] > 0, (alone, two_ranks)
assert 0 < three - five < three and abs(two - three - 2 * (three - five)) < 1e-6 * two, (two, three, five)
END

# Another folder's checkpoint, evaluated alone and by as many: the same numbers from both steps; of fewer samples, too, where some
# ranks have a batch less.
scores() { # NAME FOLDER OPTION...
	name=$1 folder=$2
	shift 2
	"$stint" eval "$work/$folder" --checkpoint "$work/ranks-$many" "$@" >"$work/$name.scores" 2>"$work/told.log" ||
		{ cat "$work/$name.scores" "$work/told.log"; failed=1; }
	cmp "$work/$name.scores" "$work/alone.scores" || { echo "FAILED: $name has other scores"; failed=1; }
}
python3 - "$work" "$case" <<'END' || failed=1
import ast, glob, os, sys
for path in glob.glob(f"{sys.argv[2]}/*.npy"):
    file = open(path, "rb").read()
    start = 10 + int.from_bytes(file[8:10], "little")
    head = ast.literal_eval(file[10:start].decode())
    rows = head["shape"][0]
    head["shape"] = (rows - 2, *head["shape"][1:])
    left = file[start:start + (len(file) - start) // rows * (rows - 2)]
    open(f"{sys.argv[1]}/few-{os.path.basename(path)}", "wb").write(file[:10] + repr(head).ljust(start - 11).encode() + b"\n" + left)
END
few=$(data | sed "s|$case/|$work/few-|")
for what in "$(data)" "$few"; do
	# shellcheck disable=SC2086 # words
	scores alone step $what
	# shellcheck disable=SC2086
	scores together "step-$many" $what --ranks "$many"
	# shellcheck disable=SC2086
	[ "$shard" != state ] || scores pieces "step-$many" $what
done

# Beside training: as one process scores what it has trained.
for n in 0 "$many"; do
	# shellcheck disable=SC2086 # words
	train "held-$n" "$n" 2 $(echo "$few" | sed 's/^--/--eval-/')
done
grep 'eval loss' "$work/held-0.log" | sed 's/  [0-9.]* s\(,.*\)*$//' >"$work/alone.scores"
grep 'eval loss' "$work/held-$many.log" | sed 's/  [0-9.]* s\(,.*\)*$//' | cmp - "$work/alone.scores" || { echo "FAILED: other scores beside training"; failed=1; }
[ "$(wc -l <"$work/alone.scores")" = 2 ] || failed=1
[ $failed = 1 ] || rm -rf "$work"
exit $failed

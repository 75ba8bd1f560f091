#!/bin/sh
# disk.sh TOOLS EXAMPLES MODEL WORK [OPTION...]: weights and states in a file (--offload disk), in a budget below
# what they are together, give the bits of a step that has them in memory: one step's gradients and outputs, three
# steps' weights and states, a training that changes from one to the other, what is exported, and what an evaluation
# finds. Copies beside the kernels, and (--debug-arena) each in its step's place with all free bytes NaN.
tools=$1 examples=$2 model=$3 work=$4
shift 4
stint=$tools/stint
batch=4
rm -rf "$work" && mkdir -p "$work/one" "$work/three" "$work/disk" || exit 1
"$tools/make_inputs" "$work/one" $batch && "$tools/make_inputs" "$work/three" $((3 * batch)) || exit 1
input=image target=label
[ "$model" != gpt ] || input=tokens target=next
native=-march=native
case " $* " in *" --portable "*) native= ;; esac
export CFLAGS="-O1 $native"

die() {
	echo "FAILED: $*"
	exit 1
}

number() { # NAME OF A PLAN
	sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$work/$2/plan.json" | head -n 1
}

train() { # NAME EPOCHS OPTION...
	name=$1 epochs=$2
	shift 2
	"$stint" train "$work/$name" --seed 7 --input "$work/three/$input.npy" --target "$work/three/$target.npy" \
		--epochs "$epochs" "$@" >"$work/train.log" 2>&1 || { cat "$work/train.log"; die "$name does not train"; }
}

step() { # NAME OPTION...
	name=$1
	shift
	"$stint" compile "$examples/$model.onnx" --effort 0.05 --batch $batch --loss cross-entropy \
		--optimizer adamw:lr=0.01 "$@" -o "$work/$name" >"$work/$name.log" 2>&1 ||
		{ cat "$work/$name.log"; die "$model does not compile: $name"; }
	"$stint" run "$work/$name" --seed 7 --input "$work/one/$input.npy" --target "$work/one/$target.npy" \
		-o "$work/$name.safetensors" >/dev/null || die "$model does not run: $name"
	train "$name" 1 --checkpoint "$work/$name/saved"
	"$stint" export "$work/$name" --checkpoint "$work/$name/saved" -o "$work/$name.onnx" >/dev/null ||
		die "$name is not exported"
	"$stint" eval "$work/$name" --checkpoint "$work/$name/saved" --input "$work/three/$input.npy" \
		--target "$work/three/$target.npy" >"$work/$name.found" 2>/dev/null || die "$name is not evaluated"
	echo "$name: arena $(number arena_bytes "$name") bytes"
}

same() { # NAME
	"$tools/compare_tensors" --identical "$work/$1.safetensors" "$work/memory.safetensors" || die "$1: a step"
	"$tools/compare_tensors" --identical "$work/$1"/saved/*.safetensors "$work"/memory/saved/*.safetensors ||
		die "$1: a training"
	cmp "$work/$1.onnx" "$work/memory.onnx" || die "$1: what is exported"
	cmp "$work/$1.found" "$work/memory.found" || die "$1: what is evaluated"
}

step memory "$@" --budget min
step file "$@" --budget min --offload "disk:$work/disk:500MB:256"
[ "$(number arena_bytes file)" -lt "$(number arena_bytes memory)" ] || die "no less than the least in memory"
residents=$(tr '{' '\n' <"$work/memory/graph.json" | grep '"kind":"\(parameter\|state\)"' |
	sed -n 's/.*"bytes":\([0-9]*\).*/\1/p' | awk '{n += $1} END {print n}')
[ "$model" = mlp ] || [ "$(number arena_bytes file)" -lt "$residents" ] || # one matrix is most of mlp
	die "no less than weights and states, $residents bytes"
"$stint" check --graph "$work/file/graph.json" "$work/file/plan.json" || die "the checker"
grep -q '^disk: ' "$work/file.log" || die "nothing is said of the disk"
grep -q '"name":"store state/exp_avg/' "$work/file/graph.json" || die "no store has its tensor's name"
case " $* " in # what is rounded by chance goes whole
*" --state-precision "*) ;;
*) grep -q '"name":"store state/exp_avg/.*, piece 2"' "$work/file/graph.json" || die "no large update goes in pieces" ;;
esac
same file
step wide "$@" --offload "disk:$work/disk:500MB:256"
same wide
step poisoned "$@" --budget min --offload "disk:$work/disk:500MB:256" --debug-arena
same poisoned
if [ "$model" = gpt ]; then # activations wait there, too, where that costs less than to make them again
	step waiting "$@" --budget 1300000 --offload "disk:$work/disk:20GB:4096"
	grep -q '^the file holds in a step: .* for [1-9]' "$work/waiting.log" || die "no activation waits in the file"
	same waiting
	step waiting.poisoned "$@" --budget 1300000 --offload "disk:$work/disk:20GB:4096" --debug-arena
	same waiting.poisoned
fi

# A weight that is not trained is read from where it is; what else is said to be its value comes to the file.
cp "$work/memory/weights.safetensors" "$work/values.safetensors"
for name in memory file; do
	"$stint" eval "$work/$name" --weights "$work/values.safetensors" --input "$work/three/$input.npy" \
		--target "$work/three/$target.npy" >"$work/$name.values" 2>/dev/null || die "$name with --weights"
done
cmp "$work/memory.values" "$work/file.values" || die "with --weights"

# A training goes on in either.
train memory 2 --checkpoint "$work/both"
train memory 1 --checkpoint "$work/changed"
train file 2 --checkpoint "$work/changed" --resume
"$tools/compare_tensors" --identical "$work"/both/step-00000006.safetensors "$work"/changed/step-00000006.safetensors ||
	die "a training that changes to the file"
[ -z "$(ls -A "$work/disk")" ] || die "a file is left"

# Several ranks would each have a file: refused, before any is started.
if [ "${*#*--micro-batch}" != "$*" ]; then
	"$stint" train "$work/file" --no-save --input "$work/three/$input.npy" --target "$work/three/$target.npy" --ranks 2 >"$work/ranks.log" 2>&1
	[ $? = 2 ] || die "several ranks: no exit 2"
	grep -q "weights in a file" "$work/ranks.log" || die "several ranks: it is not told why"
fi

# No room: exit 5, before anything is trained.
[ "$model" = mlp ] || exit 0
(
	trap '' XFSZ
	ulimit -f 8
	"$stint" train "$work/file" --input "$work/three/$input.npy" --target "$work/three/$target.npy" \
		--checkpoint "$work/none" 2>&1 | cat >"$work/full.log"
)
grep -q "cannot make a file of [0-9]* bytes in $work/disk: File too large" "$work/full.log" ||
	{ cat "$work/full.log"; die "a full disk is not told"; }
rm -r "$work/disk"
"$stint" train "$work/file" --input "$work/three/$input.npy" --target "$work/three/$target.npy" \
	--checkpoint "$work/none" >"$work/gone.log" 2>&1
[ $? = 5 ] || die "a folder that is not there: no exit 5"
grep -q "cannot make the file in $work/disk: No such file" "$work/gone.log" || die "it is not told"
[ ! -e "$work/none" ] || [ -z "$(ls -A "$work/none")" ] || die "a checkpoint of nothing"

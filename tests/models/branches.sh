#!/bin/sh
# branches.sh STINT COMPARE CASES WORK: branches that data decide (tests/oracle/branches.py). `norm` against PyTorch's training, in
# double precision and with the library, and the same bits at the smallest budget, with bytes poisoned that are dead or were not
# written. `deep` and `norms` (batch normalisations, of which one is called in either branch): gradients and running statistics to the bit
# those of the model whose condition is known, at any budget, in slices, in micro-batches; what is not run has none; and memory
# as for the larger branch. An epoch with an incomplete last batch, on two ranks too, and what predict and eval say, likewise.
stint=$1 compare=$2 cases=$3 work=$4
rm -rf "$work" && mkdir -p "$work" || exit 1
export CFLAGS="${CFLAGS:--O0 -march=native}" CC="${STINT_VALUES_CC:-${CC:-cc}}"
failed=0

fail() {
	echo "FAILED: $*"
	failed=1
}

compiled() { # CASE NAME OPTION...
	case=$1 into=$2
	shift 2
	"$stint" compile "$cases/$case/model.onnx" --optimizer sgd:lr=0.1 --threads 2 "$@" -o "$work/$into" >"$work/$into.log" 2>&1 ||
		{ cat "$work/$into.log"; return 1; }
}

# --- Against PyTorch ---

trained() { # NAME OPTION...
	into=$1
	shift
	compiled norm "$into" --loss cross-entropy --batch 8 "$@" || return 1
	"$stint" train "$work/$into" --input "$cases/norm/x.npy" --target "$cases/norm/target.npy" --epochs 1 --seed 1 \
		--checkpoint "$work/$into.values" --log "$work/$into.jsonl" >>"$work/$into.log" 2>&1 ||
		{ cat "$work/$into.log"; return 1; }
	cp "$work/$into.values"/step-*.safetensors "$work/$into.safetensors"
	sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$work/$into.jsonl" >"$work/$into.losses"
}

same() { # NAME OPTION...
	trained "$@" && cmp "$work/library.losses" "$work/$1.losses" && cmp "$work/library.safetensors" "$work/$1.safetensors" ||
		fail "norm, $*"
}

reference=$cases/norm/reference.safetensors
trained double --portable --precision fp64 && "$compare" 2e-6 "$work/double.safetensors" "$reference" || fail "norm in double"
paste "$work/double.losses" "$cases/norm/losses" | awk '
	NF != 2 || $1 - $2 > 2e-6 * $2 || $2 - $1 > 2e-6 * $2 { print "step", NR, "has loss", $1, "and PyTorch", $2; bad = 1 }
	END { exit bad || NR != 6 }' || fail "norm: losses"
trained library && "$compare" 1e-4 "$work/library.safetensors" "$reference" || fail "norm with the library"
same least --budget min
same poisoned --debug-arena
same poisoned_least --debug-arena --budget min

# --- Against a condition that is known ---

stepped() { # MODEL NAME FLAG OPTION...: its gradients, of data that are drawn
	model=$1 into=$2 value=$3
	shift 3
	compiled "$model" "$into" --loss mse --batch 256 "$@" || return 1
	set -- --input "x=$work/x.npy"
	[ "$value" = fixed ] || set -- "$@" --input "flag=$cases/deep/flag$value.npy"
	"$stint" run "$work/$into" "$@" --target "$work/t.npy" -o "$work/$into.safetensors" >>"$work/$into.log" 2>&1 ||
		{ cat "$work/$into.log"; return 1; }
}

arena() { # NAME
	sed -n 's/^ *arena .* = \([0-9]*\) bytes.*/\1/p' "$work/$1.log" | head -n 1
}

npy() { # FILE ROWS COLUMNS: numbers that differ
	python3 - "$@" <<-'END'
		import struct, sys
		rows, columns = int(sys.argv[2]), int(sys.argv[3])
		head = repr({"descr": "<f4", "fortran_order": False, "shape": (rows, columns)})
		head += " " * (117 - len(head)) + "\n"
		numbers = [((i * 2654435761) % 4096 - 2048) / 1024 for i in range(rows * columns)]
		with open(sys.argv[1], "wb") as f:
		    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
		    f.write(struct.pack("<%df" % len(numbers), *numbers))
	END
}

agrees() { # FILE FILE FOLDER
	python3 "${0%/*}/agrees.py" "$@"
}

# Training with an incomplete last batch, then answers of what was trained.
used() { # NAME FLAG COMMAND...: of a folder that was compiled
	into=$1 value=$2
	shift 2
	rm -rf "$work/$into.values" "$work/$into.answers"
	mkdir "$work/$into.answers"
	set -- "$@" "$stint" train "$work/$into" --epochs 2 --seed 1 --checkpoint "$work/$into.values" --target "$work/t.npy" --input "x=$work/x.npy"
	[ "$value" = fixed ] || set -- "$@" --input "flag=$cases/deep/flag$value.npy"
	"$@" >"$work/$into.log" 2>&1 || { cat "$work/$into.log"; return 1; }
	! grep "leaves out" "$work/$into.log" || return 1
	cp "$work/$into.values"/step-00000006.safetensors "$work/$into.safetensors" || return 1
	set -- "$work/$into" --checkpoint "$work/$into.values" --input "x=$work/x.npy"
	[ "$value" = fixed ] || set -- "$@" --input "flag=$cases/deep/flag$value.npy"
	"$stint" predict "$@" -o "$work/$into.answers/y.npy" >"$work/$into.log" 2>&1 &&
		"$stint" eval "$@" --target "$work/t.npy" --json >"$work/$into.answers/eval.json" 2>>"$work/$into.log" ||
		{ cat "$work/$into.log"; return 1; }
}

npy "$work/x.npy" 256 6
npy "$work/t.npy" 256 4
for model in deep norms; do
	for flag in 1 0; do
		stepped $model known$flag fixed --fix flag=$flag || fail "$model, $flag known"
		for way in "" "--budget 90%" "--budget min"; do
			# shellcheck disable=SC2086 # options are words
			stepped $model data$flag $flag $way --debug-arena && agrees "$work/data$flag.safetensors" "$work/known$flag.safetensors" "$work/data$flag" ||
				fail "$model, $flag, $way"
		done
	done
	# in slices are the nodes before the If alone, whose sums are others
	for way in "" "--split 4"; do
		# shellcheck disable=SC2086 # options are words
		stepped $model "data$way" 1 $way --portable --precision fp64 || fail "$model, $way"
	done
	"$compare" 1e-12 "$work/data--split 4.safetensors" "$work/data.safetensors" || fail "$model in slices"
	for way in "--micro-batch 64" "--micro-batch 64 --budget min"; do
		# shellcheck disable=SC2086 # options are words
		stepped $model known1 fixed --fix flag=1 $way && stepped $model data1 1 $way --debug-arena &&
			agrees "$work/data1.safetensors" "$work/known1.safetensors" "$work/data1" || fail "$model, $way"
	done
	for way in "--batch 96" "--batch 96 --micro-batch 48"; do
		# shellcheck disable=SC2086 # options are words
		compiled $model known1 --loss mse --fix flag=1 $way && compiled $model data1 --loss mse $way && used known1 fixed && used data1 1 &&
			agrees "$work/data1.safetensors" "$work/known1.safetensors" "$work/data1" && diff -r "$work/known1.answers" "$work/data1.answers" ||
			fail "$model, training and answers, $way"
	done
	if command -v mpirun >/dev/null; then
		export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
		export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
		cp "$work/data1.safetensors" "$work/alone.safetensors"
		used data1 1 mpirun -n 2 && cmp "$work/data1.safetensors" "$work/alone.safetensors" || fail "$model on two ranks"
	fi
done
for flag in 1 0; do
	compiled deep whole$flag --loss mse --batch 256 && compiled deep known$flag --loss mse --batch 256 --fix flag=$flag || fail "deep, $flag: memory"
done
larger=$(arena known1) data=$(arena whole1)
echo "arena: $data bytes; of the larger branch alone $larger, of the smaller $(arena known0)"
[ $((data * 4)) -le $((larger * 5)) ] || fail "memory of both branches"

# --- What is said ---

for flag in then else; do
	"$stint" show "$work/whole1" | grep -q "  when choice/$flag\$" && grep -q "\"when\":\"choice/$flag\"" "$work/whole1/plan.json" ||
		fail "steps of choice/$flag are not marked"
done
"$stint" show "$work/whole1" | grep -q "^branches: data decide whether [1-9][0-9]* of [1-9][0-9]* steps run; costs are of all\$" || fail "show: branches"
"$stint" show "$work/known1" | grep "branches:\|when choice" && fail "show: branches where there are none"
"$stint" compile "$cases/deep/model.onnx" --loss mse --optimizer sgd --batch 8 --target cuda --no-build -o "$work/gpu" >"$work/gpu.log" 2>&1
[ $? = 3 ] && [ ! -e "$work/gpu" ] && grep -q "node 'choice' (If): .* on a GPU stint has no branches yet" "$work/gpu.log" || fail "on a GPU"
compiled again again --loss mse --batch 8 >"$work/again.said" &&
	fail "running statistics of a layer that is called under several conditions"
grep -q "running statistics 'both_mean' are also those of 'n0', which runs under another condition" "$work/again.said" || fail "$(cat "$work/again.said")"
compiled again again --loss mse --batch 8 --bn frozen --no-build || fail "the layer that is called under several conditions, frozen"
rm -rf "$work"/known? "$work"/data* "$work"/whole? "$work"/*.values
exit $failed

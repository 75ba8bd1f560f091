#!/bin/sh
# branches.sh STINT COMPARE CASES WORK: branches that data decide (tests/oracle/branches.py). `norm` against PyTorch's training, in
# double precision and with the library, and the same bits at the smallest budget, with bytes poisoned that are dead or were not
# written. `deep`: gradients to the bit those of the model whose condition is known, at any budget; what is
# not run has none; and memory as for the larger branch.
stint=$1 compare=$2 cases=$3 work=$4
rm -rf "$work" && mkdir -p "$work" || exit 1
export CFLAGS="${CFLAGS:--O0 -march=native}"
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

stepped() { # NAME FLAG OPTION...: its gradients, of data that are drawn
	into=$1 value=$2
	shift 2
	compiled deep "$into" --loss mse --batch 256 "$@" || return 1
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

npy "$work/x.npy" 256 6
npy "$work/t.npy" 256 4
for flag in 1 0; do
	stepped "known$flag" fixed --fix "flag=$flag" || fail "deep, $flag known"
	for budget in none 70% min; do
		limit="--budget $budget"
		[ "$budget" != none ] || limit=
		# shellcheck disable=SC2086 # two words or none
		stepped "data$flag" $flag $limit --debug-arena &&
			python3 "${0%/*}/agrees.py" "$work/data$flag.safetensors" "$work/known$flag.safetensors" ||
			fail "deep, $flag at the budget $budget"
	done
	compiled deep "whole$flag" --loss mse --batch 256
done
larger=$(arena known1) data=$(arena whole1)
echo "arena: $data bytes; of the larger branch alone $larger, of the smaller $(arena known0)"
[ $((data * 4)) -le $((larger * 5)) ] || fail "memory of both branches"
rm -rf "$work"/known? "$work"/data? "$work"/whole? "$work"/*.values
exit $failed

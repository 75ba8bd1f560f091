#!/bin/sh
# reduce.sh STINT DELAY CASE WORK: `train --reduce fast`, whole and with pieces of states: the sums of one process but for roundings, the
# same on all ranks and each time; none of the tree's messages; the tree's bits without it, and where one process is alone.
stint=$1 delay=$2 case=$3 work=$4
. "${0%/*}/common.sh"
need_mpi
rm -rf "$work" && mkdir -p "$work" || exit 1
compile "$work/step" --optimizer sgd:lr=0.1,momentum=0.9 && compile "$work/step-3" --optimizer sgd:lr=0.1,momentum=0.9 --ranks 3 || exit 1
failed=0

train() { # NAME STEP COMMAND... [-- OPTION...]
	name=$1 step=$2
	shift 2
	# shellcheck disable=SC2046 # words
	LD_PRELOAD=$delay STINT_SENT=$work/$name.sent "$@" "$stint" train "$work/$step" $(data) --epochs 5 --seed 5 --check-ranks 1 --checkpoint "$work/$name" $fast \
		>"$work/$name.log" 2>&1 || { cat "$work/$name.log"; echo "FAILED: $name"; failed=1; }
	values "$work/$name" >"$work/$name.values"
}

same() { # NAME OTHER
	cmp "$work/$1.values" "$work/$2.values" || { echo "FAILED: $1 has other bits than $2"; failed=1; }
}

fast=
train one step env
for step in step step-3; do
	fast='--reduce tree'
	train "$step-tree" "$step" mpirun -n 3
	same "$step-tree" one
	fast='--reduce fast'
	train "$step-fast" "$step" mpirun -n 3
	train "$step-again" "$step" mpirun -n 3
	same "$step-fast" "$step-again"
done
train alone step env
same alone one
python3 - "$work" <<'END' || { echo "FAILED: other sums, or the tree's messages"; failed=1; }
import glob, json, struct, sys

def read(name):
    with open(sorted(glob.glob(f"{sys.argv[1]}/{name}/step-*.safetensors"))[-1], "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    out = {}
    for key, t in head.items():
        if key != "__metadata__" and t["dtype"] == "F32":
            a, b = t["data_offsets"]
            out[key] = struct.unpack(f"<{(b - a) // 4}f", data[a:b])
    return out

def sent(name):
    return sum(int(open(f"{sys.argv[1]}/{name}.sent.{k}").read().split()[0]) for k in range(3))

one = read("one")
assert any(key.startswith("state/") for key in one)
for step in ("step", "step-3"):
    for key, values in read(step + "-fast").items():
        most = max(map(abs, one[key]))
        off = max(abs(a - b) for a, b in zip(values, one[key]))
        assert off <= 1e-5 * most, (step, key, off, most)
    tree, fast = sent(step + "-tree"), sent(step + "-fast")
    print(f"{step}: {tree} messages of the tree, {fast} beside MPI's sums")
    assert fast < 0.7 * tree, (tree, fast)
END

# Of one rank alone.
# shellcheck disable=SC2046 # words
mpirun -n 1 "$stint" train "$work/step" --no-save $(data) --reduce fast : -n 1 "$stint" train "$work/step" --no-save $(data) >"$work/odd.log" 2>&1
code=$?
[ $code = 2 ] && grep -q 'another rank has --reduce fast' "$work/odd.log" || { echo "FAILED: exit $code for one rank's --reduce"; cat "$work/odd.log"; failed=1; }
"$stint" train "$work/step" --no-save --reduce slow >"$work/slow.log" 2>&1
code=$?
[ $code = 2 ] && grep -q 'neither tree nor fast' "$work/slow.log" || { echo "FAILED: exit $code for --reduce slow"; cat "$work/slow.log"; failed=1; }
[ $failed = 1 ] || rm -rf "$work"
exit $failed

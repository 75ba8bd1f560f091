#!/bin/sh
# The benchmark's driver and the converter of public instances: test_run.sh HERE BUILD FOLDER
set -eu
here=$1 build=$2
rm -rf "$3"
mkdir -p "$3/set" "$3/from/data"
cd "$3"
fail()
{
	echo "FAILED: $*"
	cat out
	exit 1
}
run() { "$here/run.sh" --build "$build" "$@" >out 2>&1; }

# a chain of 6 with room for all, for half and for too little; the reference is a little too dear
"$build/graphs" chain 6 >set/c.json
cat >set/reference.json <<'J'
{"c": {"_info": {}, "all": {"budget_bytes": 8388608, "best_cost": 190.0},
 "half": {"budget_bytes": 5242880, "best_cost": 250.0}, "none": {"budget_bytes": 2097152, "best_cost": null}}}
J
run --save saved.json set || fail "run.sh"
grep -q '^2 plans, 1 not met, 0 bad$' out || fail "summary"
grep -q '^c  *13 all .* 1.00000 .*chain optimum x 1.00000' out || fail "the line of all"
grep -q '^c  *13 half .* 0.[0-9]* ' out || fail "the line of half"
grep -q 'not met: known' out || fail "the line of none"
run --against saved.json --fractions all set || fail "--against"
grep -q 'before x 1.00000' out || fail "the same again"
run --only nothing || fail "no instances"
# a plan for a graph that cannot be read is bad
echo '{"ops": []}' >set/d.json
if run --only d set; then fail "a bad graph passes"; fi
grep -q FAILED out || fail "a bad graph is not told"

# node-link graphs: b reads a, c reads a and b; listed in that order, 1 + 2 + 4 bytes at once
cat >from/data/random_layered_n3.json <<'J'
{"graph": {"order": [0, 2, 1]}, "nodes": [{"name": 0, "out_cost": 1, "duration": 5},
 {"name": 1, "out_cost": 4, "duration": 7}, {"name": 2, "out_cost": 2, "duration": 9}],
 "links": [{"0": 0, "1": 2}, {"0": 0, "1": 1}, {"0": 2, "1": 1}]}
J
python3 "$here/public.py" moccasin from to >out || fail "public.py"
python3 - <<'P' >out 2>&1 || fail "what public.py wrote"
import json
g, r = (json.load(open("to/%s.json" % n)) for n in ("random_layered_n3", "reference"))
assert [o["inputs"] for o in g["ops"]] == [[], [0], [0, 1]] and [o["cost"] for o in g["ops"]] == [5, 9, 7]
assert [t["bytes"] for t in g["tensors"]] == [64, 128, 256]
assert r["random_layered_n3"]["_info"]["keepall_peak"] == 7 * 64
assert r["random_layered_n3"]["0.9"]["budget_bytes"] == 7 * 64
P
"$build/stint" plan --graph to/random_layered_n3.json --budget 448 >out 2>&1 || fail "the graph is not planned"

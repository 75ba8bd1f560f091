#!/bin/sh
# sh tests/bench/costs.sh [STINT [FOLDER]]: the examples' predicted step time against the measured.
# Each example is compiled to keep everything, measured (bench --costs-out), and planned again with
# its own measured costs: keeping everything, and inside two tighter budgets. A table to standard
# output.
#
# To be run by hand on an idle machine: another program on one core makes steps several times as
# long. So each measurement is made ROUNDS times (3), in turns, and the fastest counts. THREADS=1 needs one
# idle core only.
set -eu
stint=${1:-build/stint}
out=${2:-build/costs}
models=examples/models
steps=${STEPS:-30}
rounds=${ROUNDS:-3}
mkdir -p "$out"
rm -f "$out"/*.json

field() { grep -o "\"$2\":[0-9.e+-]*" "$1" | head -n 1 | cut -d: -f2; }

# measure DIR [COSTS]: DIR.json, and COSTS, are those of the fastest run so far
measure()
{
	"$stint" bench "$1" --steps "$steps" --json ${2:+--costs-out "$2.new"} >"$1.new"
	if [ ! -e "$1.json" ] ||
		awk "BEGIN {exit !($(field "$1.new" step_ms) < $(field "$1.json" step_ms))}"; then
		mv "$1.new" "$1.json"
		[ -z "${2:-}" ] || mv "$2.new" "$2"
	fi
	rm -f "$1.new" ${2:+"$2.new"}
}

compile()
{
	name=$1
	shift
	"$stint" compile "$models/$name.onnx" --loss cross-entropy ${THREADS:+--threads "$THREADS"} "$@" >/dev/null 2>&1
}

# the examples as their scripts compile them
example()
{
	case $1 in
	mlp) compile "$@" --optimizer adamw:lr=1e-3 --batch 64 ;;
	cnn) compile "$@" --optimizer sgd:lr=0.05,momentum=0.9,nesterov=1,weight_decay=5e-4 --batch 64 ;;
	resnet) compile "$@" --optimizer sgd:lr=0.1,momentum=0.9,nesterov=1,weight_decay=5e-4 --batch 64 ;;
	gpt) compile "$@" --optimizer adamw:lr=2e-3,weight_decay=0.1 --clip-norm 1 --batch 16 ;;
	esac
}

all="mlp cnn resnet gpt" budgets="100% 60% min"
for m in $all; do example $m -o "$out/$m"; done
for r in $(seq "$rounds"); do
	for m in $all; do measure "$out/$m" "$out/$m.costs.json"; done
done
for m in $all; do
	for b in $budgets; do
		rm -rf "$out/$m-$b" # 60% is less than the MLP needs: no row then
		example $m --costs "$out/$m.costs.json" --budget "$b" -o "$out/$m-$b" || true
	done
done
for r in $(seq "$rounds"); do
	for m in $all; do
		for b in $budgets; do [ ! -d "$out/$m-$b" ] || measure "$out/$m-$b"; done
	done
done

row()
{
	awk -v name="$1" -v plan="$2" -v costs="$3" -v p="$(field "$4" predicted_ms)" \
		-v m="$(field "$4" step_ms)" -v k="$(field "$4" kernels_ms)" 'BEGIN {
		printf "%-8s %-6s %-9s %12.3f %10.3f %8.3f %10.3f\n", name, plan, costs, p, m, p / m, k / m}'
}
printf '%-8s %-6s %-9s %12s %10s %8s %10s\n' model budget costs 'predicted ms' 'step ms' ratio ops/step
for m in $all; do
	row $m 100% roofline "$out/$m.json"
	for b in $budgets; do
		[ ! -e "$out/$m-$b.json" ] || row $m "$b" measured "$out/$m-$b.json"
	done
done

#!/bin/sh
# budget.sh TOOLS MODEL.onnx WORK: what a budget promises. Budgets as written are met; the smallest
# known one is said when less is asked for, is met when asked for, and is the limit.
tools=$1 model=$2 work=$3
rm -rf "$work" && mkdir -p "$work" || exit 1

die() {
	echo "FAILED: $*"
	exit 1
}

compile() { # BUDGET: sets rc, arena and granted (the budget in bytes)
	"$tools/stint" compile "$model" --effort 0.05 --batch 4 --loss cross-entropy --optimizer adamw --threads 2 --no-build \
		--budget "$1" -o "$work/step" >"$work/out" 2>"$work/err"
	rc=$?
	plan=$work/step/plan.json
	[ $rc = 0 ] || return
	arena=$(sed -n 's/.*"arena_bytes": *\([0-9]*\).*/\1/p' "$plan" | head -n 1)
	granted=$(sed -n 's/.*"budget_bytes": *\([0-9]*\).*/\1/p' "$plan" | head -n 1)
	"$tools/stint" check --graph "$work/step/graph.json" "$plan" >/dev/null || die "$1: the plan does not check"
	[ "$arena" -le "$granted" ] || die "$1: an arena of $arena bytes in a budget of $granted"
	echo "budget $1 = $granted bytes: arena $arena bytes"
}

must_fail() { # BUDGET: with exit 4, and both bounds
	compile "$1"
	[ $rc = 4 ] || { cat "$work/err"; die "$1: exit $rc, not 4"; }
	[ ! -s "$work/out" ] || die "$1: a failure's message belongs on stderr"
	met=$(sed -n 's/.*smallest budget met: \([0-9]*\) bytes.*/\1/p' "$work/err")
	proven=$(sed -n 's/.*proven lower bound: \([0-9]*\) bytes.*/\1/p' "$work/err")
	[ -n "$met" ] && [ -n "$proven" ] || { cat "$work/err"; die "$1: the bounds are not said"; }
	[ "$proven" -le "$met" ] || die "a lower bound of $proven bytes, yet $met were met"
}

must_pass() {
	compile "$1"
	[ $rc = 0 ] || { cat "$work/err"; die "$1: exit $rc"; }
}

must_pass 100%
all=$granted
must_pass min
least=$granted
compile 70%
if [ $rc = 4 ]; then # a model that is mostly parameters
	within=$(sed -n 's/.*no plan found within \([0-9]*\) bytes.*/\1/p' "$work/err")
	[ -n "$within" ] && [ "$within" -lt "$least" ] || die "70% is not met, and is no less than min"
else
	[ $rc = 0 ] && [ "$granted" -lt "$all" ] || die "70%: exit $rc, or no less than 100%"
fi
must_fail 100kB
[ "$met" = "$least" ] || die "min grants $least bytes, the message says $met"
must_pass "$met"
must_fail $((met - 64))
[ $((met - 64)) -ge "$proven" ] || echo "the lower bound is tight"
exit 0

#!/bin/sh
# arena.sh TOOLS SOURCE WORK TEST [OPTION...]: the generated step inside a program of its user's.
tools=$1 source=$2 work=$3 test=$4
shift 4
stint=$tools/stint
CC=${CC:-cc}
rm -rf "$work" && mkdir -p "$work" || exit 1

die() {
	echo "FAILED: $*"
	exit 1
}

compile() { # NAME MODEL OPTION...
	name=$1 model=$2
	shift 2
	"$stint" compile "$source/examples/models/$model.onnx" --effort 0.05 --batch 4 --loss cross-entropy --threads 2 \
		--optimizer "${optimizer:-adamw:lr=0.001}" "$@" -o "$work/$name" >"$work/$name.log" 2>&1 ||
		{ cat "$work/$name.log"; die "$model does not compile"; }
}

upper() {
	echo "$1" | tr '[:lower:]' '[:upper:]'
}

# One model's part of the program's definitions.
define() { # SUFFIX FOLDER MODEL
	echo "-DHEADER$1=\"$work/$2/stint_step.h\" -DMODEL$1=stint_model_$3 -DARENA$1=STINT_$(upper "$3")_ARENA_BYTES"
}

product() { # OUT FLAGS FOLDER... : the program, linked with each folder's libstep.a, and run
	out=$1 flags=$2
	shift 2
	archives='' folders=''
	for folder; do
		make -s -C "$work/$folder" libstep.a CFLAGS="${STEP_CFLAGS:--O2} $isa" >"$work/make.log" 2>&1 ||
			{ cat "$work/make.log"; die "libstep.a of $folder"; }
		archives="$archives $work/$folder/libstep.a" folders="$folders $work/$folder"
	done
	set -- -std=gnu11 -O1 -g -fopenmp "-I$source" "-I$source/runtime" "$source/tests/models/product.c"
	case $flags in *COUNT*) set -- "$@" "$source/tests/models/count_allocations.c" ;; esac
	# shellcheck disable=SC2086 # flags, archives and folders are words; no space in a build folder's path
	$CC "$@" $flags $archives $LIBRARY -lm -o "$work/program" || die "the program does not build"
	# shellcheck disable=SC2086
	"$work/program" "$work/$out" $folders || die "the program fails"
}

# One instruction set throughout: matrix products use its fused multiply-add.
case " $* " in
*' --portable '*) LIBRARY='' isa='' warm=0 ;;
*) LIBRARY=-ldnnl isa=-march=native warm=4096 ;;
esac

case $test in
steady) # a warm step allocates nothing; the guards around the arena stay whole; at two budgets
	model=$1
	shift
	for budget in 100% min; do
		compile step "$model" "$@" --budget $budget
		product out "-DCOUNT=$warm $(define '' step "$model")" step
		bytes=$(sed -n "s/.*_ARENA_BYTES \([0-9]*\)\$/\1/p" "$work/step/stint_step.h")
		grep -q "needs .* ($bytes bytes)" "$work/step.log" ||
			{ cat "$work/step.log"; die "the printed arena is not the step's"; }
	done
	;;
debug) # AddressSanitizer sees no read of dead bytes, and the debug build has the normal build's bits
	model=$1
	shift
	compile normal "$model" "$@"
	compile debug "$model" "$@" --debug-arena --no-build
	product normal.out "$(define '' normal "$model")" normal
	STEP_CFLAGS='-O1 -g -fsanitize=address'
	product debug.out "-fsanitize=address $(define '' debug "$model")" debug
	cmp "$work/normal.out" "$work/debug.out" || die "other bits with --debug-arena"
	;;
kept) # gradients of parameters and the input: inside the arena, the same bits at each budget, and no dead byte is read
	model=$1 optimizer=none
	shift
	set -- "$@" --input-gradient image --no-build
	compile first "$model" "$@"
	kept="-DKEPT=$(grep -c 'stint.KeepGradient' "$work/first/step_train.h")"
	product first.out "$kept $(define '' first "$model")" first
	[ "$(wc -c <"$work/first.out")" -gt 100000 ] || die "no gradients were written"
	for budget in 80% min; do
		compile small "$model" "$@" --budget $budget
		product small.out "$kept $(define '' small "$model")" small
		cmp "$work/first.out" "$work/small.out" || die "other bits within $budget"
	done
	compile debug "$model" "$@" --budget min --debug-arena
	STEP_CFLAGS='-O1 -g -fsanitize=address'
	product debug.out "$kept -fsanitize=address $(define '' debug "$model")" debug
	cmp "$work/first.out" "$work/debug.out" || die "other bits with --debug-arena"
	;;
two) # two models in one program, each with the bits that it has alone
	compile one mlp "$@" --no-build
	compile two cnn "$@" --no-build
	product both.out "$(define '' one mlp) $(define 2 two cnn)" one two
	product one.out "$(define '' one mlp)" one
	[ "$(wc -c <"$work/both.out")" -gt "$(wc -c <"$work/one.out")" ] || die "the second model wrote nothing"
	;;
warnings) # clean with both compilers; the same input gives the same bytes
	for model in mlp cnn resnet gpt; do
		compile a-$model $model "$@" --no-build
		compile b-$model $model "$@" --no-build
		diff -r "$work/a-$model" "$work/b-$model" || die "$model: generated twice, not the same"
		gcc -std=gnu11 -O2 -fopenmp -Wall -Wextra -Werror -c "$work/a-$model/step.c" -o "$work/object.o" || die "$model with gcc"
		# its warnings do not hang on what it optimizes, as gcc's do
		clang -std=gnu11 -fopenmp -Wall -Wextra -Werror -fsyntax-only "$work/a-$model/step.c" || die "$model with clang"
	done
	;;
outside) # memory beside the arena does not depend on the budget
	model=$1 least= most=
	shift
	for budget in 100% 50% min; do
		compile step "$model" "$@" --budget $budget
		"$stint" bench "$work/step" --steps 2 --json >"$work/bench.json" || die "bench"
		bytes=$(sed -n 's/.*"outside_bytes": *\([0-9]*\).*/\1/p' "$work/bench.json")
		echo "$budget: $(cut -c 1-120 "$work/bench.json")"
		[ -n "$least" ] && [ "$least" -le "$bytes" ] || least=$bytes
		[ -n "$most" ] && [ "$most" -ge "$bytes" ] || most=$bytes
	done
	[ $((most - least)) -le 1048576 ] || die "memory outside the arena: from $least to $most bytes"
	;;
*) die "no test $test" ;;
esac

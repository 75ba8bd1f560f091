# libstint does what the command line does: the same texts to the byte, the same trained values.
. "$(dirname "$0")/../cli/lib.sh"
program=$5 library=$6 cc=$7
expect_status() # CODE ARGUMENT...
{
	checks=$((checks + 1)) want=$1
	shift
	"$program" "$@" >out 2>err </dev/null
	got=$?
	[ "$got" = "$want" ] || fail "status $got instead of $want: $*"
	[ ! -s err ] || fail "it prints: $*"
}
numbers() { python3 "$SOURCE/tests/cli/tensors.py" "$@" || fail "$*"; }
model=$SOURCE/examples/models/mlp.onnx
options="loss=cross-entropy optimizer=adam:lr=0.01 batch=512 threads=1 portable"
line="--loss cross-entropy --optimizer adam:lr=0.01 --batch 512 --threads 1 --portable"
export CFLAGS=-O1

# texts
expect 0 stint plan "$model" $line --budget 100% -o plan.json --dump-graph graph.json --json
cp out facts.json
expect_status 0 plan a "$model" $options budget=100%
told "feasible 1" "bounded 1 micro 1"
same a.0 plan.json
same a.1 graph.json
same a.2 facts.json
expect 0 stint compile "$model" $line --budget 100% --no-build -o dir
cp out report
expect_status 0 compile b "$model" $options budget=100% no-build
same b.3 report
diff -r dir b.dir >/dev/null || fail "another folder"
expect_status 0 read c dir
for i in 0 1 2 4 6; do same b.$i c.$i; done
expect 0 stint show dir --steps
head -n "$(wc -l <b.4)" out >schedule
same b.4 schedule
expect 0 stint show dir --html page.html --trace trace.json
same b.5 page.html
same b.6 trace.json
expect 0 stint frontier "$model" $line --points 3 -o frontier.json --svg frontier.svg
expect_status 0 frontier d "$model" $options points=3
same d.7 frontier.json
same d.8 frontier.svg
absent d.0

# a budget that is not met: what would be is met
expect_status 4 compile e "$model" $options budget=64KiB
told "error: $model: : no plan found within 65536 bytes" "feasible 0"
absent e.dir e.3
present e.0
least=$(sed -n 's/.* known \([0-9]*\) .*/\1/p' out)
expect_status 0 plan f "$model" $options "budget=$least"
expect_status 4 plan g "$model" $options "budget=$((least - 1))"

# ended by who waits: nothing is left
expect_status 130 stop planning h.dir "$model" $options budget=min
told "asked yes" "interrupted"
absent h.dir
# in the middle of a search that would take an hour
long="batch=8 budget=60% effort=10000"
expect_status 130 stop 20 h.dir "$SOURCE/examples/models/cnn.onnx" loss=cross-entropy optimizer=sgd portable $long
absent h.dir
printf '#!/bin/sh\nsleep 60\n' >slow
chmod +x slow
CC="$PWD/slow" expect_status 130 stop writing h.dir "$model" $options
absent h.dir .stint-*
told "now writing, and compiling with make" "nothing of it was left"

# what is wrong
expect_status 3 plan i "$SOURCE/README.md" $options
told "error: $SOURCE/README.md: "
expect_status 2 plan i "$model" loss=mse batch=512
told "no --optimizer given"
expect_status 2 plan i "$model" $options offload=host
told "add --target cuda"

# training: as the command line does it, batches of one making the order of samples nobody's
numbers make x.npy f4 1,1,28,28
numbers make t.npy i8 1
usual $line
expect 0 stint compile "$model" --options usual.txt --batch 1 -o one
expect 0 stint train one --input x.npy --target t.npy --epochs 3 --checkpoint through
expect_status 0 train one 3 saved.safetensors x.npy t.npy
numbers same saved.safetensors through/step-00000003.safetensors
same saved.safetensors.a saved.safetensors.b
[ "$(sed -n 's/^loss \(.*\) again .*/\1/p' out)" = "$(sed -n 's/.* again \(.*\) eval .*/\1/p' out)" ] || fail "another loss"
told "array 0 0 image 1 1 28 28" "array 1 2 target 1" "array 2 0 1.weight 128 784" "array 7 0 logits 1 10"
expect_status 0 wrong one
told "2 2 2 2" "did you mean budget?" "--portable takes no value" "there is no option 'json'" "no model given" \
	"nobody: the step has no such array to be set" "/nowhere.safetensors" "there is no such folder" "its step is not open"

# every option of the command line but those of printing
expect_status 0 options
! grep -q "NO HELP" out || fail "an option without help"
grep -v '^	' out | sed 's/ .*//' | sort >ours
expect 0 stint compile --help
sed -n 's/^ *\(-., \)\?--\([a-z0-9-]*\).*/\2/p' out | sort -u >theirs
printf '%s\n' dump-after dump-graph graph help json options output >printing
comm -13 ours theirs >only
same only printing
comm -23 ours theirs >only
echo points | cmp -s - only || fail "options that compile does not have: $(cat only)"

# the library shows what its header declares and nothing else
nm -D --defined-only "$library" | sed 's/.* //' | sort >shown
grep -v "^#" "$SOURCE/api/stint.h" | tr "\n" " " | grep -o 'STINT_PUBLIC [^(]*(' | sed 's/($//; s/.*[ *]//' | sort >declared
same shown declared

# the header beside a step's own, in C and C++
printf '#include "stint.h"\n#include "stint_step.h"\nint main(void) { return stint_version() == NULL; }\n' >both.c
warnings="-Wall -Wextra -Wpedantic -Wconversion -Werror -I $SOURCE/api -I one"
expect 0 $cc -std=c11 $warnings -fsyntax-only both.c
if command -v c++ >/dev/null; then
	sed 's/NULL/nullptr/' both.c >both.cpp
	expect 0 c++ -std=c++11 $warnings -fsyntax-only both.cpp
fi
finished

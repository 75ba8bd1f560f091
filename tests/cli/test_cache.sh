# Kernels are compiled once: another budget takes them from the cache, and the step computes the same.
. "$(dirname "$0")/lib.sh"

data=$SOURCE/tests/models/cases/convnet
from=$(ls "$data"/*/model.onnx | head -n 1)
how="compile $from $(cat "$data/options") --optimizer adamw --threads 2 --effort 0.02 --portable"
export STINT_CACHE=$PWD/cache
export CFLAGS=-O0 # what is kept is what matters here

# numbers FOLDER: what one step makes of the model's values
numbers()
{
	expect 0 stint run "$1" --input "$data/input0.npy" --target "$data/target.npy" -o "$1.safetensors"
}

expect 0 stint $how --keep-all --no-cache -o plain
absent cache
! grep -q '^compiled:' out || fail "told of a cache that was not to be used"
expect 0 stint $how --keep-all -o first
! grep -q '^compiled:' out || fail "something was kept of nothing"
present cache/objects
absent first/kept first/build.log
objects=$(ls cache/objects | wc -l)
[ "$objects" -gt 10 ] || fail "$objects objects are kept"
expect 0 stint $how --keep-all -o second
grep -Eq '^compiled: 0 of [0-9]+ kernels; the others were in the cache$' out || fail "not all were kept"
expect 0 stint $how --keep-all --json -o second
grep -Eq '"kernels":\{"all":([0-9]+),"kept":\1\}' out || fail "JSON does not say what was kept"
expect 0 stint $how --budget min -o least
grep -Eq '^compiled: [0-9]+ of' out || fail "another budget compiles anew"
for dir in plain first second least; do numbers $dir; done
same plain.safetensors first.safetensors
same plain.safetensors second.safetensors
same plain.safetensors least.safetensors
# of other types are other kernels, whose text may be the same
for type in fp64 bf16; do
	expect 0 stint $how --keep-all --precision $type -o $type
	expect 0 stint $how --keep-all --precision $type --no-cache -o plain.$type
	numbers $type
	numbers plain.$type
	same $type.safetensors plain.$type.safetensors
	differ $type.safetensors plain.safetensors
done
# the folder by itself
expect 0 make -s -C second clean step.so
numbers second
same plain.safetensors second.safetensors

# what was damaged, by a byte or by the end of it, is compiled again
for f in cache/objects/*; do
	[ "$(wc -c <"$f")" -lt 2000 ] || printf x | dd of="$f" bs=1 seek=1000 conv=notrunc 2>dd.log
done
truncate -s 40 $(ls -d cache/objects/* | head -n 5)
expect 0 stint $how --keep-all -o damaged
! grep -q '^compiled:' out || fail "damaged objects were taken"
numbers damaged
same plain.safetensors damaged.safetensors

# several at once into nothing
rm -r cache
for i in 1 2; do stint $how --keep-all -o "side$i" >"side$i.out" 2>&1 & done
wait
for i in 1 2; do
	numbers side$i
	same plain.safetensors side$i.safetensors
done

# another compiler's flags are other objects; those that name folders are not kept
CFLAGS="-O0 -DANY" expect 0 stint $how --keep-all -o flags
! grep -q '^compiled:' out || fail "objects of other flags were taken"
kept=$(ls cache/objects | wc -l)
CFLAGS="-O0 -g" expect 0 stint $how --keep-all -o debug
[ "$(ls cache/objects | wc -l)" = "$kept" ] || fail "objects with a folder's name are kept"
# and none where there is no folder for them, or none that can be written
STINT_CACHE= expect 0 stint $how --keep-all -o none
! grep -q '^compiled:' out || fail "there is no cache"
: >file
STINT_CACHE=$PWD/file/in expect 0 stint $how --keep-all -o none
numbers none
same plain.safetensors none.safetensors
# a compiler that fails is heard as it is without
CC=false expect 5 stint $how --keep-all -o bad
said "the step did not compile"
absent bad
finished

#!/bin/sh
# run_tutorial.sh STINT SOURCE TUTORIAL WORK: each command of a page ("    $ ..."), in its order, with WORK as the repository's
# root; then what it should have left is there. Plans are searched for with less effort than the page's reader has them searched for.
stint=$1 source=$2 page=$3 work=$4
rm -rf "$work" && mkdir -p "$work/build" && cd "$work" || exit 1
ln -s "$source/examples" examples
ln -s "$stint" build/stint
sed -n 's/^    \$ //p' "$page" | sed 's/ compile .* --budget [^ ]*/& --effort 0.05/' >commands
grep -q 'effort' commands || { echo "FAILED: nothing is compiled in $page"; exit 1; }
[ "$(wc -l <commands)" -ge 7 ] || { echo "FAILED: commands are missing in $page"; exit 1; }
while read -r command; do
	sh -c "$command" </dev/null >out 2>&1 || { cat out; echo "FAILED: $command"; exit 1; }
done <commands
for f in step/step.c log.html checkpoints/best.safetensors scores.npy trained.onnx; do
	[ -s "build/tutorial/$f" ] || { echo "FAILED: no build/tutorial/$f"; exit 1; }
done

# --precision fp16: the loss's scale, with a portable step and the library's, at any budget, clipped or not.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O1 -march=native"
make_model linear m.onnx
for how in "" "--portable" "--budget min --threads 2" "--clip-norm 0.1 --fuse off"; do
	# shellcheck disable=SC2086
	expect 0 stint compile m.onnx --loss cross-entropy --optimizer adamw --batch 4 --precision fp16 $how -o dir
	grep -q 'fp16 \*' dir/step.c || fail "nothing is stored in fp16"
	make -s -C dir libstep.a >out 2>err || fail "make libstep.a"
	libs=$(sed -n 's/^LIBS = *//p' dir/Makefile)
	# shellcheck disable=SC2086
	${CC:-cc} -std=c11 -Wall -Wextra -Werror -Idir "$SOURCE/tests/cli/half.c" dir/libstep.a \
		-fopenmp $libs -o dir/half 2>err || fail "linking"
	(cd dir && ./half) >out 2>err || fail "the loss's scale, $how"
	checks=$((checks + 1))
	rm -r dir
done

# without one where values have the range of floats
expect 0 stint compile m.onnx --loss cross-entropy --optimizer adamw --batch 4 --precision bf16 --no-build -o dir
! grep -q loss_scale dir/step_arena.h || fail "bf16 needs no scale"
finished

# A stint without oneDNN; --cross: the Makefile for another machine; a compiler that is not there; a step that cannot run here.
. "$(dirname "$0")/lib.sh"

make_model linear m.onnx
how="--loss mse --optimizer sgd --batch 2"

# without the library a step is plain C, and that is said
expect 0 stint compile m.onnx $how --portable --no-build -o asked
expect 0 "${STINT%/*}/stint_plain" compile m.onnx $how --no-build -o plain
said "this stint was built without oneDNN: steps are plain C" --portable
same asked/step.c plain/step.c
same asked/Makefile plain/Makefile
expect 0 "${STINT%/*}/stint_plain" compile m.onnx $how --portable --no-build -o plain
! grep -q oneDNN err || fail "told though it was asked for"

# a compiler that nobody has: nothing is written, unless nobody is to build
expect 5 stint compile m.onnx $how --cross no_such-cpu -o none
said "there is no no_such-cpu-gcc here"
said "gcc-no-such-cpu"
said --no-build
absent none
expect 0 stint compile m.onnx $how --cross no_such-cpu --no-build -o d
said "--threads N"
grep -q '^CROSS ?= no_such-cpu-$' d/Makefile && grep -qF 'CC = $(CROSS)gcc' d/Makefile || fail "not for another machine"
grep -q '^CFLAGS ?= -O2 $(LOOPS) -Wall' d/Makefile || fail "of no instruction set in particular"
absent d/stint_lib.c
! grep -q 'define STINT_ONE_ISA' d/step.c || fail "of one instruction set"
expect 0 stint compile m.onnx $how --cross no_such-cpu --threads 3 --isa armv8-a --no-build -o e
! grep -q threads err || fail "the number was told"
grep -q -- '-march=armv8-a' e/Makefile && grep -q 'define STINT_ONE_ISA' e/step.c || fail "not for that instruction set"

expect 2 stint compile m.onnx $how --cross 'a b' -o none
said "not 'a b'"
expect 2 stint compile m.onnx $how --cross '' -o none
expect 2 stint compile m.onnx $how --cross aarch64-linux-gnu --target cuda -o none
said "--cross does not go with --target cuda"

# RISC-V's, by the number that an ELF file has of its machine
expect 0 stint compile m.onnx $how --portable -o here
printf '\363' | dd of=here/step.so bs=1 seek=18 conv=notrunc 2>/dev/null
for command in run bench train; do
	case $command in
	run) expect 5 stint run here -o out.safetensors ;;
	bench) expect 5 stint bench here ;;
	train) expect 5 stint train here --no-save --epochs 1 ;;
	esac
	said "here: step.so was compiled for riscv: it cannot run here"
done

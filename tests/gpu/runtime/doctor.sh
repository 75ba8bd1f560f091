#!/bin/sh
# doctor.sh BUILD SOURCE CXX FAKES WORK: `stint doctor` without a GPU, and `--cuda` on stand-ins for the driver, cuBLASLt and cuDNN
# and the real NVRTC: all well; and, with a stand-in for that too, each of them failing. Says nothing about a GPU.
set -eu
build=$1 source=$2 cxx=$3 fakes=$4 work=$5
rm -rf "$work"
mkdir -p "$work/home"
export HOME="$work/home" TMPDIR="$work"

doctor() { # CODE OUT [OPTIONS]: exits with CODE; leaves nothing
	want=$1 out=$work/$2 code=0
	shift 2
	"$build/stint" doctor "$@" >"$out" 2>"$work/err" || code=$?
	if grep -q 'NVRTC: libnvrtc was not found' "$out" && ! grep -q 'newer than the driver' "$out"; then
		echo "no NVRTC here"
		exit 77
	fi
	[ $code = "$want" ] || { echo "exit code $code, not $want:"; cat "$out" "$work/err"; exit 1; }
	! ls -d "$work"/stint-doctor.* 2>/dev/null || { echo "left"; exit 1; }
}
says() { # PATTERN...: each is a line of the report
	for line; do
		grep -q -e "$line" "$out" || { echo "the report does not say '$line':"; cat "$out"; exit 1; }
	done
}
on_fakes() { # COMMAND: sees the stand-ins
	STINT_CUDA_LIBS=$fakes:${fakes}_nvrtc "$@"
}

doctor 0 processor
says '^ok     C compiler: ' '^ok     processors: [1-9]' '^ok     memory: [1-9]' '^ok     step in C: trained: loss [1-9]' \
	'^ok     a step can be trained here; 0 wrong'
CC=no-such-compiler doctor 5 compiler
says '^wrong  C compiler: not found' '^       hint: install gcc or clang' '^wrong  step in C: not compiled: ' 'no-such-compiler' \
	'^wrong  no step can be trained here; [1-9]'
# oneDNN's headers are missing, as it seems: what the compiler said, and a portable step can be trained
mkdir "$work/bin"
cat >"$work/bin/cc" <<'END'
#!/bin/sh
case $* in *stint_lib.c*) echo "stint_lib.c:7:10: fatal error: dnnl.h: No such file or directory" >&2; exit 1 ;; esac
exec gcc "$@"
END
chmod +x "$work/bin/cc"
CC=$work/bin/cc doctor 0 headers
says '^wrong  step in C: not compiled: the step did not compile' '^       stint_lib.c:7:10: fatal error: dnnl.h' \
	'^       hint: install oneDNN' '^ok     portable step in C: trained: loss [1-9]' '^ok     a step can be trained here; 1 wrong'
doctor 2 options --precision fp32
# a signal ends it soon, and it leaves nothing
"$build/stint" doctor >"$work/ended" 2>"$work/err" &
pid=$! code=0
until ls -d "$work"/stint-doctor.* >"$work/log" 2>&1; do sleep 0.02; done
kill -TERM $pid
wait $pid || code=$?
[ $code = 130 ] && ! ls -d "$work"/stint-doctor.* 2>/dev/null || { echo "a signal: exit code $code"; cat "$work/ended"; exit 1; }

# all is well: the tiny model's kernels as the shim runs them
"$build/stint" compile "$source/examples/models/cnn.onnx" --loss cross-entropy --optimizer sgd:lr=0.1 --batch 8 --target cuda \
	--no-build -o "$work/gpu" >"$work/log"
sh "$source/tests/gpu/shim/build.sh" plain "$cxx" "$source" "$work/gpu/kernels.cu" "$work/kernels.so"
mkdir "$work/home/libs"
for library in "$fakes"/lib*; do
	ln -s "$library" "$work/home/libs"
done
STINT_CUDA_LIBS=$work/home/libs STINT_FAKE_KERNELS=$work/kernels.so doctor 0 well --cuda --precision fp32 -o "$work/report.txt"
says '^ok     driver: 13.0 (13000), ~/libs/libcuda.so.1' '^ok     cuBLASLt: 13.1.0 (130100), ' '^ok     cuDNN: 9.19.0 (91900), ' '^ok     NCCL: 2.27.3 (22703), ' \
	'^ok     NVRTC: 1[2-9]' "go together: NVRTC 1[2-9], cuBLASLt 13, cuDNN 13" '^ok     device: Stand-in, compute capability 9.0' \
	'^-      fp32: opening took [1-9][0-9]* ms: .*NVRTC [1-9].*libraries. kernels [1-9]' \
	'^-      fp32: opening again, with choices and kernels kept, took [1-9]' \
	'^ok     fp32: kernels for sm_90 compiled by NVRTC: [1-9].*its log is empty' \
	'^ok     fp32: conv_weight 8x1x28x28, 16 of 3x3: engine [0-9]*, workspace [0-9]* of' \
	'^ok     fp32: matmul_bias 1 of 8x64 by 64x10: algorithm [0-9]*, workspace' '^ok     fp32: trained: loss 2\.' \
	'fp32: a step takes [1-9][0-9]* us, its [1-9][0-9]* kernels .* at the roofline' 'TFLOP/s in products of' \
	'^ok     a step can be trained here; 0 wrong'
cmp "$out" "$work/report.txt"
! grep "$work" "$out" || { echo "paths are spelled out"; exit 1; }

# kernels that compute something else, by little
sed 's/9\.999999747378752e-06/1e-2/' "$work/gpu/kernels.cu" >"$work/gpu/other.cu"
if cmp -s "$work/gpu/kernels.cu" "$work/gpu/other.cu"; then echo "the number is not there"; exit 1; fi
sh "$source/tests/gpu/shim/build.sh" plain "$cxx" "$source" "$work/gpu/other.cu" "$work/other.so"
STINT_FAKE_KERNELS=$work/other.so on_fakes doctor 5 differs --cuda --precision fp32
says '^wrong  fp32: trained: loss 2\.' 'please report it' '^wrong  no step can be trained on a GPU here; 1 wrong'

# what fails says why, in the library's words, and the rest goes on
STINT_FAKE_FAIL=cuda on_fakes doctor 5 none --cuda --precision fp32
says '^wrong  devices: no CUDA device: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE)' '^ok     NVRTC: ' '^ok     cuBLASLt: ' \
	'^ok     cuDNN: ' '^ok     fp32: kernels for sm_90 compiled' 'one in C can (--target c)'
STINT_FAKE_FAIL=cudnn on_fakes doctor 5 cudnn --cuda --precision fp32
says '^wrong  fp32: does not open: cuDNN: starting: made up (the stand-in was told to fail)' '^wrong  fp32: conv_forward .*told to fail' \
	'^ok     fp32: matmul' '^ok     fp32: kernels for sm_90'
STINT_FAKE_FAIL=cublaslt on_fakes doctor 5 cublaslt --cuda --precision fp32
says '^wrong  fp32: does not open: cuBLASLt: starting: made up' '^wrong  fp32: matmul.*cuBLASLt: starting: made up' '^ok     fp32: conv_'
# libraries that are there, but newer than the driver, are none
STINT_FAKE_DRIVER=11080 on_fakes doctor 5 old --cuda --precision fp32
says '^ok     driver: 11.8 (11080)' '^wrong  NVRTC: .*newer than the driver, which knows CUDA 11.8' '^wrong  cuBLASLt: .*newer than the driver' \
	'^wrong  fp32: does not open: '
# no file of that name is a library
mkdir "$work/broken"
: >"$work/broken/libcuda.so.1"
cp "${fakes}_12/libcudnn.so.9" "$work/broken"
STINT_CUDA_LIBS=$work/broken:$fakes:${fakes}_nvrtc STINT_FAKE_FAIL=cuda doctor 5 mixed --cuda --precision fp32
says '^ok     driver: .*fakes/libcuda.so.1' 'cuBLASLt 13, cuDNN 13'
rm -rf "$work"

#!/bin/sh
# run_fake.sh SOURCE BUILD FOLDER: run.sh on the stand-ins: stages that need no PyTorch pass, the others are skipped or
# not asked for, and the results are written. Says nothing about a GPU.
set -eu
source=$1 build=$2 out=$3
rm -rf "$out"
code=0
sh "$source/tests/gpu/run.sh" --fake --stage a,b,e,f,g,h,i --points 2 --build "$build" --out "$out" || code=$?
if [ "$code" != 0 ] && grep -q 'libnvrtc was not found' "$out/log.txt"; then
	echo "no NVRTC here"
	exit 77
fi
several='| i | skipped'
! command -v mpirun >/dev/null || several='| i | ok | 3 of 3'
for line in '| a | ok | Stand-in sm_90' '| b | ok | all right' '| e | ok | 2 of 2 agree' '| f | ok | 2 of 2' '| g | ok | 1 of 2 budgets' \
	'| h | skipped' "$several"; do
	grep -qF "$line" "$out/table.md" || { echo "table.md does not say $line:"; cat "$out/table.md"; exit 1; }
done
# the other half of g
sh "$source/tests/gpu/run.sh" --fake --stage g --build "$build" --out "$out" >"$out/said"
grep -q 'g mlp.onnx, 2: measured before' "$out/said" || { echo "measured again:"; cat "$out/said"; exit 1; }
grep -qF '| g | ok | 2 of 2 budgets' "$out/table.md" || { cat "$out/table.md"; exit 1; }
# PyTorch's part, by a program that only says what is expected of it
mkdir "$out/torch"
cat >"$out/torch/python" <<END
#!/bin/sh
case \$* in
-c*) echo "0 0 True" ;;
*models.py*) cp "$source/examples/models/mlp.onnx" "\$3" ;;
*compile\ --batch*) echo "Traceback: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 12.28 GiB." >&2; exit 1 ;;
*checkpoint\ --batch*) kill -9 \$PPID ;; # a run that is cut
*) while read -r n; do echo '{"ms": [2.0], "loss": 1.0}'; done ;;
esac
END
chmod +x "$out/torch/python"
torch() { # OPTION...
	sh "$source/tests/gpu/run.sh" --fake --stage c,d --models gpt2 --budgets 100% --python "$out/torch/python" --build "$build" \
		--out "$out/torch" "$@"
}
says() { # PATTERN...: each is a line of the table
	for line; do
		grep -q "^| $line" "$out/torch/table.md" || { echo "table.md has no '$line'"; cat "$out/torch/table.md"; exit 1; }
	done
}
torch --variants eager,checkpoint && { echo "nothing was cut"; exit 1; }
says 'c | cut' 'PyTorch, eager | 2 |' 'stint, 100%'
torch --variants eager >"$out/torch/said"
for line in 'd gpt2, 100%: measured before' 'c gpt2, eager: measured before'; do
	grep -q "$line" "$out/torch/said" || { echo "measured again:"; cat "$out/torch/said"; exit 1; }
done
says 'c | ok | gpt2: eager 2 ms |'
sed -i 's/"commit": "[^"]*"/"commit": "before"/' "$out/torch/results.json"
torch --variants compile --stage c
# variants of several runs stand side by side, each with its commit
says 'PyTorch, eager | 2 | [0-9.]* .*| before |$' 'PyTorch, compile | out of memory |' 'stint, 100% | .*| before |$' \
	'c | ok | gpt2: eager 2 ms, compile out of memory'
grep -q '^gpt2, batch 2, 16 symbols, bf16, tiny:$' "$out/torch/table.md" || { cat "$out/torch/table.md"; exit 1; }
! grep -q '^| PyTorch, compile .*before' "$out/torch/table.md" || { echo "an older commit under a new result"; exit 1; }
# a GPU that nvidia-smi does not show is not there
mkdir "$out/none"
printf '#!/bin/sh\nexit 9\n' >"$out/none/nvidia-smi"
chmod +x "$out/none/nvidia-smi"
none=0
PATH=$out/none:$PATH sh "$source/tests/gpu/run.sh" --out "$out/none" || none=$?
[ "$none" = 77 ] || { echo "without a GPU: exit code $none"; exit 1; }
# compute-sanitizer as pip installs it
pip=$out/none/lib/python3.11/site-packages/nvidia/cu13/bin
mkdir -p "$pip"
cp "$out/none/nvidia-smi" "$pip/compute-sanitizer"
PYTHONPATH=$source/tests/bench/gpu python3 -c "import stages
found = stages.sanitizer_there('$out/none')
assert found and found.endswith('/compute-sanitizer'), found
assert stages.shutil.which('compute-sanitizer') or 'cuda' in found or found == '$pip/compute-sanitizer', found"
# the device whose memory is looked at is the one that CUDA shows, wherever on the bus
cat >"$out/none/driver.c" <<'END'
#include <string.h>
int cuInit(int flags) { return flags; }
int cuDeviceGet(int *device, int i) { *device = 7 + i; return 0; }
int cuDeviceGetPCIBusId(char *id, int size, int device) { return device != 7 || size < 13 || !strcpy(id, "0000:41:00.0"); }
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(char *id, void **out) { *out = id; return strcmp(id, "0000:41:00.0"); }
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *m) { m[2] = 5ull << 32; return !device; }
END
${CC:-cc} -shared -fPIC "$out/none/driver.c" -o "$out/none/libcuda.so.1"
cp "$out/none/libcuda.so.1" "$out/none/libnvidia-ml.so.1"
LD_LIBRARY_PATH=$out/none PYTHONPATH=$source/tests/bench/gpu python3 -c "import tools
device = tools.Device()
assert (device.bus, device.used()) == ('0000:41:00.0', 5 << 32), (device.bus, device.used())"
rm -rf "$out"
exit "$code"

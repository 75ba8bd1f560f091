#!/bin/sh
# One more file type for magika, Google's model that tells files by their bytes (PyPI's package `magika`, 3 MB of ONNX
# that was exported for inference): it learns what a manual page is. Its last layer gets one more output, and alone is
# trained, on files of this machine; what comes out magika's own package loads.
#
#   examples/magika.sh           1,500 manual pages and 3,000 other files
#   examples/magika.sh --short   100 and 200
set -eu
cd "$(dirname "$0")/.."
. examples/common.sh

out=build/magika
each=1500 epochs=5
[ "${1:-}" != --short ] || each=100 epochs=3
rm -rf "$out/test" "$out/new"
mkdir -p "$out/test" "$out/new"
tools/setup.sh
build_stint

python=$out/venv/bin/python
if [ ! -x "$out/venv/bin/magika" ]; then
	python3 -m venv "$out/venv"
	"$python" -m pip install -q magika==1.0.3 numpy
fi
model=$("$python" -c 'import magika, pathlib; print(pathlib.Path(magika.__file__).parent / "models/standard_v3_3")')
cp "$model/config.min.json" "$out"
"$python" examples/magika/files.py data "$out" "$each"

layer=jax2tf_get_logits_/pjit_get_logits_/MagikaV2/Dense_1
show build/stint compile "$model/model.onnx" --replace-head 215:keep --loss "cross-entropy:output=$layer/AddV2:0" \
	--train "$layer/*" --train jax2tf_get_logits_/Const_24:0 --optimizer adamw:lr=1e-3 --batch 50 --no-outputs --budget min \
	-o "$out/step"
rm -rf "$out/step/checkpoints"
show build/stint train "$out/step" --input "$out/train-bytes.npy" --target "$out/train-labels.npy" \
	--eval-input "$out/test-bytes.npy" --eval-target "$out/test-labels.npy" --epochs "$epochs"
show build/stint export "$out/step" -o "$out/new/model.onnx"

say "magika's own package, with the model as it was and with the new one"
"$python" examples/magika/files.py try "$out"

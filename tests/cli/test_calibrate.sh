# doctor --calibrate: times are this machine's, and plans what they were. No test of any time.
. "$(dirname "$0")/lib.sh"
export STINT_CACHE="$PWD/kept"

model="$SOURCE/examples/models/mlp.onnx --loss cross-entropy --optimizer sgd:lr=0.1 --batch 16"
# shellcheck disable=SC2086 # options are words
{
	expect 0 stint plan $model -o before.json
	! grep -q "on this machine" out || fail "nothing was measured yet"
	expect 0 stint doctor --calibrate
	told "ok     batch 64: compiled" "kernels measured with"
	expect 0 stint plan $model -o after.json
	told "on this machine: " "by what \`stint doctor --calibrate\` measured"
	same before.json after.json
	expect 0 stint plan $model --json
	! grep -q "on this machine" out || fail "words in JSON"
	expect 0 stint plan $model --portable
	! grep -q "on this machine" out || fail "plain C was not measured"
	expect 0 stint compile $model -o dir
	told "on this machine: "
	expect 0 stint show dir
	told "on this machine: "
	expect 0 stint bench dir --steps 2 --costs-out costs.json
	told "calibrated for this machine: "
	expect 0 stint bench dir --steps 2 --json
	json_of out calibrated_ms >/dev/null || fail "bench --json lacks calibrated_ms"
	# costs of one's own are what is told then
	expect 0 stint plan $model --costs costs.json
	! grep -q "on this machine" out || fail "two times are told"
}
# what is damaged is none
for f in kept/*; do
	! grep -qa stint-costs-1 "$f" || sed -i 's/stint-costs-1/stint-costs-2/' "$f"
done
# shellcheck disable=SC2086
expect 0 stint plan $model
! grep -q "on this machine" out || fail "a damaged calibration is believed"
expect 2 stint doctor --calibrate --cuda
said "--calibrate measures the processor"
checks=$((checks + 1))
STINT_CACHE=/dev/null/none "$STINT" doctor --calibrate --json >out 2>err && fail "kept nowhere"
is_json out
told "what is measured cannot be kept there" "STINT_CACHE or XDG_CACHE_HOME"
finished

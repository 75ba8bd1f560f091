# Who waits is told what is being done and how far it is; Ctrl-C while planning takes the cheapest plan so far.
. "$(dirname "$0")/lib.sh"
unset COLUMNS
export STINT_PROGRESS=0.02
model="$SOURCE/examples/models/gpt.onnx --loss cross-entropy --optimizer adamw --batch 16"

# planning: on a terminal in place, elsewhere in lines, or not at all
expect 0 python3 "$SOURCE/tests/cli/on_terminal.py" 90 "$STINT" plan $model --budget 40% -o plan.json
told "planning  " "x one pass, gap at most" "at most" " left"
grep -q "^scrolled 0" out || fail "more than one line of the terminal"
expect 0 stint plan $model --budget 40% -o plan.json
said "stint: planning  " "x one pass, gap at most"
expect 0 stint frontier $model --effort 0.2 --points 3
said "planning: budget 1 of 3" "planning: the smallest budget" "MB so far"
expect 0 env STINT_PROGRESS=0 "$STINT" plan $model --effort 0.2 --budget 40%
! grep -q "planning" err || fail "told although nobody wants to know"

# compiling: files of how many
make_model dropout m.onnx
expect 0 env STINT_CACHE="$PWD/cache" CC=cc "$STINT" compile m.onnx --loss cross-entropy --optimizer adam --batch 4 -o built
grep -q "compiling with make .* [0-9]* of [0-9]* files" err || fail "no count of files"

# Ctrl-C: a plan that is checked, and a warning; another run of it need not find the same
interrupted() { python3 "$SOURCE/tests/cli/interrupted.py" "$@"; }
expect 0 interrupted "x one pass" "$STINT" plan $model --budget 40% --effort 100 --dump-graph graph.json -o taken.json
told "warning: interrupted: the cheapest plan so far is taken"
expect 0 stint check --graph graph.json taken.json
expect 0 interrupted "x one pass" "$STINT" compile $model --budget 40% --effort 100 --no-build -o folder
told "warning: interrupted: the cheapest plan so far is taken"
expect 0 stint show folder
# with nothing to take it ends, and nothing is written
interrupted "the smallest budget" "$STINT" plan $model --budget min -o none.json >out 2>err
[ $? = 130 ] || fail "not ended by the signal"
absent none.json
finished

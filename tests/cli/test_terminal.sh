# What is drawn on a terminal fits it, on one line, and leaves nothing behind.
. "$(dirname "$0")/lib.sh"
unset COLUMNS STINT_PROGRESS

# on COLUMNS COMMAND ...: with a terminal for messages; what stood there in `out`
on() { python3 "$SOURCE/tests/cli/on_terminal.py" "$@"; }
# the widest line is below $1 columns, and the cursor never left it
one_line()
{
	told "scrolled 0, widest"
	[ "$(sed -n 's/^scrolled 0, widest //p' out)" -lt "$1" ] || fail "wider than $1 columns"
}

make_model dropout m.onnx
make_data x 4200 x.npy
make_data label 4200 t.npy
expect 0 stint compile m.onnx --loss cross-entropy --optimizer adam:lr=0.02 --batch 4 --threads 1 -o dir
for columns in 120 80 40 24; do
	expect 0 on $columns "$STINT" train dir --no-save --input x.npy --target t.npy --epochs 2
	one_line $columns
	told "epoch 1/2" "epoch 2/2" "1050/1050"
	[ $columns -lt 50 ] || told "] 1050/1050  loss " "ms/step" " left"
done
# a terminal that does not tell: COLUMNS, or 80
expect 0 env COLUMNS=50 python3 "$SOURCE/tests/cli/on_terminal.py" 0 "$STINT" train dir --no-save --input x.npy --target t.npy
one_line 50
expect 0 on 0 "$STINT" train dir --no-save --input x.npy --target t.npy
one_line 80

# what takes longer than a second says what it is, in place
cat >slow <<-'EOF'
	#!/bin/sh
	sleep 1.5
	exec cc "$@"
EOF
chmod +x slow
compile="compile m.onnx --loss cross-entropy --optimizer adam --batch 4 --portable"
expect 0 env CC=./../slow python3 "$SOURCE/tests/cli/on_terminal.py" 80 "$STINT" $compile -o built
told "compiling with make  1 s"
one_line 80
expect 0 env CC=./../slow python3 "$SOURCE/tests/cli/on_terminal.py" 20 "$STINT" $compile -o narrow
told "writing, and compil"
one_line 20
# and nothing where nobody looks
expect 0 env STINT_PROGRESS=1000 CC=./../slow "$STINT" $compile -o quiet
[ ! -s err ] || fail "messages on a pipe"

# and what is timed, without a thread beside it
expect 0 on 80 "$STINT" bench built --steps 5
told "5/5" "measuring the machine"
one_line 80
# tables fit, too
for columns in 80 100; do
	for command in "bench built --steps 2" "bench --compare built narrow --steps 2"; do
		expect 0 on +$columns "$STINT" $command
		told kernel
		[ "$(sed -n 's/^scrolled .*, widest //p' out)" -le $columns ] || fail "$command is wider than $columns columns"
	done
done
finished

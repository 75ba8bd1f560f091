# --options FILE, what may have been meant, and help in groups.
. "$(dirname "$0")/lib.sh"

make_model linear m.onnx
cat >o.txt <<-'EOF'
	# how m is compiled
	--loss mse
	--optimizer=sgd:lr=0.25   # a comment

	  --batch 2
	--portable
	--no-build
	-o "a \"b\" # c"  # quotes keep blanks and more
EOF
expect 0 stint compile m.onnx --options o.txt
present 'a "b" # c/step.c'
grep -q '0\.25' 'a "b" # c/step.c' 'a "b" # c/step_tables.h' || fail "no learning rate of the file's"
# the command line has the last word, wherever it stands
expect 0 stint compile --batch 3 m.onnx --options=o.txt -o other
present other/step.c
grep -q '{3, 4}' other/step_tables.h || fail "the file's batch"
# small commands take it, too
printf -- '--graph %s\n' other/graph.json >check.txt
expect 0 stint check --options check.txt other/plan.json
told ": ok:"

expect 5 stint compile m.onnx --options none.txt
said none.txt
expect 2 stint compile m.onnx --options
said "--options: missing argument"
refused()
{
	printf '%b' "$1" >bad.txt
	expect 2 stint compile m.onnx --loss mse --optimizer sgd --batch 2 -o bad --options bad.txt
	said "$2"
	absent bad
}
refused '# one\n\nbatch 2\n' "bad.txt:3: 'batch 2' is no option"
refused '--budget "1 MiB" 2\n' "bad.txt:1: the quotes of --budget do not end the line"
refused '--options more.txt\n' "bad.txt:1: --options stands on the command line only"
refused '--budegt 4\n' "did you mean --budget?"

meant()
{
	said_as=$1
	shift
	expect 2 stint "$@"
	said "did you mean $said_as?"
}
meant compile complie
meant --batch compile m.onnx --bacth 2
meant --epochs train dir --epocs 2
meant frozen compile m.onnx --bn frozn
expect 2 stint compile m.onnx --quite-another-thing
! grep -q "did you mean" err || fail "nobody means that"

expect 0 stint compile --help
for title in "The model:" "Training:" "Memory, and planning:" "The step:" "For a GPU:"; do told "$title"; done
sed -n '/^For a GPU:/,/^$/p' out >gpu
grep -q -- --arch gpu && ! grep -q -- --budget gpu || fail "the GPU's options are not apart"
told --options
expect 0 stint train --help --no-save
told --options
finished

# What may be given once is refused when it is given again: each option of each command, by its help, and
# each option within an option.
. "$(dirname "$0")/lib.sh"

# These add up.
several=" loss dim train freeze lora tie untie stop-gradient fix padding-idx ops dropout group no-recompute recompute "
several="$several input eval-input metric log input-gradient "
# Values that every option of that name takes; 1 does for all others.
word_of()
{
	case $1 in
	math) echo strict ;;
	precision | frozen-precision | state-precision) echo bf16 ;;
	bn) echo frozen ;;
	bn-variance) echo unbiased ;;
	fuse) echo off ;;
	target) echo c ;;
	shard) echo none ;;
	offload) echo host ;;
	dump-after) echo loss ;;
	*) echo 1 ;;
	esac
}

for command in compile plan frontier show check layout run train eval predict bench export doctor; do
	expect 0 stint $command --help
	names=$(grep -oE -e '--[a-z0-9-]+=[^ ]' out | sed 's/^--\(.*\)=.*/\1/' | sort -u)
	[ -n "$names" ] || fail "no options of $command"
	for name in $names; do
		case "$several options " in
		*" $name "*) continue ;;
		esac
		case $command.$name in
		predict.output | train.target | train.eval-target | run.target | eval.target) continue ;;
		esac
		value=$(word_of $name $command)
		expect 2 stint $command nothing --$name "$value" --$name="$value"
		said "--$name is given twice: '$value' and '$value'"
	done
done
absent nothing

make_model linear m.onnx
twice()
{
	what=$1
	shift
	expect 2 stint "$@"
	said "$what"
}
twice "two losses are called 'mse': 'mse' and '2*mse'" plan m.onnx --batch 2 --loss mse --optimizer sgd --loss '2*mse'
twice "--output is given twice: 'a' and 'b'" compile m.onnx -o a --output=b
twice "'adamw:lr=1,lr=2': lr is given twice: '1' and '2'" plan m.onnx --batch 2 --loss mse --optimizer adamw:lr=1,lr=2
twice "output is given twice: 'a+mse' and 'r'" plan m.onnx --batch 2 --loss cross-entropy:output=a+mse:output=r --optimizer sgd
twice "output is given twice: 'x' and 'y'" plan m.onnx --batch 2 --loss mse:output=x,output=y --optimizer sgd
twice "lr is given twice: '2x' and '3x'" plan m.onnx --batch 2 --loss mse --optimizer sgd --group '*:lr=2x,lr=3x'
twice "--lora: r is given twice: '2' and '3'" plan m.onnx --batch 2 --loss mse --optimizer sgd --lora r=2,r=3
twice "--fix x is given twice: '1' and '2'" plan m.onnx --batch 2 --loss mse --fix x=1 --fix x=2
twice "--padding-idx w is given twice: '1' and '2'" plan m.onnx --batch 2 --loss mse --padding-idx w=1 --padding-idx w=2
twice "--tie: the copy c is given twice: 'a' and 'b'" plan m.onnx --batch 2 --loss mse --tie a=c --tie b=c
twice "--dropout off and --dropout x=0.1" plan m.onnx --batch 2 --loss mse --dropout x=0.1 --dropout off
twice "two sizes: 1 and 2" plan m.onnx --batch 2 --loss mse --dim N=1 --dim N=2
expect 0 stint compile m.onnx --loss mse --optimizer sgd --batch 2 --portable --no-build --force --force -o d
twice "size is given twice: '1' and '2'" train d --schedule step:size=1,size=2
twice "anneal_epochs is given twice: '1' and '2'" train d --swa-lr 0.1:anneal_epochs=1,anneal_epochs=2

# A file's options may be given again on the command line or in a further file, once; within each they may not.
printf -- '--budget 1\n--loss none\n' >o.txt
printf -- '--budget 2\n' >p.txt
expect 0 stint plan m.onnx --batch 2 --options o.txt --options p.txt --budget 1MiB --optimizer sgd
twice "--budget is given twice: '3' and '4'" plan m.onnx --batch 2 --options o.txt --budget 3 --budget 4
printf -- '--budget 1\n--budget 2\n' >o.txt
twice "--budget is given twice: '1' and '2'" plan m.onnx --batch 2 --options o.txt --budget 1MiB
printf -- '--alignment 64\n' >o.txt
expect 0 stint check --options o.txt --graph d/graph.json d/plan.json --alignment 64
finished

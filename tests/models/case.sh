# shellcheck shell=sh
# A case of tests/models/cases, as tests/oracle/make.py writes it: $case is its folder, and what it lacks is in the folder above.

file() { # NAME
	if [ -e "$case/$1" ]; then echo "$case/$1"; else echo "${case%/*}/$1"; fi
}

# The case's options, one a line: for --options, beside which a test may say otherwise.
option_lines() {
	sed 's/ --/\n--/g' "$(file options)"
}

# What a test would miss in silence.
complete() {
	for part in model.onnx options tolerance reference.safetensors input0.npy ${narrow:+rounding}; do
		[ -e "$(file $part)" ] || [ $part.$single = reference.safetensors.random ] ||
			{ echo "FAILED: $case has no $part"; return 1; }
	done
}

# How far norms may be off that are computed in bf16 (1) or in what has 3 bits more (0.25): options of compare_tensors.
rounding_of() { # SCALE
	echo "--rounding $(file rounding) $1"
}

# What `stint run` and `stint train` take: --input FILE ... [--target FILE], or --target NAME=FILE of each loss
data() {
	i=0
	while input=$(file "input$i.npy") && [ -e "$input" ]; do
		echo "--input $input"
		i=$((i + 1))
	done
	target=$(file target.npy)
	[ ! -e "$target" ] || echo "--target $target"
	for target in "$case"/target-*.npy "${case%/*}"/target-*.npy; do
		[ ! -e "$target" ] || { target=${target##*/} && target=${target#target-} && echo "--target ${target%.npy}=$(file "target-$target")"; }
	done
}

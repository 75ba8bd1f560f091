# shellcheck shell=sh
# each_family SOURCE COMMAND: COMMAND NAME MODEL.onnx OPTION... of one export of every family of tests/models/cases.
each_family() {
	for family in "$1"/tests/models/cases/*/; do
		for way in raw new old; do
			case=$family$way
			[ ! -e "$case/model.onnx" ] || break
		done
		[ -e "$case/model.onnx" ] || continue
		options=$case/options
		[ -e "$options" ] || options=${family}options
		# shellcheck disable=SC2046 # options are words
		"$2" "$(basename "$family")" "$case/model.onnx" $(cat "$options")
	done
}

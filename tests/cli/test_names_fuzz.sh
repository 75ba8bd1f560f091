# Names of random bytes in every place that takes or shows one: names_fuzz.py, which does more rounds when told.
. "$(dirname "$0")/lib.sh"

python3 "$SOURCE/tests/cli/names_fuzz.py" "$STINT" "$FIXTURE" rounds --seed 1 --rounds 4 --cc "${CC:-cc}" >out 2>err ||
	fail "rounds of names"

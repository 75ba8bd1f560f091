# awk -f budgets.awk -v model=gpt.bf16 -v table=budgets.txt -v write=0 LOG: what nvrtc_check says of kernels for sm_90, against the
# table; with write=1 its lines for this model. A kernel is called by what it does, without its number; of several the largest counts.
function larger(a, b) { return a > b ? a : b }
/^NVRTC / { version = $2 }
$1 == "sm_90" {
	name = $2
	sub(/^[ku][0-9]+_/, "", name)
	registers[name] = larger(registers[name], $4)
	spilled[name] = larger(spilled[name], $8 + $9)
	instructions[name] = larger(instructions[name], $10)
}
END {
	if (write) {
		for (name in registers)
			printf "%s %s %d %d %d\n", model, name, registers[name], spilled[name], instructions[name]
		exit 0
	}
	while ((getline line < table) > 0) {
		n = split(line, word, " ")
		if (word[1] == "NVRTC")
			other = word[2] != version ? word[2] : ""
		if (word[1] != model || n < 5)
			continue
		known[word[2]] = 1
		if (!(word[2] in registers))
			print model ": no kernel " word[2] " any more: make the table again"
		if (registers[word[2]] > word[3] || spilled[word[2]] > word[4] || instructions[word[2]] > 1.03 * word[5])
			worse[word[2]] = word[3] " registers, " word[4] " bytes spilled, " word[5] " instructions"
	}
	if (other) {
		print "budgets are NVRTC " other "'s, and this is " version ": not compared"
		exit 0
	}
	for (name in registers)
		if (!(name in known))
			print model ": no budget for " name ": make the table again"
	bad = 0
	for (name in worse) {
		bad = 1
		print model ": " name ": " registers[name] " registers, " spilled[name] " bytes spilled, " instructions[name] \
			" instructions; the budget is " worse[name]
	}
	exit bad
}

#!/bin/sh
# check_commands.sh STINT COMMANDS.md: every command has a section, with every option of its --help.
set -eu
stint=$1
page=$2
bad=0
head=$(awk '/^## /{exit} 1' "$page") # what every command takes
commands=$("$stint" --help | sed -n 's/^  \([a-z][a-z]*\)  *.*/\1/p')
[ -n "$commands" ]
for c in $commands; do
	# `plan` takes what `compile` takes; its section says so and lists what differs
	section=$(awk -v want="## stint $c" '/^## /{on = $0 == want} on' "$page")
	if [ -z "$section" ]; then
		echo "$page: no section '## stint $c'" >&2
		bad=1
		continue
	fi
	case $c in plan | show | frontier) section=$(awk '/^## stint (compile|plan|show|frontier)$/{on = 1; print; next} /^## /{on = 0} on' "$page") ;; esac
	for option in $("$stint" "$c" --help | grep -o -- '^[ ,a-z-]*--[a-z0-9-]*' | grep -o -- '--[a-z0-9-]*' | grep -v -- '--help'); do
		printf '%s' "$head$section" | grep -q -- "\`$option[ \`]" || {
			echo "$page: stint $c: $option is not described" >&2
			bad=1
		}
	done
done
exit $bad

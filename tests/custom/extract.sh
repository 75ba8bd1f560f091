#!/bin/sh
# extract.sh PAGE.md LANGUAGE: the first block of code in that language.
awk -v begin="\`\`\`$2" '$0 == "```" && on {exit} on {print} $0 == begin {on = 1}' "$1"

#!/bin/sh
# messages.sh SOURCE: messages are spelled alike, and each is said by a test or stands in messages_untold.txt, to which none is added.
source=$1
list=$source/tests/house/messages_untold.txt
failed=0
odd=$(python3 "$source/tools/messages.py" --spelling "$source") || exit 1
[ -z "$odd" ] || { echo "FAILED: spelled otherwise than the others (lower case, no point at the end, \"cannot\"):"; echo "$odd"; failed=1; }
found=$(python3 "$source/tools/messages.py" --untold "$source") || exit 1
[ -s "$list" ] && [ -n "$found" ] || { echo "FAILED: nothing to compare"; exit 1; }
new=$(echo "$found" | grep -vxFf "$list")
[ -z "$new" ] || { echo "FAILED: no test says these; one that expects their words should:"; echo "$new"; failed=1; }
echo "$(python3 "$source/tools/messages.py" "$source" | wc -l) messages, $(echo "$found" | wc -l) of which no test says"
gone=$(echo "$found" | grep -vxFf - "$list")
[ -z "$gone" ] || { echo "take out of messages_untold.txt (tools/messages.py --untold >it):"; echo "$gone"; }
exit $failed

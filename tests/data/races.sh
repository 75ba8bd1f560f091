#!/bin/sh
# races.sh PROGRAM FILE: ThreadSanitizer wants its addresses where they used to be; some systems randomize them further, and some
# of those let nobody ask for less. There this is left out (exit 77).
if setarch --addr-no-randomize true 2>/dev/null; then
	exec setarch --addr-no-randomize "$@"
fi
"$@" >out.races 2>&1
code=$?
cat out.races
! grep -q 'unexpected memory mapping' out.races || exit 77
exit $code

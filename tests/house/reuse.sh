#!/bin/sh
# reuse.sh SOURCE WORK: the copyright and the licence of every file are known, and the licences' texts are there (reuse lint). Debian 12's
# reuse does not know REUSE.toml yet: where no newer one is, the packages' index is asked once; what it gave stays in WORK.
source=$1 work=$2
lint() { "$1" --root "$source" lint; }
knows() { command -v "$1" >/dev/null && [ "$("$1" --version | sed -n '1s/.*version \([0-9]*\).*/\1/p')" -ge 4 ]; }
if knows reuse; then lint reuse; exit; fi
if ! knows "$work/bin/reuse"; then
	mkdir -p "$work"
	{ python3 -m venv "$work" && "$work/bin/pip" install -q --timeout 10 --retries 0 reuse; } >"$work/log" 2>&1
	knows "$work/bin/reuse" || { tail -n 3 "$work/log"; echo "skipped: no reuse from the packages' index"; exit 77; }
fi
lint "$work/bin/reuse"

"""interrupted.py WORD COMMAND ...: run a command, and press Ctrl-C when its messages hold WORD.

Prints its messages. Exits as it did, with 128 and the signal's number where a signal ended it; with 99 where WORD never came.
"""
import signal
import subprocess
import sys


def main():
    word, command = sys.argv[1], sys.argv[2:]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    asked = False
    for line in child.stderr:
        sys.stdout.write(line)
        if word in line and not asked:
            asked = True
            child.send_signal(signal.SIGINT)
    code = child.wait()
    return 99 if not asked else code if code >= 0 else 128 - code


sys.exit(main())

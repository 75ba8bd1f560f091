"""on_terminal.py COLUMNS COMMAND ...: run a command whose standard error is a terminal of that width (0: one that does
not tell its size; with a + in front of it, standard output, too).

Prints each line that stood there, however briefly, as it looked; then "scrolled N, widest M": how often the cursor went
to another line, and the columns of the widest one. Exits as the command did.
"""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading

END = b"\0end\0"


def main():
    columns, command = int(sys.argv[1]), sys.argv[2:]
    both = sys.argv[1].startswith("+")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=theirs, stdout=theirs if both else None)

    # The end is said on the terminal itself, behind all that the command wrote: a reader who waits for the other end to
    # close may be told of that first, and never see what was written just before.
    def say_the_end():
        child.wait()
        os.write(theirs, END)

    threading.Thread(target=say_the_end).start()
    text = b""
    while not text.endswith(END):
        text += os.read(ours, 65536)
    text = text[: -len(END)]
    columns = columns or 80
    scrolled, widest = 0, 0
    for line in text.decode().replace("\r\n", "\n").split("\n"):
        scrolled += 1
        for shown in line.split("\r"):
            widest = max(widest, len(shown))
            scrolled += max(0, len(shown) - 1) // columns
            if shown.strip():
                print(shown.rstrip())
    print(f"scrolled {scrolled - 1}, widest {widest}")
    return child.wait()


sys.exit(main())

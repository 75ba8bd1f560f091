"""The ten hottest loops of a step on aarch64, from counting every instruction that qemu-user executes: none computes floats one at a
time.

    hot_loops.py TARGET PROGRAM [ARGUMENT...]

TARGET is aarch64-linux-gnu, PROGRAM linked statically, so that addresses are those of its disassembly. A loop is what a branch goes
back over, without another such loop in it. Instructions count as often as they are executed. Loops that only move data pass.
"""
import collections
import re
import subprocess
import sys

TOP = 10
SCALAR = re.compile(r"f(?!mov)\w+ [sd]\d")
VECTOR = re.compile(r"f?\w+ v\d+\.(4s|2d|16b|8h)")


def count_executed(emulator, command):
    """How often each address was executed, by the blocks in which qemu says that it has."""
    count, blocks, block = collections.Counter(), {}, None
    run = subprocess.Popen([emulator, "-d", "in_asm,exec,nochain", "-D", "/proc/self/fd/1", *command],
                           stdout=subprocess.PIPE, text=True, errors="replace")
    for line in run.stdout:
        if line.startswith("Trace"):
            count[line.split("/", 2)[1]] += 1
        elif line.startswith("IN:"):
            block = []
        elif line.startswith("0x") and block is not None:
            address = int(line.split(":", 1)[0], 16)
            if not block:
                blocks[address] = block
            block.append(address)
    if run.wait():
        sys.exit(f"{command[0]}: exit status {run.returncode}")
    times = collections.Counter()
    for start, n in count.items():
        for address in blocks[int(start, 16)]:
            times[address] += n
    return times


def innermost_loops(objdump, program, times):
    """(instructions executed, function, how often each of its instructions), the hottest first."""
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", program], check=True, capture_output=True, text=True).stdout
    code, loops, function = {}, [], None
    for line in text.splitlines():
        if found := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            function = found[1]
        elif found := re.match(r" *([0-9a-f]+):\t(\S+)\t?(.*)", line):
            address, name, operands = int(found[1], 16), found[2], found[3]
            code[address] = f"{name} {operands}"
            to = re.search(r"\b([0-9a-f]+) <", operands)
            if re.match(r"b(\.|$)|t?cbn?z|tbn?z", name) and to and int(to[1], 16) <= address and times[address]:
                loops.append((int(to[1], 16), address, function))
    inner = [a for a in loops if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    body = [(function, [(code[i], times[i]) for i in range(start, end + 4, 4)]) for start, end, function in inner]
    return sorted(((sum(n for _, n in loop), function, loop) for function, loop in body), key=lambda loop: -loop[0])


def main():
    target, command = sys.argv[1], sys.argv[2:]
    times = count_executed(f"qemu-{target.split('-')[0]}", command)
    loops = innermost_loops(f"{target}-objdump", command[0], times)
    total, bad = sum(times.values()), 0
    for executed_here, function, loop in loops[:TOP]:
        scalar, vector = (sum(n for code, n in loop if kind.match(code)) / executed_here for kind in (SCALAR, VECTOR))
        what = f"{vector:.0%} on vectors, {scalar:.0%} compute single floats" if scalar + vector else "moves alone"
        print(f"{executed_here / total:6.1%}  {function}: of {len(loop)} instructions {what}", flush=True)
        bad += scalar > vector
    if len(loops) < TOP or not any(re.match(r"fm\w+ v\d+\.4s", code) for code, _ in loops[0][2]):
        sys.exit("the hottest loop is no product by vectors")
    sys.exit(f"{bad} of the hottest loops compute one float at a time" if bad else 0)


main()

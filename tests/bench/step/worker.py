"""What the measured processes share: answer "steps N" on standard input with N times, and "peak" with the memory.

The peak is the highest resident memory over the steps (VmHWM, reset after the warm-up) less the resident memory
after importing the framework, in bytes.
"""
import ctypes
import json
import sys
import time


def _status(field):
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise OSError(field)


def resident():
    """Resident memory, without what malloc holds free."""
    ctypes.CDLL(None).malloc_trim(0)
    return _status("VmRSS")


def serve(step, baseline, warm_up=3):
    """step() does one training step and returns when it is done."""
    for _ in range(warm_up):
        step()
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")            # VmHWM starts again from VmRSS
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "peak":
            answer = {"peak": _status("VmHWM") - baseline}
        else:
            ms = []
            for _ in range(int(rest[0])):
                t = time.perf_counter()
                step()
                ms.append(1e3 * (time.perf_counter() - t))
            answer = {"ms": ms}
        print(json.dumps(answer), flush=True)

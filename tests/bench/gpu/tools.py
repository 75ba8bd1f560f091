"""What the stages of run.py share: running programs, compiling models, looking at the device's memory."""
import array
import ctypes
import hashlib
import json
import os
import pathlib
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
MIB = 1 << 20


class Failed(Exception):
    """A stage, or a part of it, went wrong; with the reason."""


class Tools:
    def __init__(self, args):
        self.args = args
        self.build, self.out = pathlib.Path(args.build).resolve(), pathlib.Path(args.out).resolve()
        self.fakes = self.build / "tests/gpu/runtime/fakes"
        self.work = self.out / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.log = open(self.out / "log.txt", "a", encoding="utf-8")
        self.lock = threading.Lock()
        self.prefix = ""
        if not args.fake:  # a virtual environment that nobody activated has NVIDIA's libraries too
            done = self.run(args.python, "-c", "import sys; print(sys.prefix)", check=False)
            self.prefix = done.stdout.strip()

    # --- programs ---

    def environment(self, folder=None):
        env = dict(os.environ)
        env.setdefault("STINT_CACHE", str(self.out / "cache"))
        env.setdefault("CFLAGS", "-O0" if self.args.fake else "-O1")
        if self.prefix:
            env["VIRTUAL_ENV"] = self.prefix
        if self.args.fake:
            env["STINT_CUDA_LIBS"] = str(self.fakes)
            if folder:
                env["STINT_FAKE_KERNELS"] = str(folder / "kernels.so")
        return env

    def run(self, *command, folder=None, timeout=600, check=True):
        """The finished program; its words go to the log. `folder`: of the compiled step that it opens."""
        command = [str(word) for word in command]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                                  env=self.environment(folder), cwd=self.work)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{pathlib.Path(command[0]).name} took more than {timeout} s") from late
        except OSError as e:  # no such program
            done = subprocess.CompletedProcess(command, 127, "", f"{e}\n")
        with self.lock:
            self.log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}-> {done.returncode}\n")
            self.log.flush()
        if check and done.returncode:
            raise Failed(reason(done.stderr or done.stdout) or f"{command[0]}: exit code {done.returncode}")
        return done

    def stint(self, *words, **more):
        return self.run(self.build / "stint", *words, **more)

    def compile(self, model, folder, *options):
        """A step for the device in `folder`."""
        small = ["--effort", 0.1] if self.args.quick or self.args.tiny else []
        self.stint("compile", model, *options, *small, "--target", "cuda", "-o", folder, timeout=1800)
        if self.args.fake:
            self.run("sh", ROOT / "tests/gpu/shim/build.sh", "plain", "g++", ROOT, folder / "kernels.cu",
                     folder / "kernels.so")
        return folder

    def budgets(self, model, options, n):
        """n budgets in bytes, evenly from keep-everything's down to the smallest one met, which no effort changes: the
        first is None. Both ends are planned once for all runs of a program."""
        program = (self.build / "stint").stat().st_mtime_ns
        key = hashlib.sha256(repr((str(model), [str(o) for o in options], program)).encode()).hexdigest()[:16]
        ends = []
        for more, what in (([], "arena_bytes"), (["--budget", "min"], "budget_bytes")):
            plan, new = self.work / f"ends.{key}.{what}.json", self.work / f"ends.{key}.new"
            if not plan.exists():
                self.stint("plan", model, *options, "--target", "cuda", "--effort", 0.05, *more, "-o", new, timeout=1800)
                new.replace(plan)
            ends.append(json.loads(plan.read_text())[what])
        top, low = ends
        return [None] + [low + (top - low) * k // (n - 1) for k in range(n - 2, -1, -1)]

    def bench(self, folder, steps):
        return json.loads(self.stint("bench", folder, "--steps", steps, "--json", folder=folder).stdout)

    def wrong_with(self, name, check):
        """What `check` returns, or why it failed, as a line: "" where nothing is wrong."""
        try:
            words = check()
        except Failed as e:
            words = str(e)
        if words:
            print(f"   {name}: {words}", flush=True)
        return words

    def identical(self, a, b):
        done = self.run(self.build / "compare_tensors", "--identical", a, b, check=False)
        return "" if done.returncode == 0 else last_line(done.stdout + done.stderr) or "differs"


# --- memory ---


class Device:
    """The device that programs take, which CUDA_VISIBLE_DEVICES may choose, as nvidia-smi's library sees it: that one knows
    nothing of this variable, and is asked by the device's place on the bus."""

    GRAIN = 2 * MIB  # the library counts bytes, but the driver hands memory out in pages of this size

    def __init__(self):
        """Without a driver, `bus` is None."""
        self.bus = None
        number, bus, self.handle = ctypes.c_int(), ctypes.create_string_buffer(64), ctypes.c_void_p()
        try:
            cuda, self.smi = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if not (cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(number), 0) or
                cuda.cuDeviceGetPCIBusId(bus, len(bus), number) or self.smi.nvmlInit_v2() or
                self.smi.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(self.handle))):
            self.bus = bus.value.decode()

    def used(self):
        """Bytes in use, by all programs; None: not known."""
        memory = (ctypes.c_ulonglong * 3)()  # total, free, used
        return memory[2] if self.bus and not self.smi.nvmlDeviceGetMemoryInfo(self.handle, memory) else None


class Watch:
    """The most that was in use while the block ran."""

    def __init__(self, device):
        self.device, self.peak, self.over = device, 0, False

    def look(self):
        while not self.over:
            self.peak = max(self.peak, self.device.used() or 0)
            time.sleep(0.005)

    def __enter__(self):
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()


def reason(text):
    """The line that says what went wrong."""
    errors = [line for line in text.splitlines() if "error" in line.lower()]
    return errors[0].strip()[:200] if errors else last_line(text)


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""


def named(budget):
    return f"{budget / MIB:,.0f} MiB" if budget else "no budget"


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def write_npy(path, kind, shape, values):
    """.npy version 1.0; kind "q": int64, "f": float32."""
    head = str({"descr": {"q": "<i8", "f": "<f4"}[kind], "fortran_order": False, "shape": tuple(shape)})
    head = head.ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        array.array(kind, values).tofile(f)

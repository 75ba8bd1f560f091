"""The processes that are measured: the frameworks' workers, which stay, and `stint bench`, started for each turn."""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import resource
import select
import shlex
import statistics
import subprocess
import sys
import time

import models

HERE = pathlib.Path(__file__).parent
TICK = os.sysconf("SC_CLK_TCK")

# Freed memory stays in the process instead of going back to the system, to be faulted in again in each step.
MALLOC = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}
HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}     # madvise(MADV_HUGEPAGE) for the heap


class Failed(Exception):
    pass


def machine_busy():
    """Seconds of processor time that the whole machine has used; stolen time counts as used."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, soft, steal = map(int, f.readline().split()[1:9])
    return (user + nice + system + irq + soft + steal) / TICK


def children_busy():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def prefer(pid, nice):
    """Give a process a priority, and its session, where the kernel shares out time by session; other than 0 needs to
    be root."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):     # it may have ended
        for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
            if os.getpriority(os.PRIO_PROCESS, int(thread.name)) != nice:
                os.setpriority(os.PRIO_PROCESS, int(thread.name), nice)
        group = pathlib.Path(f"/proc/{pid}/autogroup")
        if group.read_text().split()[-1] != str(nice):
            group.write_text(str(nice))


class Worker:
    """A process that answers "steps N" and "peak" (worker.py)."""

    def __init__(self, command, env, work, limit, nice):
        self.log = open(work / "worker.log", "a+")
        self.process = subprocess.Popen(command, env={**os.environ, **env}, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, start_new_session=True)
        self.name = shlex.join(command)
        self.rest = b""
        prefer(self.process.pid, nice)
        try:
            self._answer(time.monotonic() + limit)
        except Failed:
            self.end()
            raise

    def _answer(self, until):
        """The next line of JSON; other lines (warnings) are skipped."""
        pipe = self.process.stdout.fileno()
        while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
            piece = os.read(pipe, 1 << 16)
            if not piece:
                raise Failed(f"{self.name}: ended with {self.process.wait()}, see {self.log.name}")
            self.rest += piece
            while b"\n" in self.rest:
                line, self.rest = self.rest.split(b"\n", 1)
                if line.startswith(b"{"):
                    return json.loads(line)
        raise Failed(f"{self.name}: no answer in time")

    def ask(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()
        return self._answer(time.monotonic() + 900)

    def busy(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def steps(self, n, nice=0):
        prefer(self.process.pid, nice)
        ms = self.ask(f"steps {n}")["ms"]
        prefer(self.process.pid, 0)
        return {"ms": statistics.median(ms), "min_ms": min(ms)}

    def peak(self):
        return self.ask("peak")["peak"]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def torch_worker(python, model, variant, threads, work, nice, limit=900):
    words = variant.split("+")
    env = {"OMP_NUM_THREADS": str(threads), "TORCHINDUCTOR_CACHE_DIR": str(work.resolve() / "inductor")}
    if "malloc" in words:
        env.update(MALLOC)
    if "huge" in words:
        env.update(HUGE)
    command = [python, "-W", "ignore", str(HERE / "torch_step.py"), model, variant, str(threads)]
    return Worker(command, env, work, limit, nice)


def jax_worker(python, model, threads, work, nice, limit=300):
    """JAX has as many threads as processors: it gets no more processors than threads."""
    first = sorted(os.sched_getaffinity(0))[:threads]
    command = ["taskset", "-c", ",".join(map(str, first)), python, str(HERE / "jax_step.py"), model]
    return Worker(command, {"JAX_PLATFORMS": "cpu"}, work, limit, nice)


def ort_worker(python, model, threads, work, nice, limit=300):
    return Worker([python, "-W", "ignore", str(HERE / "ort_step.py"), model, str(threads), str(work)], {}, work, limit,
                  nice)


class Stint:
    """A compiled directory, measured by `stint bench`."""

    def __init__(self, stint, folder):
        self.stint, self.folder = stint, folder
        self.last = None

    def busy(self):
        return children_busy()

    def steps(self, n, nice=0):
        code, out, messages = _stint([self.stint, "bench", self.folder, "--steps", str(n), "--json"], nice)
        if code:
            raise Failed(f"stint bench {self.folder}: {messages}")
        self.last = json.loads(out)
        return {"ms": self.last["step_ms"], "min_ms": self.last["step_ms"]}

    def end(self):
        pass


def turn(contender, n, quiet, patience, nice=0):
    """n steps. While other programs use more than `quiet` of the processors, again, for `patience` seconds in all;
    the least disturbed run counts. Returns its times and `others`, their share of the processors."""
    best, start = None, time.monotonic()
    while True:
        at, busy, own = time.monotonic(), machine_busy(), contender.busy()
        result = contender.steps(n, nice)
        wall = time.monotonic() - at
        others = (machine_busy() - busy - (contender.busy() - own)) / (wall * os.cpu_count())
        result["others"] = max(0.0, others)
        if best is None or result["others"] < best["others"]:
            best = result
        if best["others"] <= quiet or time.monotonic() - start > patience:
            return best
        time.sleep(1)


# --- compiling ---


def options(o, name):
    """Of stint compile, but for the budget."""
    return [*models.compile_options(name), "--threads", str(o.threads), *o.stint_option]


def folder(o, name, budget):
    return o.work / f"{name}.{budget.rstrip('%')}"


def _fingerprint(stint, onnx, options):
    h = hashlib.sha256(pathlib.Path(stint).read_bytes())
    info = onnx.stat()
    h.update(repr((onnx.name, info.st_size, info.st_mtime_ns, options)).encode())
    return h.hexdigest()


def _stint(command, nice):
    """Run stint; returns its exit code, output and messages."""
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    prefer(process.pid, nice)
    out, messages = process.communicate()
    return process.returncode, out, messages.strip()


def compile_step(stint, onnx, options, folder, nice=0):
    """Compile unless the folder has just that already. Returns seconds and bytes of text; with "min" set to the
    smallest budget instead where the budget is not met."""
    mark = folder.with_name(folder.name + ".made.json")
    key = _fingerprint(stint, onnx, options)
    if mark.exists() and (folder / "plan.json").exists():
        made = json.loads(mark.read_text())
        if made["key"] == key:
            return made
    start, busy = time.monotonic(), children_busy()
    code, _, messages = _stint([stint, "compile", str(onnx), *options, "-o", str(folder)], nice)
    made = {"key": key, "seconds": round(time.monotonic() - start, 2),
            "cpu_seconds": round(children_busy() - busy, 2)}
    if code == 4:
        found = re.search(r"smallest budget met: (\d+) bytes", messages)
        if not found:
            raise Failed(messages)
        made["min"] = int(found[1])
    elif code:
        raise Failed(f"stint compile {onnx}: {messages}")
    else:
        made["text_bytes"] = (folder / "step.c").stat().st_size
        made["arena"] = json.loads((folder / "plan.json").read_text())["arena_bytes"]
    mark.write_text(json.dumps(made) + "\n")
    return made


def note(text):
    print(text, file=sys.stderr, flush=True)

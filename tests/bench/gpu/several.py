"""Stage i of tests/gpu/run.sh: steps that several GPUs share, a process each, have the bits of one GPU's."""
import os
import shutil

from tools import ROOT

# Open MPI's: containers whose user is root
os.environ.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
BATCH = 8
SHARDS = ("none", "state", "parameters:1")


def count(tools):
    """GPUs that programs see; on stand-ins as many as are wanted."""
    if tools.args.fake:
        return 2
    said = tools.run("nvidia-smi", "-L", check=False).stdout
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return len(seen.split(",")) if seen else sum(line.startswith("GPU ") for line in said.splitlines())


def trained(tools, folder, data, n, launch=()):
    """The checkpoint behind three steps."""
    saved = folder / "saved"
    shutil.rmtree(saved, ignore_errors=True)
    words = [tools.build / "stint", "train", folder, "--seed", 7, *data, "--epochs", 1, "--checkpoint", saved]
    tools.run(*launch, *words, *(["--check-ranks", 1] if n > 1 else []), folder=folder)
    return sorted(saved.glob("*.safetensors"))[-1]


def bits_of(tools, model, precision, data, n):
    """{what is shared: "" or what is wrong}"""
    path, found = ROOT / f"examples/models/{model}.onnx", {}
    options = ["--batch", BATCH, "--micro-batch", BATCH // n, "--loss", "cross-entropy", "--optimizer", "adamw:lr=0.01", "--clip-norm", 1,
               "--precision", precision]
    one = tools.compile(path, tools.work / f"ranks.{model}.{precision}.one", *options)
    whole = trained(tools, one, data, 1)
    for shard in SHARDS:
        def check():
            folder = tools.compile(path, tools.work / f"ranks.{model}.{precision}.{shard}", *options, "--ranks", n, "--shard", shard)
            return tools.identical(trained(tools, folder, data, n, ("mpirun", "-n", n)), whole)
        name = f"{model} {precision} {shard}"
        found[name] = tools.wrong_with(name, check)
    return found


def several(tools):
    args, there = tools.args, count(tools)
    if there < 2 or not shutil.which("mpirun") or not shutil.which("mpicc"):
        return "skipped", "one GPU" if there < 2 else "no mpirun or mpicc here", {}
    if args.fake:  # nobody waits for what NVRTC makes of steps that stages before have seen
        tools.fakes = f"{tools.fakes}:{tools.fakes}_nvrtc"
    n, found = min(there, 4), {}
    n = n if BATCH % n == 0 else 2
    files = tools.work / "ranks.inputs"
    files.mkdir(parents=True, exist_ok=True)
    tools.run(tools.build / "make_inputs", files, 3 * BATCH)
    for model, x, y in (("mlp", "image", "label"), ("gpt", "tokens", "next"))[:1 if args.fake else 2]:
        for precision in ("fp32",) if args.fake or args.quick else ("fp32", "bf16"):
            found |= bits_of(tools, model, precision, ["--input", files / f"{x}.npy", "--target", files / f"{y}.npy"], n)
    wrong = sum(bool(words) for words in found.values())
    return ("FAILED" if wrong else "ok"), f"{len(found) - wrong} of {len(found)} steps of {n} GPUs have the bits of one", found

"""A program that mypy checks: what the module says of its types is enough for it. It is not run."""
from pathlib import Path

import numpy as np
import numpy.typing
import stint_train as stint

try:
    step: stint.Step = stint.compile("m.onnx", loss="cross-entropy", optimizer="sgd:lr=0.1", budget="70%", dim={"N": 4},
                                     freeze=["a.*"], portable=True, micro_batch="auto", out=Path("step"))
except stint.BudgetError as e:
    least: int | None = e.min_bytes_known
    hint: str | None = e.hint
    raise
loss: float = step.train(np.zeros((4, 3)), (np.zeros(4), np.ones(4)), lr=0.1)
peak: int = step.plan.peak
gap: float | None = step.plan.gap
weight: np.typing.NDArray[np.float32] = step.parameters()["a.weight"]
step.train(x=1, z=2)  # type: ignore[call-arg]
step.plan.peek  # type: ignore[attr-defined]
stint.compile(b"m.onnx")  # type: ignore[arg-type]

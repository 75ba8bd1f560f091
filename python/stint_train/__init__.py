"""stint: train a neural network inside a memory budget given in bytes.

    import stint_train as stint

    step = stint.compile("m.onnx", loss="cross-entropy", optimizer="sgd:lr=0.1", budget="70%")
    for x, y in batches:
        loss = step.train(x, y)
"""
from ._compile import compile, frontier, open, plan, version
from ._errors import BudgetError, Diagnostic, DivergedError, ExportError, FileError, ModelError, StintError, StintWarning, UsageError
from ._export import export
from ._plan import Frontier, Plan
from ._step import Step

__version__ = version()
__all__ = ["BudgetError", "Diagnostic", "DivergedError", "ExportError", "FileError", "Frontier", "ModelError", "Plan",
           "Step", "StintError", "StintWarning", "UsageError", "compile", "export", "frontier", "open", "plan"]

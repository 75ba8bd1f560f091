"""Plans, and what other budgets cost."""
from __future__ import annotations

import html
import json
import threading
from typing import Any

from ._errors import BudgetError, Diagnostic, StintError
from ._library import Waiting, check, diagnostics, ffi, lib, made, text, warn

_PHASES = ("forward", "backward", "update")


def _frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


class Result:
    """What the library made of options; base of Plan and Frontier."""

    def __init__(self, call: str, *arguments: Any, waits: bool = True) -> None:
        out = ffi.new("struct stint_result **")
        waiting = Waiting()
        status = getattr(lib, f"stint_{call}")(out, *arguments, *([waiting.onlooker] if waits else []))
        self._result = made("result", out)
        self._lock = threading.Lock()
        waiting.finish(status)
        self.messages: tuple[Diagnostic, ...] = tuple(diagnostics(lib.stint_result_diagnostic, self._result))
        try:
            check("result", status, self._result)
        except BudgetError as error:
            facts = lib.stint_result_facts(self._result)
            if facts:
                error.min_bytes_known = facts.min_bytes_known if facts.min_bytes_known >= 0 else None
                error.min_bytes_proven = facts.min_bytes_proven if facts.min_bytes_proven >= 0 else None
            raise
        warn(self.messages, stacklevel=4)

    def _text(self, kind: str) -> str:
        out, waiting = ffi.new("const char **"), Waiting()
        with self._lock:
            status = lib.stint_result_text(self._result, getattr(lib, f"STINT_TEXT_{kind}"), waiting.onlooker, out, ffi.NULL)
            waiting.finish(status)
            check("result", status, self._result)
            return text(out[0])


class Plan(Result):
    """A checked plan. Bytes and costs are the step's; without a cost model of time, costs are numbers without a unit."""

    def __init__(self, call: str, *arguments: Any, waits: bool = True) -> None:
        super().__init__(call, *arguments, waits=waits)
        facts = lib.stint_result_facts(self._result)
        if not facts or not facts.feasible:
            raise StintError(3, (Diagnostic("error", "the plan is of a budget that is not met"),))
        self.budget: int | None = facts.budget_bytes if facts.budget_bytes >= 0 else None
        self.arena: int = facts.arena_bytes
        self.peak: int = facts.peak_bytes
        self.cost: float = facts.cost_total
        self.cost_of_one_pass: float = facts.cost_once
        self.cost_unit: str | None = "us" if facts.cost_is_time else None
        self.bound: float | None = facts.lower_bound if facts.lower_bound >= 0 else None
        self.steps: int = facts.steps
        self.peak_step: int = facts.peak_step
        self.recomputed_ops: int = facts.recomputed_ops
        self.recomputed_runs: int = facts.recomputed_runs

    @property
    def gap(self) -> float | None:
        """At most so much of the cost could be saved: a share, proven."""
        return None if self.bound is None or not self.cost else (self.cost - self.bound) / self.cost

    def rows(self) -> list[dict[str, Any]]:
        """The schedule."""
        x, index, out = ffi.new("struct stint_plan_step *"), 0, []
        while lib.stint_result_step(self._result, index, x):
            out.append({"phase": _PHASES[x.phase], "node": text(x.node), "cost": x.cost, "live_bytes": x.live_bytes,
                        "recompute": bool(x.again)})
            index += 1
        return out

    def table(self) -> Any:
        """The schedule: a pandas DataFrame, or, without pandas, a list of dicts."""
        return _frame(self.rows())

    def json(self) -> dict[str, Any]:
        """As stint-plan-1 (docs/reference/formats.md)."""
        return dict(json.loads(self._text("PLAN")))

    def html(self) -> str:
        """The page of `stint show --html`, the arena drawn as a map. Plans for other budgets, which takes seconds."""
        return self._text("HTML")

    def _repr_html_(self) -> str:
        page = html.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 48em; border: 0"></iframe>'

    def __str__(self) -> str:
        return self._text("REPORT")

    def __repr__(self) -> str:
        return f"<stint plan: peak {self.peak} bytes, arena {self.arena} bytes, cost {self.cost:.6g}, {self.steps} steps>"


class Frontier(Result):
    """Cost against budget, from keep-everything down to the smallest budget met."""

    def __init__(self, options: Any) -> None:
        super().__init__("frontier", options)
        found = json.loads(self._text("FRONTIER"))
        self.points: list[dict[str, Any]] = found["points"]
        self.once: float = found["once"]
        self.keep_all_bytes: int = found["keep_all_bytes"]
        self.min_bytes_known: int = found["min_bytes_known"]
        self.min_bytes_proven: int = found["min_bytes_proven"]

    def table(self) -> Any:
        """A pandas DataFrame, or, without pandas, a list of dicts."""
        return _frame(self.points)

    def svg(self) -> str:
        return self._text("FRONTIER_SVG")

    def _repr_svg_(self) -> str:
        return self.svg()

    def plot(self, ax: Any = None) -> Any:
        """With matplotlib, into `ax` or the current axes, which come back. (`svg()` wants nothing.)"""
        if ax is None:
            from matplotlib import pyplot
            ax = pyplot.gca()
        met = [p for p in self.points if p["feasible"]]
        mib = [p["budget_bytes"] / 2**20 for p in met]
        ax.plot(mib, [p["cost"] / self.once for p in met], marker="o", label="plan")
        proven = [(at, p["lower_bound"] / self.once) for at, p in zip(mib, met) if p["lower_bound"] is not None]
        ax.plot([at for at, _ in proven], [bound for _, bound in proven], linestyle=":", label="proven bound")
        ax.axvline(self.min_bytes_proven / 2**20, color="grey", linewidth=1, label="no plan needs less")
        ax.set_xlabel("budget, MiB")
        ax.set_ylabel("cost, x one pass")
        ax.legend()
        return ax

    def __repr__(self) -> str:
        return f"<stint frontier: {len(self.points)} points, {self.keep_all_bytes} to {self.min_bytes_known} bytes>"

"""Runs a notebook's code cells, in order, as one program: notebook.py NOTEBOOK. The last expression of a cell is displayed."""
import ast
import json
import sys

notebook = json.load(open(sys.argv[1], encoding="utf-8"))
cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
assert len(cells) > 5, "cells are missing"
names = {"__name__": "__main__"}
for number, source in enumerate(cells, 1):
    print(f"--- {number}\n{source}", flush=True)
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, f"cell {number}", "exec"), names)
    if last:
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
        shown = next((getattr(value, how)() for how in ("_repr_html_", "_repr_svg_") if hasattr(value, how)), repr(value))
        assert shown, "nothing to show"
        print(f">>> {shown[:200]}", flush=True)

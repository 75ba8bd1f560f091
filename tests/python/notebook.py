"""Runs a notebook's code cells in the notebook's folder, in order, as one program: the last expression of a cell is displayed, and is what
the notebook shows below it but for the numbers. notebook.py NOTEBOOK [--write]: puts down what is displayed in place of that."""
import ast
import contextlib
import io
import json
import os
import re
import sys

path = os.path.abspath(sys.argv[1])
with open(path, encoding="utf-8") as f:
    notebook = json.load(f)
os.chdir(os.path.dirname(path))
before = os.listdir()
cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
assert len(cells) > 5, "cells are missing"
names = {"__name__": "__main__"}
for number, cell in enumerate(cells, 1):
    source = "".join(cell["source"])
    print(f"--- {number}\n{source}", flush=True)
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    outputs = []
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last:
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(keepends=True)})
    if last and value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        # a page is too long to keep; what draws itself is shown whole where the notebook runs
        if hasattr(value, "_repr_svg_"):
            data["image/svg+xml"] = value._repr_svg_().splitlines(keepends=True)
        assert not hasattr(value, "_repr_html_") or value._repr_html_(), "nothing to show"
        outputs.append({"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data})

    def text_of(these):
        return "".join("".join(x.get("text", x.get("data", {}).get("text/plain", ""))) for x in these)

    def shown(these):
        return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "N", text_of(these)).split()

    print(">>>", text_of(outputs), flush=True)
    if "--write" in sys.argv:
        cell["outputs"], cell["execution_count"] = outputs, number
    else:
        assert shown(cell["outputs"]) == shown(outputs), f"cell {number} shows something else in the notebook"
assert os.listdir() == before, "the notebook's folder holds other files than before"
if "--write" in sys.argv:
    with open(path, "w", encoding="utf-8") as f:
        json.dump(notebook, f, ensure_ascii=False, indent=1)
        f.write("\n")

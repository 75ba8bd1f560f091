"""Pages at 600 and 1280 pixels: nothing is clipped, drawings can be read, names are whole, columns of nothing go.

    python3 tests/view/test_fits.py STINT FOLDER SOURCE
"""
import json
import os
import sys
import time

import graphs
from browser import Browser
from checks import check, finish, same, start

NAME = "/decoder/blocks.{}/attention/query_key_value/projection/MatMul_output_{}"

# What lies outside of what holds it, drawings that were made so small that nobody reads them, and numbers on numbers.
FAULTS = """(() => {
    const faults = [], wide = document.documentElement.clientWidth, shown = (e) => e.getClientRects().length > 0;
    if (document.documentElement.scrollWidth > wide)
        faults.push(`the page is ${document.documentElement.scrollWidth} pixels wide`);
    for (const e of document.querySelectorAll(".panel, .table, .wide, .card"))
        if (shown(e) && e.scrollWidth > e.clientWidth + 1)
            faults.push(`${e.className} holds ${e.scrollWidth} of ${e.clientWidth}`);
    for (const svg of document.querySelectorAll("svg")) {
        if (!shown(svg))
            continue;
        const box = svg.getBoundingClientRect();
        const texts = [...svg.querySelectorAll("text")].map((t) => [t, t.getBoundingClientRect()]);
        const scale = box.width / svg.viewBox.baseVal.width;
        for (const [t, r] of texts) {
            if (parseFloat(getComputedStyle(t).fontSize) * scale < 8.5)
                faults.push(`'${t.textContent}' is ${parseFloat(getComputedStyle(t).fontSize) * scale} pixels high`);
            if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1)
                faults.push(`'${t.textContent}' leaves its drawing`);
        }
        const level = texts.filter(([t]) => !t.hasAttribute("transform"));
        for (const [i, [a, p]] of level.entries())
            for (const [b, q] of level.slice(i + 1))
                if (p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 3 && q.top < p.bottom - 3)
                    faults.push(`'${a.textContent}' lies on '${b.textContent}'`);
    }
    return faults;
})()"""

# The strokes below the numbers of live bytes do not touch them.
STROKES = """[...document.querySelectorAll(".tr .live")].filter((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell.firstChild);
    return range.getBoundingClientRect().bottom > cell.querySelector("i").getBoundingClientRect().top + 2;
}).length"""


def load(b, page):
    b.call("Page.navigate", url="about:blank")
    b.call("Page.navigate", url="file://" + os.path.abspath(page))
    until = time.monotonic() + 60
    while time.monotonic() < until and not b.js(
            "location.protocol === 'file:' && document.readyState === 'complete'"
            " && (document.documentElement.dataset.state || 'ready') === 'ready'"):
        time.sleep(0.05)
    b.frame()


def fits(page, look=lambda b, width: None):
    for width in (600, 1280):
        with Browser(width, 1000) as b:
            for scheme in ("light", "dark"):
                b.look(scheme)
                load(b, page)
                for fault in b.js(FAULTS):
                    check(False, f"{page} at {width}: {fault}")
                b.screenshot(f"{page}.{width}.{scheme}.png")
            look(b, width)


def branches(b, width):
    same(b.js("[...document.querySelectorAll('.thead [role=columnheader]')].map((e) => e.innerText)").count("runs only when"), 1,
         "a column for what may not run")
    same(b.js("[...document.querySelectorAll('.tr .why')].filter((e) => e.textContent.startsWith('when /decoder')).length"), 5, "which steps")


def names_and_columns(recomputes):
    def look(b, width):
        same(b.js("[...document.querySelectorAll('.thead [role=columnheader]')].map((e) => e.innerText)").count("run again"),
             int(recomputes), "a column for what runs again")
        cell = "document.querySelector('.tr .node')"
        name = b.js(f"{cell}.title")
        check(name.startswith("/decoder"), f"the whole name on hover, not {name!r}")
        b.js(f"getSelection().selectAllChildren({cell})")
        same(b.js("getSelection().toString()"), name, "the copied name")
        end = b.js("(({right}) => right)(document.querySelector('.tr .tail').getBoundingClientRect())")
        check(end <= b.js(f"{cell}.getBoundingClientRect().right") + 1, f"the name's end is there at {width}")
        same(b.js(STROKES), 0, f"numbers with a stroke through them at {width}")
        words = b.js("document.getElementById('kinds').innerText")
        check("parameters" in words and "updated in place" in words, "words of `stint show`")
    return look


def two_colours(b, width):
    colours = b.js("""[...document.querySelectorAll(".whole svg")].filter((e) => e.getClientRects().length)
        .flatMap((e) => [...e.querySelectorAll(".line")].map((line) => getComputedStyle(line).stroke))""")
    same(len(colours), 2, f"curves of losses at {width}")
    same(len(set(colours)), 2, f"their colours at {width}")
    heads = b.js("document.querySelector('.runs').textContent")
    check("held-out loss" in heads and "of them for data" not in heads, "columns of what there is alone")


def loops(words, lines):
    def look(b, width):
        same(b.js("document.getElementById('loops-panel').hidden"), False, "the panel of loops")
        text = b.js("document.getElementById('loops').innerText")
        check("24 turns" in text and words in text, f"what a loop keeps: {words} in {text!r}")
        same(b.js("document.querySelector('#loops path')?.getAttribute('d').split('M').length - 1 || 0"), lines, "lines of kept carries")
        b.js("document.querySelector('#loops .go').click()")
        check(words in b.js("document.getElementById('details-body').innerText"), "a loop's step tells the same")
    return look


def log(path):
    with open(path, "w") as f:
        for step in range(1, 401):
            f.write(json.dumps({"step": step, "epoch": (step - 1) // 100, "lr": 0.01, "loss": 2 / step + 0.1 + step % 7 / 50}) + "\n")
            if step % 100 == 0:
                f.write(json.dumps({"epoch": step // 100 - 1, "eval_samples": 10, "eval_loss": 0.4 - step / 2000, "accuracy": 0.9}) + "\n")


def main():
    source = os.path.abspath(sys.argv[3])
    stint = start()
    number = [0]

    def name(text):
        number[0] += 1
        return NAME.format(number[0], text)

    g = graphs.chain(24, "a chain", name)
    for op in g.ops[4:9]:
        op["when"] = op["inputs"][0]
    g.save("graph.json")
    stint("plan", "--graph", "graph.json", "--keep-all", "-o", "plan.json")
    stint("show", "plan.json", "--html", "when.html")
    fits("when.html", branches)
    graphs.chain(24, "a chain", name).save("graph.json")
    for label, how in (("again", ["--budget", "50%"]), ("once", ["--keep-all"])):
        stint("plan", "--graph", "graph.json", *how, "-o", "plan.json")
        stint("show", "plan.json", "--html", f"{label}.html")
        fits(f"{label}.html", names_and_columns(label == "again"))
    whole = stint("show", "plan.json", "--graph", "graph.json")
    check(NAME.format(2, "layers.0.weight").rsplit("/", 1)[0][:9] in whole and ".." not in whole, "names are whole where `show` is piped")
    for budget, words, lines in (("100%", "values inside turns", 0), ("min", "carries in 2 places", 2)):
        stint("compile", os.path.join(source, "tests/models/loops/products/model.onnx"), "--loss", "mse", "--optimizer", "sgd",
              "--budget", budget, "--precision", "fp64", "--portable", "--no-build", "-o", "loop")
        stint("show", "loop", "--html", "loop.html")
        fits("loop.html", loops(words, lines))
        check(words in stint("show", "loop"), f"`show` says: {words}")
        told = json.loads(stint("show", "loop", "--json"))["loops"]
        same([x["phase"] for x in told], ["forward", "backward"], "loops in --json")
    log("log.jsonl")
    stint("show", "log.jsonl", "--html", "log.html")
    fits("log.html", two_colours)
    stint("compile", os.path.join(source, "examples/models/cnn.onnx"), "--loss", "cross-entropy", "--optimizer", "sgd", "--batch", "4",
          "--keep-all", "-o", "step")
    stint("bench", "step", "--steps", "2", "--html", "bench.html")
    fits("bench.html")
    finish()


if __name__ == "__main__":
    main()

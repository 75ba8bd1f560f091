"""The page of a small plan in a real browser: numbers, map, hover, pin, search, links, table, names.

    python3 tests/view/test_page.py STINT FOLDER
"""
import json

import graphs
from browser import Browser
from checks import check, check_drawn, check_quiet, finish, number, page_of, same, start

# Names come from models: none of these may do anything but be shown.
NASTY = ["</script><script>window.hacked = 1</script>", "\"><img src=x onerror='window.hacked=1'>",
         "<!--<script>", "{{data}} ${window.hacked=1}", "back\\slash \"quoted\" 'single' &lt;", "line\u2028break\u2029",
         "\u202eturned", "tab\tand\nnewline", "日本語 Ω 🙂", "javascript:window.hacked=1", "__proto__", " " * 30, "n" * 4000]


def nasty():
    count = [0]

    def decorate(text):
        count[0] += 1
        return f"{text} {NASTY[count[0] % len(NASTY)]}"

    return graphs.chain(24, "model </title><script>window.hacked=1</script> & \"more\"", decorate)


def check_numbers(b, shown, plan):
    for name, key in (("arena", "arena_bytes"), ("peak", "peak_bytes"), ("budget", "budget_bytes"), ("runs", "recomputed_runs")):
        same(number(b, name), shown[key], name)
    same(number(b, "cost"), shown["cost"]["total"], "cost")
    same(number(b, "bound"), shown["cost"]["lower_bound"], "bound")
    for kind, size in shown["at_peak"].items():
        same(number(b, f"peak-{kind}"), size, f"{kind} at the peak")
    same(b.js("window.stint.data.peakStep"), shown["peak_step"], "peak step")
    same(b.js("window.stint.data.step.op"), [s["op"] for s in plan["steps"]], "steps")
    same(b.js("window.stint.data.buffer.offset"), [x["offset"] for x in plan["buffers"]], "offsets")
    same(b.js("window.stint.state().rows"), shown["steps"], "rows of the table")
    shares = b.js("document.getElementById('cards').innerText")
    check(f"{shown['cost']['total'] / shown['cost']['once']:.3f} ×" in shares, f"cost in {shares!r}")


def place_of(b, plan, k):
    """Where on the screen the middle of a buffer lies."""
    x = plan["buffers"][k]
    at = b.js(f"window.stint.place({(x['first_step'] + x['last_step'] + 1) / 2}, {x['offset'] + x['bytes'] / 2})")
    box = b.js("(({x, y}) => ({x, y}))(document.getElementById('canvas').getBoundingClientRect())")
    return at["x"] + box["x"], at["y"] + box["y"]


def check_hover_and_pin(b, plan, names):
    runs, first = {}, {}
    for s, step in enumerate(plan["steps"]):
        runs.setdefault(step["op"], []).append(s)
    lives = {}
    for k, x in enumerate(plan["buffers"]):
        if "tensor" in x:
            lives.setdefault(x["tensor"], []).append(k)
    tensor, mine = next((t, ks) for t, ks in lives.items() if len(ks) > 1)
    for k in mine:
        x, y = place_of(b, plan, k)
        b.mouse("mouseMoved", x, y)
        b.frame()
        same(b.js("window.stint.state().hover.buffer"), k, "buffer under the pointer")
        check(str(plan["buffers"][k]["first_step"] + 1) in b.js("document.getElementById('tip').innerText"), "steps in the tip")
        check(b.js("!document.getElementById('tip').hidden"), "the tip shows")
        check(names[tensor].split()[0] in b.js("document.querySelector('#tip .name').textContent"), "name in the tip")
    b.click(*place_of(b, plan, mine[0]))
    state = b.js("window.stint.state()")
    same(state["pinned"]["buffer"], mine[0], "pinned buffer")
    same(state["lit"]["buffers"], mine, "lifetimes of the tensor")
    with open("graph.json") as f:
        readers = {o["id"] for o in json.load(f)["ops"] if tensor in o["inputs"]}
    same(state["lit"]["steps"], sorted(s for o in readers for s in runs[o]), "steps that read it")
    check("lifetimes" in b.js("document.getElementById('details-body').innerText"), "details")
    check("tensor=" in b.js("location.hash"), "a link to the pinned tensor")
    # wheel and drag move the view; a double click shows everything again
    x, y = place_of(b, plan, mine[0])
    whole = b.js("window.stint.state().view")
    b.mouse("mouseWheel", x, y, deltaX=0, deltaY=-500)
    b.frame()
    near = b.js("window.stint.state().view")
    check(near["x1"] - near["x0"] < 0.9 * (whole["x1"] - whole["x0"]), "the wheel zooms in")
    b.mouse("mousePressed", x, y, button="left", clickCount=1)
    b.mouse("mouseMoved", x - 90, y, button="left", buttons=1)
    b.mouse("mouseReleased", x - 90, y, button="left", clickCount=1)
    b.frame()
    check(b.js("window.stint.state().view")["x0"] > near["x0"] or near["x1"] == whole["x1"], "dragging moves")
    same(b.js("window.stint.state().pinned.buffer"), mine[0], "what is pinned after dragging")
    b.js("document.getElementById('zoom-fit').click()")
    b.frame()
    same(b.js("window.stint.state().view"), whole, "everything in view")
    # keys, from the map
    b.js("document.getElementById('canvas').focus()")
    before = b.js("window.stint.state().pinned.step")
    b.key("ArrowRight")
    same(b.js("window.stint.state().pinned"), {"step": before + 1, "buffer": -1}, "the right arrow")
    b.key("Escape")
    same(b.js("window.stint.state().pinned"), None, "Escape")


def check_search(b, names):
    b.key("/", "/")
    same(b.js("document.activeElement.id"), "search", "the slash's focus")
    b.type("LAYERS.7.")
    b.key("Enter", "\r")
    state = b.js("window.stint.state()")
    check(state["found"] > 0 and state["pinned"], "the search finds and jumps")
    check(b.js("document.querySelectorAll('.tr.found').length") > 0, "matches in the table")
    b.js("document.getElementById('only-found').click()")
    same(b.js("window.stint.state().rows"), state["found"], "only matches")
    b.js("document.getElementById('only-found').click()")
    b.key("Escape")
    same(b.js("document.getElementById('search').value"), "", "Escape clears")
    b.js("window.stint.search('no such name anywhere')")
    check("nothing" in b.js("document.getElementById('search-count').textContent"), "nothing found")
    b.key("Escape")


def check_table(b, shown, plan):
    seen, repeats = set(), []
    for s, step in enumerate(plan["steps"]):
        if step["op"] in seen:
            repeats.append(s)
        seen.add(step["op"])
    again = len(repeats)
    same(b.js("window.stint.data.again.step"), repeats, "steps that are told a reason")
    b.js("document.getElementById('only-again').click()")
    same(b.js("window.stint.state().rows"), again, "recomputed only")
    check("recompute of step" in b.js("document.querySelector('.tr').innerText"), "what a recomputation repeats")
    same(b.js("[...document.querySelectorAll('.tr .why')].filter((e) => /for step|till now/.test(e.textContent)).length"),
         again, "reasons in the table")
    b.js("document.getElementById('only-again').click()")
    b.js("document.querySelectorAll('.thead button')[1].click()")
    costs = b.js("[...document.querySelectorAll('.tr')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)"
                 ".map((r) => Number(r.children[3].textContent))")
    same(costs, sorted(costs, reverse=True), "the dearest first")
    for _ in range(2):
        b.js("document.querySelectorAll('.thead button')[1].click()")
    row = b.js("(({x, y}) => ({x, y}))(document.querySelector('.tr[data-step=\"3\"]').getBoundingClientRect())")
    b.js("document.getElementById('table').scrollIntoView()")
    row = b.js("(({x, y}) => ({x, y}))(document.querySelector('.tr[data-step=\"3\"]').getBoundingClientRect())")
    b.mouse("mouseMoved", row["x"] + 200, row["y"] + 12)
    b.frame()
    same(b.js("window.stint.state().hover"), {"step": 3, "buffer": -1}, "a row under the pointer shows on the map")
    b.click(row["x"] + 200, row["y"] + 12)
    same(b.js("window.stint.state().pinned"), {"step": 3, "buffer": -1}, "a click on a row pins it")
    b.key("Escape")


def main():
    stint = start()
    graph = nasty()
    shown, plan = page_of(stint, graph, "--budget", "50%")
    check(shown["recomputed_runs"] > 0, "a plan that recomputes")
    names = [t["name"] for t in graph.tensors]
    first = open("page.html", "rb").read()
    page_of(stint, graph, "--budget", "50%")
    check(open("page.html", "rb").read() == first, "the same plan gives the same page")
    with Browser() as b:
        b.open("page.html")
        check_quiet(b)
        check_numbers(b, shown, plan)
        check_drawn(b, 20)
        b.screenshot("light.png")
        check_hover_and_pin(b, plan, names)
        check_search(b, names)
        check_table(b, shown, plan)
        b.open("page.html", "#step=12")
        same(b.js("window.stint.state().pinned"), {"step": 11, "buffer": -1}, "a link to a step")
        b.open("page.html", "#search=layers.7.")
        check(b.js("window.stint.state().found") > 0, "a link to a search")
        b.look("dark", scale=2)
        b.open("page.html", "#search=backward&step=40")
        b.frame()
        check_drawn(b, 20)
        b.screenshot("dark.png")
        b.look("light", media="print")
        b.frame()
        b.screenshot("print.png")
        same(b.js("window.hacked"), None, "a name's script ran: window.hacked")
        same(b.js("document.querySelectorAll('img').length"), 0, "markup from a name")
        check(b.js("document.querySelector('#frontier svg circle') !== null"), "the frontier is drawn")
        check_quiet(b)
    finish()


if __name__ == "__main__":
    main()

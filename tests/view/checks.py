"""What the tests of the page share."""
import json
import os
import shutil
import subprocess
import sys

faults = []


def check(ok, what):
    if not ok:
        faults.append(what)
        print("FAILED:", what, file=sys.stderr)


def same(got, want, what):
    check(got == want, f"{what}: {got!r} instead of {want!r}")


def finish():
    print("the page is as it should be" if not faults else f"{len(faults)} faults")
    sys.exit(bool(faults))


def start():
    """STINT FOLDER: the folder is made anew, and worked in."""
    stint, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.chdir(folder)
    return lambda *args: subprocess.run([stint, *args], check=True, stdout=subprocess.PIPE, text=True).stdout


def page_of(stint, graph, *how):
    """Plans the graph, draws the page, and returns what `show --json` says and the plan itself."""
    graph.save("graph.json")
    stint("plan", "--graph", "graph.json", *how, "-o", "plan.json")
    shown = json.loads(stint("show", "plan.json", "--html", "page.html", "--json"))
    with open("plan.json") as f:
        return shown, json.load(f)


def number(browser, name):
    return json.loads(browser.js(f"document.getElementById('{name}').value"))


def check_quiet(browser, page="page.html"):
    """No script error, no console message, no request but the page itself."""
    same(browser.js("document.documentElement.dataset.state"), "ready", "state of the page")
    same(browser.js("document.documentElement.dataset.error || null"), None, "script error")
    same(browser.problems, [], "messages of the browser")
    strange = [u for u in browser.requests if not u.startswith(("file://" + os.path.abspath(page), "about:", "data:"))]
    same(strange, [], "requests")


def check_drawn(browser, least_colours):
    """The map's pixels: more than the ground."""
    colours = browser.js("""(() => {
        const map = document.getElementById("canvas"), seen = new Set();
        const copy = new OffscreenCanvas(map.width, map.height).getContext("2d", { willReadFrequently: true });
        copy.drawImage(map, 0, 0);
        const pixels = new Uint32Array(copy.getImageData(0, 0, map.width, map.height).data.buffer);
        for (let i = 0; i < pixels.length; i += 7) seen.add(pixels[i]);
        return seen.size;
    })()""")
    check(colours >= least_colours, f"only {colours} colours on the map")

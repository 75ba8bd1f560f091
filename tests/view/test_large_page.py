"""The page of a plan with more than 10,000 steps opens, draws, scrolls and searches.

    python3 tests/view/test_large_page.py STINT FOLDER
"""
import os

import graphs
from browser import Browser
from checks import check, check_drawn, check_quiet, finish, number, page_of, same, start


def main():
    stint = start()
    shown, plan = page_of(stint, graphs.chain(3000), "--segments", "50")
    check(shown["steps"] > 10000, f"{shown['steps']} steps")
    size = os.path.getsize("page.html")
    check(size < 4 << 20, f"a page of {size} bytes")
    with Browser() as b:
        b.open("page.html")
        check_quiet(b)
        check_drawn(b, 10)
        same(number(b, "arena"), shown["arena_bytes"], "arena")
        same(b.js("window.stint.state().rows"), shown["steps"], "rows")
        rows = b.js("document.querySelectorAll('.tr').length")
        check(0 < rows < 200, f"{rows} rows exist at once")
        b.js("document.getElementById('scroll').scrollTop = 1e9")
        b.frame()
        check(b.js(f"document.querySelector('.tr[data-step=\"{shown['steps'] - 1}\"]') !== null"), "the last row")
        b.js("window.stint.search('layers.1234.')")
        b.frame()
        check(b.js("window.stint.state().found") >= 4, "the search finds")
        b.screenshot("search.png", whole=False)
        b.key("Escape")
        for _ in range(12):
            b.mouse("mouseWheel", 700, 600, deltaX=0, deltaY=-300)
            b.frame()
        view = b.js("window.stint.state().view")
        check(view["x1"] - view["x0"] < shown["steps"] / 20, "the wheel zooms in")
        check_drawn(b, 10)
        b.screenshot("near.png", whole=False)
        check_quiet(b)
        print(f"{shown['steps']} steps, {len(plan['buffers'])} buffers, {size} bytes; drawn in",
              f"{b.js('window.stint.state().drawMs'):.0f} ms, ready after {b.js('window.stint.startMs'):.0f} ms")
    finish()


if __name__ == "__main__":
    main()

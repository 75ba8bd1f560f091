"""A headless Chromium, driven over its debugging pipe (NUL-ended JSON): no network, no packages."""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 120  # seconds for one answer: machines that run tests are busy


class BrowserError(Exception):
    pass


def program():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    raise BrowserError("no Chromium here; tools/setup.sh tests installs it")


class Browser:
    """One page. `problems` collects script errors, console errors and requests to anywhere."""

    def __init__(self, width=1440, height=1000):
        self.size = (width, height)
        self.problems = []
        self.requests = []
        self.buffer = b""
        self.number = 0
        self.answers = {}
        self.loaded = False
        self.session = None
        self.folder = tempfile.mkdtemp(prefix="stint-view-")

    def __enter__(self):
        to_child, self.write_end = os.pipe()
        self.read_end, from_child = os.pipe()

        def place():  # the child reads 3 and writes 4; copies first, lest one overwrite the other
            a, b = os.dup(to_child), os.dup(from_child)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-extensions", "--hide-scrollbars", "--force-color-profile=srgb",
             "--force-prefers-reduced-motion", "--remote-debugging-pipe", f"--user-data-dir={self.folder}",
             "--window-size=%d,%d" % self.size, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=place, start_new_session=True)
        os.close(to_child)
        os.close(from_child)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.look()
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- the protocol ---

    def message(self, until):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0, until - time.monotonic()))
            if not ready:
                return None
            got = os.read(self.read_end, 1 << 16)
            if not got:
                raise BrowserError("the browser ended")
            self.buffer += got
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def heed(self, m):
        """Keeps what a message tells."""
        about = m.get("params", {})
        if "id" in m:
            self.answers[m["id"]] = m
        elif m["method"] == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.problems.append("exception: " + details.get("exception", {}).get("description", details["text"]))
        elif m["method"] == "Runtime.consoleAPICalled" and about["type"] in ("error", "assert", "warning"):
            self.problems.append(f"console: {about['args']}")
        elif m["method"] == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"log: {about['entry']['text']}")
        elif m["method"] == "Page.javascriptDialogOpening":
            self.problems.append(f"dialog: {about['message']}")
        elif m["method"] == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif m["method"] == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        until = time.monotonic() + PATIENCE
        while self.number not in self.answers:
            m = self.message(until)
            if m is None:
                raise BrowserError(f"no answer to {method}")
            self.heed(m)
        answer = self.answers.pop(self.number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        return answer["result"]

    # --- what a person does ---

    def look(self, scheme="light", media="", scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=self.size[0], height=self.size[1],
                  deviceScaleFactor=scale, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, path, fragment=""):
        """Loads the page and waits until its script says that it is ready, or failed."""
        self.loaded = False
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url="file://" + os.path.abspath(path) + fragment)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self.js("document.documentElement?.dataset.state") in ("ready", "failed"):
                return
            m = self.message(time.monotonic() + 0.05)
            if m:
                self.heed(m)
        raise BrowserError("the page did not become ready")

    def js(self, expression):
        """The value of an expression; promises are awaited."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise BrowserError(f"{expression}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def frame(self):
        """Waits until what was asked for is drawn."""
        self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.frame()

    def key(self, key, text=None, **more):
        code = {"Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37, "ArrowUp": 38, "ArrowDown": 40}.get(key, 0)
        text = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code, **more)
        self.frame()

    def type(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

"""Chromium without a window, driven as somebody does who looks at a page.

It is asked through a pipe (Chrome DevTools protocol); its keys and clicks come
in where those of a person do. It reaches no host but this one.
"""
import base64
import json
import os
import shutil
import subprocess
import time

PATIENCE = 60
# The first is made to run without a window, and takes half of the work.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser",
         "google-chrome")


def find_browser():
    """Its path; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """Chromium without a window, and one page in it."""

    def __init__(self, program, home, album=None):
        self.album = album
        to_read, self.to = os.pipe()
        self.answers, to_write = os.pipe()
        copies = [os.dup(to_read), os.dup(to_write)]  # neither is 3 or 4
        while min(copies) < 5:
            copies = [os.dup(fd) for fd in copies]

        def place():
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", "--user-data-dir=" + home,
             "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync",
             "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, "
             "EXCLUDE 127.0.0.1",
             "--window-size=900,600", "about:blank"],
            preexec_fn=place, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.n, self.session, self.rest, self.errors = 0, None, b"", []
        self.before = ""  # a script that runs in each page before its own

    def receive(self):
        while b"\0" not in self.rest:
            data = os.read(self.answers, 1 << 20)
            if not data:
                raise EOFError("the browser is gone")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(message)
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(message["params"]["exceptionDetails"])
        return message

    def ask(self, method, **params):
        self.n += 1
        message = {"id": self.n, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.n:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]

    def open_tab(self):
        """A new one, without a page."""
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")
        self.session = self.ask("Target.attachToTarget", flatten=True,
                                targetId=target["targetId"])["sessionId"]
        self.ask("Runtime.enable")
        self.ask("Page.enable")
        self.ask("Emulation.setFocusEmulationEnabled", enabled=True)
        if self.before:
            self.ask("Page.addScriptToEvaluateOnNewDocument",
                     source=self.before)

    def open(self, path):
        """A file, or an http address, in a new tab."""
        url = path if path.startswith("http:") else "file://" + path
        self.open_tab()
        self.ask("Page.navigate", url=url)
        end = time.monotonic() + PATIENCE
        while self.tell("document.readyState + location.protocol") != \
                "complete" + url.partition(":")[0] + ":":
            if time.monotonic() > end:
                raise RuntimeError("the page does not come: " + path)
            time.sleep(0.01)

    def tell(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression,
                          returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def wait(self, expression, seconds=PATIENCE):
        """Until it is true; what it was at the end. It says who waited in
        vain."""
        end = time.monotonic() + seconds
        while not self.tell(expression):
            if time.monotonic() >= end:
                print("# not in %s s: %s" % (seconds, expression), flush=True)
                return self.tell(expression)
            time.sleep(0.01)
        return True

    def key(self, name, text=None):
        self.ask("Input.dispatchKeyEvent", key=name, type="keyDown",
                 **({"text": text} if text else {}))
        self.ask("Input.dispatchKeyEvent", key=name, type="keyUp")

    def write(self, text):
        for letter in text:
            self.key(letter, letter)

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def touch(self, kind, *points):
        self.ask("Input.dispatchTouchEvent", type=kind, touchPoints=[
            {"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)])

    def picture(self, name):
        if self.album:
            data = self.ask("Page.captureScreenshot")["data"]
            with open(os.path.join(self.album, name + ".png"), "wb") as file:
                file.write(base64.b64decode(data))

    def close(self):
        self.session = None
        try:
            self.ask("Browser.close")
        except (EOFError, OSError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


# ---- flame graphs ------------------------------------------------------------

def boxes(b):
    """What is drawn, by name; equal names are numbered."""
    found = {}
    for box in b.tell("cpprof.shown()"):
        name = box["name"]
        while name in found:
            name += "'"
        found[name] = box
    return found


def click_box(b, name):
    box = boxes(b)[name]
    b.click(box["x"] + box["width"] / 2, box["y"] + 8)


# ---- the page of `cpprof http` -------------------------------------------------

def search(b, expression):
    """Types it; what is found of the whole of it."""
    b.write("/")
    b.write(expression)
    b.wait("document.getElementById('found').dataset.of === %s" %
           json.dumps(expression), 20)
    return text(b, "#found")


def ready(b):
    return b.wait("window.cpprof && document.getElementById('main')"
                  ".dataset.state === 'ready'", 20)


def text(b, selector):
    return b.tell("document.querySelector(%s).textContent" %
                  json.dumps(selector))

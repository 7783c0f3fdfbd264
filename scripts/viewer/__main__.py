"""Drives the page that `--format html` writes in chromium, from file://: hover links box and text, keys step through pages, and
hostile text stays text. Without chromium it says so and ends with 0.

    python3 scripts/viewer [--program target/debug/docparse]
"""

import argparse
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/attack"))
from bombs import one_page  # noqa: E402

HOSTILE = [
    b"</script><script>document.title='broken'</script>",
    b"<img src=x onerror=document.title='broken'>",
    b"\"><svg onload=document.title='broken'> --> ]]> <!--",
]


class Browser:
    """Chromium over its debugging pipe: JSON messages that end in NUL on file descriptors 3 and 4."""

    def __init__(self, program, folder):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def descriptors():
            high = [os.dup(theirs_in), os.dup(theirs_out)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                   f"--user-data-dir={folder}", "--window-size=1400,1000", "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=descriptors, close_fds=False, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.input, self.output = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self.numbers, self.session, self.buffer, self.events = itertools.count(1), None, b"", []

    def ask(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.output.write(json.dumps(message).encode() + b"\0")
        self.output.flush()
        while True:
            answer = self.message()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def message(self):
        while b"\0" not in self.buffer:
            part = os.read(self.input.fileno(), 1 << 16)
            if not part:
                raise RuntimeError("chromium has ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, address):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Network", "Page", "Log"):
            self.ask(f"{domain}.enable")
        self.ask("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && document.documentElement.classList.contains('js')")

    def value(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while not self.value(expression):
            if time.monotonic() > end:
                sys.exit(f"FAILED: not true within {seconds} s: {expression}")
            time.sleep(0.05)

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def hover(self, selector):
        middle = ("(() => { const e = document.querySelector(%s); e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
                  " return [b.x + b.width / 2, b.y + b.height / 2]; })()" % json.dumps(selector))
        x, y = self.value(middle)
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def close(self):
        self.process.kill()
        self.process.wait()


def converted(program, base, source):
    options = ["--model", "none", "--drafts", "text-layer", "-f", "html", "-q"]
    subprocess.run([program, "convert", source, "-o", base / "out", *options], check=True)
    return base / "out" / source.stem / "document.html"


def check_pages(browser):
    count = browser.value("document.querySelectorAll('section').length")
    assert count > 1, "the fixture has several pages"
    shown = "[...document.querySelectorAll('section')].filter(s => getComputedStyle(s).display !== 'none').map(s => s.dataset.page).join()"
    for key, page in (("ArrowRight", 2), ("ArrowLeft", 1), ("End", count), ("Home", 1), ("PageDown", 2), ("PageUp", 1)):
        browser.key(key)
        browser.until(f"{shown} === '{page}' && location.hash === '#page-{page}'")
    browser.key("ArrowDown")
    browser.until("document.activeElement.matches('section.here article:first-child')")
    browser.key("ArrowDown")
    browser.until("document.querySelector('section.here g.box.on').dataset.element === document.activeElement.dataset.element")


def check_hover(browser):
    first, second = browser.value("[...document.querySelectorAll('section.here article')].slice(0, 2).map(a => a.dataset.element)")
    browser.hover(f"section.here article[data-element={first}]")
    browser.until(f"document.querySelector('g.box.on')?.dataset.element === '{first}'")
    browser.hover(f"section.here g.box[data-element={second}]")
    browser.until(f"document.querySelector('article.on')?.dataset.element === '{second}'")
    browser.until("document.querySelectorAll('.on').length === 2")
    picture = browser.value("(() => { const b = document.querySelector('section.here image').getBoundingClientRect(); return b.width; })()")
    assert picture > 100, f"the page's picture is {picture} wide"


def check_hostile(browser):
    text = browser.value("document.querySelector('main').innerText")
    assert "<img src=x" in text and "</script>" in text, f"the text is not shown: {text!r}"
    assert browser.value("document.title") != "broken"
    assert browser.value("document.querySelectorAll('article img, article script, article svg').length") == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/debug/docparse")
    options = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        print("SKIPPED: no chromium is installed")
        return
    with tempfile.TemporaryDirectory(prefix="docparse-viewer-") as temporary:
        base = pathlib.Path(temporary)
        lines = b" ".join(b"1 0 0 1 40 %d Tm (%s) Tj" % (700 - 60 * n, line) for n, line in enumerate(HOSTILE))
        (base / "hostile.pdf").write_bytes(one_page(b"BT /F 9 Tf " + lines + b" ET"))
        usual = converted(options.program, base, ROOT / "fixtures/pdf/report.pdf")
        hostile = converted(options.program, base, base / "hostile.pdf")
        browser = Browser(chromium, base / "profile")
        try:
            browser.open(usual.as_uri())
            check_pages(browser)
            check_hover(browser)
            browser.open(hostile.as_uri())
            check_hostile(browser)
            faults = [event for event in browser.events
                      if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")]
            asked = {event["params"]["request"]["url"].split(":")[0] for event in browser.events
                     if event.get("method") == "Network.requestWillBeSent"}
            assert not faults, faults[:3]
            assert asked <= {"file", "data", "about"}, asked
        finally:
            browser.close()
    print("ok: keys, hover, picture, hostile text, nothing fetched")


if __name__ == "__main__":
    main()

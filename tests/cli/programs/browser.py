#!/usr/bin/env python3
"""browser.py PAGE [WIDTH|paper…]: opens a page in headless Chromium at these widths, or as it is printed, and prints what is wrong with it.

Ends 0 if nothing is, 1 if something is, 77 if there is no Chromium. With SHOTS=FOLDER it leaves WIDTH.png there.
The browser is spoken to through its DevTools pipe: JSON texts that end with a zero byte.
"""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PAPER = 718  # pixels between the margins of A4

LOOK = r"""(() => {
  const wrong = [], box = e => e.getBoundingClientRect(), said = e => e.textContent.trim().slice(0, 60);
  const page = document.documentElement;
  if (page.scrollWidth > window.innerWidth) wrong.push(`the page is ${page.scrollWidth} wide in ${window.innerWidth}`);
  for (const e of document.querySelectorAll('section, figure, .tile, h1, h2, h3, p, li, dd, dt'))
    if (e.scrollWidth > e.clientWidth + 1 && (matchMedia('print').matches || !e.querySelector('table.runs'))) wrong.push(`cut off: ${e.tagName} "${said(e)}"`);
  for (const e of document.images) if (!e.naturalWidth) wrong.push(`not shown: ${e.alt}`);
  return {wrong, figures: document.images.length};
})()"""


class Browser:
    def __init__(self, program, home):
        to_read, self.to = os.pipe()
        self.of, to_write = os.pipe()

        def become():
            for fd, number in ((os.dup2(to_read, 10), 3), (os.dup2(to_write, 11), 4)):
                os.dup2(fd, number)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-proxy-server",
             "--disable-background-networking", "--disable-extensions", f"--user-data-dir={home}", "--remote-debugging-pipe"],
            preexec_fn=become, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": home})
        os.close(to_read)
        os.close(to_write)
        self.left, self.number, self.events = b"", 0, []

    def read(self):
        while b"\0" not in self.left:
            piece = os.read(self.of, 1 << 20)
            if not piece:
                sys.exit("the browser has ended")
            self.left += piece
        text, self.left = self.left.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            got = self.read()
            if got.get("id") == self.number:
                if "error" in got:
                    sys.exit(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def wait(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.read())

    def end(self):
        self.call("Browser.close")
        self.process.wait()


def look(browser, url, name):
    width = PAPER if name == "paper" else int(name)
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.call(f"{domain}.enable", session)
    browser.call("Emulation.setDeviceMetricsOverride", session, width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    browser.call("Emulation.setEmulatedMedia", session, media="print" if name == "paper" else "")
    browser.events.clear()
    browser.call("Page.navigate", session, url=url)
    browser.wait("Page.loadEventFired")
    seen = browser.call("Runtime.evaluate", session, expression=LOOK, returnByValue=True)
    if "exceptionDetails" in seen:
        sys.exit(f"the look at the page failed: {seen['exceptionDetails']}")
    found = seen["result"]["value"]
    for event in browser.events:
        params = event.get("params", {})
        if event.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            found["wrong"].append(f"console: {json.dumps(params)[:200]}")
        if event.get("method") == "Network.requestWillBeSent" and params["request"]["url"] != url and not params["request"]["url"].startswith("data:"):
            found["wrong"].append(f"request: {params['request']['url']}")
    if "SHOTS" in os.environ:
        shot = browser.call("Page.captureScreenshot", session, captureBeyondViewport=True)["data"]
        pathlib.Path(os.environ["SHOTS"], f"{name}.png").write_bytes(base64.b64decode(shot))
    browser.call("Target.closeTarget", targetId=target)
    return found


def main():
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        print("there is no chromium")
        return 77
    url = pathlib.Path(sys.argv[1]).resolve().as_uri()
    bad = 0
    with tempfile.TemporaryDirectory() as home:
        browser = Browser(program, home)
        for name in sys.argv[2:] or ["1280", "400", "paper"]:
            found = look(browser, url, name)
            print(f"{name}: {found['figures']} figures, {len(found['wrong'])} faults")
            for each in found["wrong"]:
                print(f"  {each}")
            bad += len(found["wrong"])
        browser.end()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

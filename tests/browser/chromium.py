"""A page in headless Chromium, driven through its debugging pipe: keys and clicks as a reader's, no driver needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SETTINGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=IsolateSandboxedIframes",  # a frame in a process of its own would need a session of its own
    "--remote-debugging-pipe",
]
KEYS = {"Enter": (13, "\r"), " ": (32, " "), "Tab": (9, ""), "Backspace": (8, "")}
"""Key -> its code, and the text that it types."""
SECONDS = 30
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]  # neither stands at 3 or 4 any more
for place, end in zip((3, 4), ends):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The debugging pipe of Chromium stands at the file descriptors 3 and 4."""


def chromium() -> str:
    """Return the browser of these tests."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found
    return found


class Browser:
    """One tab, and all that its page said on the console."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive, self._left, self._number, self._session = send, receive, b"", 0, None
        self.said: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        return self._until(lambda found: found.get("id") == self._number)["result"]

    def _until(self, wanted) -> dict[str, Any]:
        while True:
            while b"\0" not in self._left:
                part = os.read(self._receive, 2**16)
                assert part, "the browser is gone"
                self._left += part
            text, self._left = self._left.split(b"\0", 1)
            found = json.loads(text)
            if found.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                self.said.append(json.dumps(found["params"]))
            if wanted(found):
                assert "error" not in found, found
                return found

    def open(self, path: Path | str, *, width: int = 1200, height: int = 900, scripts: bool = True) -> None:
        """Load a file or an address and wait for it."""
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=path if isinstance(path, str) else path.as_uri())
        self._until(lambda found: found.get("method") == "Page.loadEventFired")

    def run(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = SECONDS) -> Any:
        """Return the value of an expression in the page once it is truthy: pages that fetch are whole at no event."""
        until = time.monotonic() + seconds
        plain = f"(() => {{ const found = {expression}; return found instanceof Node ? true : found }})()"
        while not (found := self.run(plain)):
            assert time.monotonic() < until, f"{expression} stays {found!r}: {self.run('document.body.innerText')}"
            time.sleep(0.1)
        return found

    def picture(self, path: Path) -> None:
        """Write what the page shows to a PNG file."""
        found = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))

    def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        found = f"document.querySelector({json.dumps(selector)})"
        place = self.run(
            f"{found}.scrollIntoView({{block: 'center'}}), "
            "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
            f"({found}.getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", buttons=1, clickCount=1
            )

    def type(self, text: str) -> None:
        """Type text into the element that has the focus, a key at a time."""
        for letter in text:
            self.call("Input.dispatchKeyEvent", type="char", text=letter)

    def press(self, key: str) -> None:
        """Press a key such as "Tab" or "Enter"."""
        code, text = KEYS[key]
        typed = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **typed)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it."""
    to_it, we_write = os.pipe()
    we_read, from_it = os.pipe()

    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCH, str(to_it), str(from_it), chromium(), *SETTINGS, f"--user-data-dir={folder}"],
        pass_fds=(to_it, from_it), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(to_it)
    os.close(from_it)
    try:
        yield Browser(we_write, we_read)
    finally:
        os.close(we_write)  # the browser ends when its pipe does
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(we_read)

"""A headless Chromium for tests, spoken to through its DevTools: open, evaluate, keys, mouse, pictures; what went wrong there."""

import asyncio
import base64
import json
import pathlib
import shutil
import subprocess
import threading
import time

import pytest


def chromium():
    """Its path; the test is skipped with a clear line where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no chromium is installed: the page was not looked at in a browser")
    return found


FLAGS = [
    "--headless", "--no-sandbox", "--hide-scrollbars", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--mute-audio",
    "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-default-apps", "--disable-features=Translate,MediaRouter,OptimizationHints", "--no-default-browser-check",
]  # fmt: skip


class Browser:
    """One page; `errors` are its console's errors and exceptions, `requests` the addresses that it asked for."""

    def __init__(self, folder, size=(900, 560)):
        websockets = pytest.importorskip("websockets")
        flags = [*FLAGS, f"--window-size={size[0]},{size[1]}", f"--user-data-dir={folder}", "--remote-debugging-port=0"]
        self._process = subprocess.Popen(
            [chromium(), *flags, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        port_file, deadline = pathlib.Path(folder) / "DevToolsActivePort", time.monotonic() + 30
        while not (port_file.exists() and len(port_file.read_text().splitlines()) == 2):
            assert time.monotonic() < deadline + 60 and self._process.poll() is None, "chromium does not start"
            time.sleep(0.05)
        port, path = port_file.read_text().splitlines()
        self.errors, self.requests, self._answers, self._number = [], [], {}, 0
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._socket = self._wait(websockets.connect(f"ws://127.0.0.1:{port}{path}", max_size=None))
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop)
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _wait(self, work):
        return asyncio.run_coroutine_threadsafe(self._as(work), self._loop).result(240)

    @staticmethod
    async def _as(work):
        return await work

    async def _listen(self):
        async for text in self._socket:
            told = json.loads(text)
            what, given = told.get("method"), told.get("params", {})
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
            elif what == "Runtime.exceptionThrown":
                self.errors.append(str(given["exceptionDetails"].get("exception", given["exceptionDetails"])))
            elif what == "Runtime.consoleAPICalled" and given["type"] == "error":
                self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in given["args"]))
            elif what == "Log.entryAdded" and given["entry"]["level"] == "error":
                self.errors.append(given["entry"]["text"])
            elif what == "Network.requestWillBeSent":
                self.requests.append(given["request"]["url"])
            elif what == "Network.webSocketCreated":
                self.requests.append(given["url"])

    def call(self, method, **given):
        """A command of the DevTools protocol."""

        async def ask():
            self._number += 1
            answer = self._answers[self._number] = self._loop.create_future()
            message = {"id": self._number, "method": method, "params": given}
            await self._socket.send(json.dumps(message | ({"sessionId": self._session} if self._session else {})))
            return await answer

        told = self._wait(ask())
        assert "error" not in told, f"{method}: {told.get('error')}"
        return told["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("location.href !== 'about:blank' && document.readyState !== 'loading' && document.body !== null")

    def ask(self, script):
        """The value of an expression of the page."""
        told = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def until(self, script, seconds=150.0):
        """Wait until an expression, or a function of Python, is true."""
        deadline = time.monotonic() + seconds
        while True:
            value = script() if callable(script) else self.ask(script)
            if value:
                return value
            assert time.monotonic() < deadline, f"not within {seconds} s: {script}; errors: {self.errors}"
            time.sleep(0.05)

    def key(self, name, down):
        self.call("Input.dispatchKeyEvent", type="keyDown" if down else "keyUp", key=name, text=name if down else "")

    def mouse(self, kind, x, y, modifiers=0):
        """mousePressed, mouseMoved, mouseReleased of the left button; modifiers: 8 is shift."""
        given = {"button": "left", "buttons": 1, "clickCount": 1, "modifiers": modifiers}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **given)

    def picture(self, path):
        """A screenshot, as an array (rows, columns, 3), kept as a file."""
        import io

        import numpy as np

        image = pytest.importorskip("PIL.Image")
        data = base64.b64decode(self.call("Page.captureScreenshot")["data"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return np.asarray(image.open(io.BytesIO(data)).convert("RGB"), float)

    def close(self):
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._loop.call_soon_threadsafe(self._loop.stop)

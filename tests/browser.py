"""The browser of a reader, Chromium, and node, for tests of the script that pages have, and of the
page of ``gaussnoise app``.
"""

import base64
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gaussnoise
from gaussnoise.files.disk import exclusive_lock

READY = """[attributes.sex]
categories = ["F", "M"]

[attributes.age]
edges = [0, 18, 65, 120]

[[workload]]
of = ["sex", "age"]

[plan]
table = "rows.csv"
rho = 0.25
"""  # a schema file from which the page can release
SCRIPTS = Path(gaussnoise.__file__).parent / "tables/release/report/templates"
_NODE = """
const { verify } = require(process.argv[1]);
const files = (folder) =>
  new Map(Object.entries(folder).map(([k, x]) => [k, new Uint8Array(Buffer.from(x, "base64"))]));
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const steps = verify(files(JSON.parse(line)));
  let step;
  do step = steps.next(); while (!step.done);
  console.log(JSON.stringify(step.value.lines));
});
"""


def program(*names):
    """The first of these programs that is there; without one, the test is skipped."""
    found = [path for name in names if (path := shutil.which(name))]
    return found[0] if found else pytest.skip(f"needs {' or '.join(names)}")


def until(tab, condition):
    """Wait until a condition holds, a minute at most; the page goes on meanwhile."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        tab.wait_for_timeout(5)


def as_texts(folder):
    """All files of a folder in base64, by path."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): base64.b64encode(path.read_bytes()).decode()
        for path in files
    }


def node_lines(folders):
    """What the script says of folders (files in base64, by path), in node."""
    command = [program("node"), "-e", _NODE, str(SCRIPTS / "verifier.js")]
    text = "".join(json.dumps(folder) + "\n" for folder in folders)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Chromium:
    """A tab of Chromium without a window and without a network, steered through two pipes."""

    def __init__(self, at):
        ours, theirs = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (ours[0], theirs[1])]

        def as_expected():  # Chromium reads from 3 and writes to 4
            for end, number in zip(ends, (3, 4), strict=True):
                os.dup2(end, number)

        command = [program("chromium", "chromium-browser", "google-chrome"), "--headless"]
        command += ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        command += ["--remote-debugging-pipe", f"--user-data-dir={at}"]
        self.process = subprocess.Popen(
            command, close_fds=False, preexec_fn=as_expected, stderr=subprocess.DEVNULL
        )
        for end in (*ends, ours[0], theirs[1]):
            os.close(end)
        self.to, self.back = os.fdopen(ours[1], "wb"), os.fdopen(theirs[0], "rb")
        self.rest, self.count, self.session = b"", 0, None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = found["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session = None
        self.ask("Browser.close")
        self.to.close()
        self.back.close()
        self.process.wait(20)

    def ask(self, method, **given):
        """The answer to a command of the DevTools protocol."""
        self.count += 1
        session = {"sessionId": self.session} if self.session else {}
        message = {"id": self.count, "method": method, "params": given, **session}
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        while True:
            while b"\0" not in self.rest:
                more = os.read(self.back.fileno(), 2**16)
                assert more, "Chromium ended"
                self.rest += more
            one, _, self.rest = self.rest.partition(b"\0")
            answer = json.loads(one)
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]

    def run(self, script):
        """The value of a script, or of its promise."""
        found = self.ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, condition):
        """Wait until a condition holds: a minute at most."""
        end = time.monotonic() + 60
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, self.run("document.body.innerText.slice(0, 2000)")
            time.sleep(0.005)

    def open(self, path):
        """Open a page, and wait until it is read, which is before its script is at its end."""
        self.ask("Page.navigate", url=Path(path).resolve().as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def lines(self, folders, at):
        """What the script says of folders (files in base64, by path), in a page at a path."""
        script = (SCRIPTS / "verifier.js").read_text(encoding="utf-8")
        page = f"<script>{script}</script><script type='x' id='x'>{json.dumps(folders)}</script>"
        Path(at).write_text(f"<!DOCTYPE html><meta charset='utf-8'>{page}", encoding="utf-8")
        self.open(at)
        return self.run(
            """JSON.parse(document.getElementById("x").textContent).map((folder) => {
                const bytes = (x) => Uint8Array.from(atob(x), (c) => c.charCodeAt(0));
                const files = Object.entries(folder).map(([name, x]) => [name, bytes(x)]);
                const steps = verifier.verify(new Map(files));
                let step;
                do step = steps.next(); while (!step.done);
                return step.value.lines;
            })"""
        )


class Server:
    """``gaussnoise app`` on a folder."""

    def __init__(self, folder, log):
        self.folder, self.log = folder, log
        command = [sys.executable, "-m", "gaussnoise", "app", str(folder), "--no-open"]
        with log.open("ab") as said:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=said, text=True, start_new_session=True
            )
        self.process.stdout.readline()
        self.address = self.process.stdout.readline().strip()
        self.root = self.address.partition("/?")[0]

    def signal(self, number):
        """Send its task a signal, if one is running, and return whether one is."""
        with contextlib.suppress(FileNotFoundError):
            process = json.loads((self.folder / ".task" / "task.json").read_bytes())["process"]
            with exclusive_lock(self.folder / ".task" / "said") as is_over:
                if process is not None and not is_over:
                    os.kill(process, number)
                    return True
        return False

    def stop(self):
        """End it as Ctrl-C does, and return its last line."""
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=60)[0].splitlines()[-1]

    def kill(self, *, whole=True):
        """Kill it, and its task too if ``whole``."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        if whole:
            self.signal(signal.SIGKILL)


def connected(tab):
    """Wait until the page hears of clicks."""
    tab.wait_for_function("window.socket?.connected")


def entered(tab, server, page=""):
    """Open the address that lets a browser in, and then a page of the server."""
    tab.goto(server.address)
    connected(tab)  # while the first page loads itself again, no other can be opened
    if page:
        tab.goto(f"{server.root}/{page}")

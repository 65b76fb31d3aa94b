"""Runs kubectl on a control-plane node, or another program that only reads on any machine.

over_ssh.py sends this self-contained file there. It needs Python 3.9. Its input is a line BEGIN (earlier lines are
noise of sudo), then one line of JSON: {"calls": [{"argv", "stdin", "may_fail", "timeout_s", "program"}], "stream":
bool}. For calls it prints BEGIN at its start, and the packed answers after END. A stream is the program's own output,
until the program or this program's input ends.
"""

import base64
import json
import os
import subprocess
import sys
import threading
import zlib
from typing import Any

BEGIN = "pai-install-begin"
END = "pai-install-end"
KUBECTL = ["/usr/local/bin/kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf"]
LIMIT = 256 << 20
MISSING = "kubectl is not installed"


def answer(call: "dict[str, Any]") -> "dict[str, Any]":
    """How one kubectl ended. rc: None when it was stopped after its time, or said more than LIMIT bytes."""
    try:
        done = subprocess.run(
            words(call),
            input=call["stdin"].encode(),
            capture_output=True,
            timeout=call["timeout_s"],
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"rc": None, "out": "", "err": f"no answer within {call['timeout_s']:g} s"}
    except OSError as error:
        return {"rc": 127, "out": "", "err": f"{MISSING}: {error}"}
    if len(done.stdout) > LIMIT:
        return {"rc": None, "out": "", "err": f"the answer has more than {LIMIT >> 20} MiB"}
    return {"rc": done.returncode, "out": text(done.stdout), "err": text(done.stderr)[-8000:]}


def words(call: "dict[str, Any]") -> "list[str]":
    """The command line of a call."""
    found: list[str] = (call["program"] or KUBECTL) + call["argv"]
    return found


def text(output: bytes) -> str:
    """Output as text, whatever its bytes are."""
    return output.decode("utf-8", "replace")


def answers(calls: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """The answers in order, up to the first failure of a call that may not fail."""
    found = []
    for call in calls:
        found.append(answer(call))
        if found[-1]["rc"] != 0 and not call["may_fail"]:
            break
    return found


def stream(call: "dict[str, Any]") -> int:
    """Passes kubectl's output through. Ends kubectl at the end of our input, because the reader has closed it."""
    child = subprocess.Popen(words(call), stdin=subprocess.DEVNULL)
    threading.Thread(target=end_with_input, args=(child,), daemon=True).start()
    return child.wait()


def end_with_input(child: "subprocess.Popen[bytes]") -> None:
    """Ends the child at the end of our input."""
    while os.read(0, 65536):
        pass
    child.terminate()


def read_line() -> bytes:
    """One line of input, without reading ahead."""
    found = bytearray()
    while not found.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            break
        found += byte
    return bytes(found)


def read_request() -> "dict[str, Any]":
    """The request behind the line BEGIN."""
    while True:
        line = read_line()
        if not line:
            raise SystemExit("no request came")
        if line.strip() == BEGIN.encode():
            break
    size = int(read_line())
    data = b""
    while len(data) < size:
        part = os.read(0, min(size - len(data), 1 << 20))
        if not part:
            raise SystemExit("the request was incomplete")
        data += part
    request: dict[str, Any] = json.loads(data)
    return request


def say(line: str) -> None:
    """Prints a line now."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Executes the request."""
    request = read_request()
    if request["stream"]:
        return stream(request["calls"][0])
    say(BEGIN)
    packed = zlib.compress(json.dumps(answers(request["calls"])).encode(), 1)
    say(END + base64.b64encode(packed).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A person's browser at a notebook in the console: cookies, requests, and the WebSocket of a kernel."""

from __future__ import annotations

import json
import re
import ssl
import uuid
from dataclasses import dataclass, field
from typing import Any

import httpx2
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

PORT = 8444


@dataclass
class NotebookBrowser:
    """host: of the console. trust: its authority alone. cookies: name -> value, each for all paths."""

    host: str
    trust: ssl.SSLContext
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"https://{self.host}"

    @property
    def pages(self) -> str:
        return f"{self.origin}:{PORT}"

    def ask(self, method: str, address: str, **words: Any) -> httpx2.Response:
        """The answer. Cookies are kept and sent as a browser does, whatever the port."""
        found = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}
        headers = {**found, **words.pop("headers", {})}
        answer = httpx2.request(
            method, address, headers=headers, verify=self.trust, timeout=60, trust_env=False, **words
        )
        for name, value in answer.cookies.items():
            self.cookies[name] = value
        return answer

    def sign_in(self, name: str, password: str) -> None:
        """By the form of the console."""
        answer = self.send(f"{self.origin}/login", username=name, password=password, **{"from": "/jobs"})
        assert answer.status_code == 303, answer.text

    def set_password(self, link: str, password: str) -> None:
        """By the link of an administrator."""
        answer = self.send(link, password=password, again=password)
        assert answer.status_code == 200, answer.text

    def send(
        self, address: str, files: dict[str, tuple[str, bytes]] | None = None, /, **fields: str
    ) -> httpx2.Response:
        """A page with a form, and the answer to the form. files: with it, by field: name and content."""
        page = self.ask("GET", address)
        form = re.search(r'name="form" value="([^"]+)"', page.text)
        assert form is not None, page.text
        return self.ask("POST", address, data={"form": form[1], **fields}, files=files, headers={"Origin": self.origin})

    def open(self, job: str) -> httpx2.Response:
        """Follows the link on the page of a job. The answer of the console."""
        return self.ask("GET", f"{self.origin}/jobs/{job}/open", headers={"Sec-Fetch-Site": "same-origin"})

    def run(self, base: str, code: str) -> str:
        """What a cell prints: a new kernel, and its WebSocket. base: address of the notebook."""
        with self.kernel(base) as socket:
            return self.cell(socket, code)

    def kernel(self, base: str) -> ClientConnection:
        """The WebSocket of a new kernel."""
        self.ask("GET", f"{base}lab")
        headers = {"Origin": self.pages, "X-XSRFToken": self.cookies.get("_xsrf", "")}
        made = self.ask("POST", f"{base}api/kernels", json={"name": "python3"}, headers=headers)
        assert made.status_code == 201, made.text
        return self.socket(f"{base}api/kernels/{made.json()['id']}/channels")

    def socket(self, address: str) -> ClientConnection:
        """A WebSocket, with the cookies and the origin of the page."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return connect(
            address.replace("https://", "wss://"),
            ssl=self.trust,
            origin=Origin(self.pages),
            additional_headers={"Cookie": cookie},
            proxy=None,
            max_size=None,
            open_timeout=30,
        )

    @staticmethod
    def cell(socket: ClientConnection, code: str) -> str:
        """What a cell prints."""
        mark = uuid.uuid4().hex
        header = {"msg_id": mark, "msg_type": "execute_request", "username": "", "session": mark, "version": "5.3"}
        content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False, "stop_on_error": True}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        socket.send(json.dumps({**message, "buffers": []}))
        text = ""
        while True:
            found = json.loads(socket.recv(60))
            if found["parent_header"].get("msg_id") != mark:
                continue
            if found["msg_type"] == "stream":
                text += found["content"]["text"]
            if found["msg_type"] == "error":
                text += "\n".join(found["content"]["traceback"])
            if found["msg_type"] == "status" and found["content"]["execution_state"] == "idle":
                return text

"""A mail server for tests: it takes mails over TLS, after a login."""

from __future__ import annotations

import base64
import email
import email.policy
import re
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path

USER, PASSWORD = "pai", "mail-s3cret"
_SUBJECT = re.compile(r"\[(\w+)\] (\w+) \(\d+\)")


@dataclass
class Mailbox:
    """The mails that came."""

    port: int = 0
    got: list[EmailMessage] = field(default_factory=list)

    def alerts(self, status: str) -> set[str]:
        """Names of the alerts of that status, by the subjects."""
        found = (_SUBJECT.fullmatch(str(mail["Subject"])) for mail in list(self.got))
        return {it[2] for it in found if it is not None and it[1].lower() == status}

    def clear(self) -> None:
        """Forgets all mails."""
        self.got.clear()


@contextmanager
def mail_server(address: str, certificate: Path, key: Path) -> Iterator[Mailbox]:
    """Takes mails until the end of the block, on a free port. It refuses a login and mails before STARTTLS."""
    made = Mailbox()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    class Handler(socketserver.StreamRequestHandler):
        def notify(self, line: str) -> None:
            self.wfile.write(line.encode() + b"\r\n")

        def handle(self) -> None:
            secure = known = False
            self.notify("220 test")
            while line := self.rfile.readline().decode(errors="replace").strip():
                verb = line.partition(" ")[0].upper()
                if verb == "EHLO":
                    self.notify(f"250-test\r\n250 {'AUTH PLAIN' if secure else 'STARTTLS'}")
                elif verb == "STARTTLS":
                    self.notify("220 go on")
                    self.request = context.wrap_socket(self.request, server_side=True)
                    self.setup()
                    secure = True
                elif verb == "AUTH" and secure:
                    known = base64.b64decode(line.split()[-1]) == f"\0{USER}\0{PASSWORD}".encode()
                    self.notify("235 welcome" if known else "535 no")
                elif verb == "DATA" and known:
                    self.notify("354 go on")
                    text = b"".join(iter(self.rfile.readline, b".\r\n"))
                    made.got.append(email.message_from_bytes(text, policy=email.policy.default))
                    self.notify("250 taken")
                elif verb == "QUIT":
                    self.notify("221 bye")
                    return
                else:
                    self.notify("250 so be it" if known or verb in ("HELO", "NOOP", "RSET") else "530 login first")

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that goes away is no failure."""

    with Server((address, 0), Handler) as server:
        made.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield made
        server.shutdown()

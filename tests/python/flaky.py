"""A proxy that fails on request: it drops the Worker's answers, truncates them, or
replaces them."""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class Flaky:
    """`plan` has an entry for each future request: `None` forwards it, `"drop"` forwards it and drops the answer,
    a number truncates the answer after this many bytes, and `(status, body, headers)` is returned without
    forwarding. Without an entry, requests are forwarded."""

    def __init__(self, url: str) -> None:
        self.plan: list[Any] = []
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        upstream = urlsplit(url)
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None: ...

            def handle_any(self) -> None:
                proxy.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
                todo = proxy.plan.pop(0) if proxy.plan else None
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                self.close_connection = True
                if isinstance(todo, tuple):
                    status, text, headers = todo
                    self.send_response(status)
                    for header, value in headers.items():
                        self.send_header(header, value)
                    self.send_header("content-length", str(len(text)))
                    self.send_header("connection", "close")
                    self.end_headers()
                    self.wfile.write(text)
                    return
                forwarded = http.client.HTTPConnection(upstream.hostname or "", upstream.port or 80, timeout=60)
                headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")}
                forwarded.request(self.command, self.path, body, headers)
                answer = forwarded.getresponse()
                if todo == "drop":
                    answer.read()
                    self.connection.close()
                    return
                self.send_response(answer.status)
                for header, value in answer.getheaders():
                    if header.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(header, value)
                self.send_header("transfer-encoding", "chunked")
                self.send_header("connection", "close")
                self.end_headers()
                left = todo if isinstance(todo, int) else None
                while piece := answer.read1(65536):
                    if left is not None:
                        piece, left = piece[:left], left - len(piece)
                    if piece:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    if left is not None and left <= 0:
                        forwarded.close()
                        return
                self.wfile.write(b"0\r\n\r\n")
                forwarded.close()

            do_GET = do_POST = handle_any

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

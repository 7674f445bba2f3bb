"""A way to a server that can be cut, as if the server were gone."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Proxy:
    """Passes connections on to another address while it is open."""

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.listener: socket.socket | None = None
        self.port = 0
        self.ends: set[socket.socket] = set()
        self.lock = threading.Lock()
        self.flows = threading.Event()
        self.flows.set()

    def open(self) -> None:
        """Listen, on the same port as before."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen()
        self.listener = listener
        self.port = listener.getsockname()[1]
        threading.Thread(target=self._accept, args=[listener], daemon=True).start()

    def freeze(self) -> None:
        """Take connections and bytes, and pass nothing on."""
        self.flows.clear()

    def thaw(self) -> None:
        """Pass on what came meanwhile, and what comes."""
        self.flows.set()

    def cut(self) -> None:
        """Refuse new connections and end those that are there."""
        if self.listener is not None:
            # Else the thread that accepts would keep the port.
            with suppress(OSError):
                self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            self.listener = None
        with self.lock:
            ends, self.ends = self.ends, set()
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _address = listener.accept()
                far = socket.create_connection(self.target)
                with self.lock:
                    self.ends |= {near, far}
                for one, other in ((near, far), (far, near)):
                    threading.Thread(
                        target=self._pass, args=[one, other], daemon=True
                    ).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                self.flows.wait()
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

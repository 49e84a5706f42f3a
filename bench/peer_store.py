"""A store of tensors from worker to worker, for bench/tensor_hosts.py: the engine keeps its arrays and serves chunks of
them over ZeroMQ, encrypted by CURVE as weights are between workers, and the trainer reads them from it directly."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import zmq
import zmq.utils.z85

from temper.stores import CHUNK, Busy, Store, StoreError
from temper.xxh3 import hash64

#: Chunks that a reader asks for before the first has arrived.
WINDOW = 8
#: Seconds without a chunk until a reader gives up.
SILENCE = 30


def _serve_with_keys(context: Any, socket: Any, admitted: str) -> Any:
    """Makes the socket admit one public key only. Returns the socket that answers libzmq's questions (ZAP, RFC 27)."""
    public, secret = zmq.curve_keypair()
    socket.setsockopt(zmq.CURVE_SERVER, 1)
    socket.setsockopt(zmq.CURVE_PUBLICKEY, public)
    socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
    asked = context.socket(zmq.REP)
    asked.bind("inproc://zeromq.zap.01")
    return public.decode(), asked, zmq.utils.z85.decode(admitted.encode())


class PeerStore(Store):
    """The arrays of one engine: write() and remove() are for its process, which serves them on a thread."""

    def __init__(self, address: str, reader: str) -> None:
        """`reader`: the public key of the trainer; empty: no encryption, and everybody may read."""
        self.where, self.wait = address, SILENCE
        self._arrays: dict[str, Any] = {}
        context = zmq.Context()
        self._socket = context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._asked, self._admitted, key = None, b"", "-"
        if reader:
            key, self._asked, self._admitted = _serve_with_keys(context, self._socket, reader)
        port = self._socket.bind_to_random_port(f"tcp://{address}")
        self.place = f"tcp://{address}:{port} {key}"
        threading.Thread(target=self._serve, daemon=True).start()

    def write(self, name: str, data: memoryview) -> None:
        self._arrays[name] = np.array(data, np.uint8)  # the role may change its array

    def remove(self, name: str) -> None:
        self._arrays.pop(name, None)

    def read(self, file: str, size: int, checksum: int) -> memoryview:
        raise NotImplementedError

    def forget(self, engine: str) -> None:
        pass

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        if self._asked is not None:
            poller.register(self._asked, zmq.POLLIN)
        while True:
            for ready, _ in poller.poll():
                if ready is self._asked:
                    version, request, *_, key = self._asked.recv_multipart()
                    code = b"200" if key == self._admitted else b"400"
                    self._asked.send_multipart([version, request, code, b"", b"", b""])
                    continue
                peer, name, begin = self._socket.recv_multipart()
                array = self._arrays.get(name.decode())
                if array is None:
                    self._socket.send_multipart([peer, name, b"gone", b""])
                    continue
                offset = int(begin)
                self._socket.send_multipart([peer, name, begin, array[offset : offset + CHUNK].data], copy=False)


class PeerReader(Store):
    """Reads from engines, by names of the form ENDPOINT KEY NAME."""

    def __init__(self, public: str, secret: str) -> None:
        self.where, self.wait = "", SILENCE
        self._keys = (public.encode(), secret.encode())
        self._context = zmq.Context()
        self._sockets: dict[str, Any] = {}

    def write(self, name: str, data: memoryview) -> None:
        raise NotImplementedError

    def remove(self, name: str) -> None:
        raise NotImplementedError

    def forget(self, engine: str) -> None:
        pass

    def _socket_to(self, endpoint: str, key: str) -> Any:
        if endpoint not in self._sockets:
            socket = self._context.socket(zmq.DEALER)
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.RCVTIMEO, SILENCE * 1000)
            if key != "-":
                socket.setsockopt(zmq.CURVE_SERVERKEY, key.encode())
                socket.setsockopt(zmq.CURVE_PUBLICKEY, self._keys[0])
                socket.setsockopt(zmq.CURVE_SECRETKEY, self._keys[1])
            socket.connect(endpoint)
            self._sockets[endpoint] = socket
        return self._sockets[endpoint]

    def read(self, file: str, size: int, checksum: int) -> memoryview:
        endpoint, key, name = file.split()
        socket = self._socket_to(endpoint, key)
        data = np.empty(size, np.uint8)
        offsets = iter(range(0, max(1, size), CHUNK))
        begun, arrived, chunks = 0, 0, max(1, -(-size // CHUNK))
        while arrived < chunks:
            while begun < chunks and begun - arrived < WINDOW:
                socket.send_multipart([name.encode(), str(next(offsets)).encode()])
                begun += 1
            try:
                of, begin, chunk = socket.recv_multipart(copy=False)
            except zmq.Again:
                raise Busy(f"{endpoint}: expected a chunk within {SILENCE} s") from None
            if begin.bytes == b"gone":
                raise StoreError(f"{endpoint}: the engine has no tensor {name}")
            offset = int(begin.bytes)
            data[offset : offset + len(chunk)] = np.frombuffer(chunk, np.uint8)
            arrived += 1
        if hash64(data.data) != checksum:
            raise StoreError(f"{endpoint}: tensor {name}: the checksum differs from the announced one")
        return data.data

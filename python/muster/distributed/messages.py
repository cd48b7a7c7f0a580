"""Sends and receives messages between two ranks of a process group: torch.distributed's send, recv and recv from any rank.

Not by collectives: a message concerns two ranks, and a receiver may not know from whom it will come. Ranks of one node reach each other by Unix sockets, which take
processes of the same user alone; of several nodes by TCP, where both prove that they know the receiver's key from the store. What is sent is taken in at once, so that a
receiver may ask for it later, and in any order of tags. As over gloo, what travels between nodes is not encrypted.
"""

from __future__ import annotations

import ctypes
import hashlib
import hmac
import os
import queue
import secrets
import socket
import struct
import threading
import time
from typing import Callable, Dict, List, Optional, Tuple

import torch
import _muster_native as native
from muster._torch_types import plain
from muster.errors import MessageError

_HEADER = struct.Struct("<qq")  # tag, bytes
_HELLO = struct.Struct("<q")  # rank
_CREDENTIALS = struct.Struct("iII")  # pid, uid, gid
_TURN = 0.2  # s


def _memory(tensor: torch.Tensor) -> memoryview:
    """The bytes of a contiguous tensor on the CPU."""
    size = tensor.numel() * tensor.element_size()
    return memoryview((ctypes.c_char * size).from_address(tensor.data_ptr())).cast("B") if size else memoryview(bytearray())


def _read(link: socket.socket, into: memoryview) -> None:
    while len(into):
        count = link.recv_into(into)
        if count == 0:
            raise EOFError
        into = into[count:]


def _read_bytes(link: socket.socket, count: int) -> bytearray:
    made = bytearray(count)
    _read(link, memoryview(made))
    return made


def _is_of_this_user(link: socket.socket) -> bool:
    _, user, _ = _CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return user == os.getuid()


def _prove(key: bytes, of_caller: bool, nonces: bytes) -> bytes:
    """Returns what only those who have the key can tell of the nonces of both ends: `prove` in base/trust/key_proof.hpp."""
    return hashlib.blake2b((b"c" if of_caller else b"a") + nonces, key=key, digest_size=32).digest()


def _address_of_this_node() -> str:
    """The address by which other nodes reach this one: that of the interface that leads to rank 0's node."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((os.environ.get("MASTER_ADDR", "127.0.0.1"), 9))
        return probe.getsockname()[0]


class Message:
    """A message under way. Any thread may wait for it; the names are those of the extension's Handle."""

    def __init__(self, mail: "Mail", peer: int, tag: int, memory: memoryview, keep: object, receives: bool) -> None:
        self.peer, self.tag, self.memory, self.keep = peer, tag, memory, keep
        self._mail = mail
        self._receives = receives
        self._ended = threading.Event()
        self._error: Optional[MessageError] = None
        self._tell: Optional[Callable[[int], None]] = None

    def when_known(self, tell: Callable[[int], None]) -> None:
        """Calls tell(rank of the sender) once the message has come, or now if it has."""
        self._tell = tell
        if self._ended.is_set():
            tell(self.peer)

    def end(self, error: Optional[MessageError] = None) -> None:
        self._error = error
        if self._tell is not None:
            self._tell(self.peer)
        self._ended.set()

    def poll(self) -> bool:
        return self._ended.is_set()

    def wait_for(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._ended.wait(min(_TURN, max(0.0, until - time.monotonic()))):
            self._mail.look_at(self)
            if time.monotonic() >= until:
                return self._ended.is_set()
        return True

    def wait(self, seconds: float = 0) -> None:
        """Raises MessageError if it has failed. With `seconds`: if it has not ended by then."""
        if seconds > 0 and not self._ended.wait(seconds):
            self._mail.forget(self, self._mail.late(self, self._receives))
        self._ended.wait()
        if self._error is not None:
            raise self._error


class _Link:
    """The connection by which this rank sends to another, and the thread that does."""

    def __init__(self, mail: "Mail", peer: int) -> None:
        self._mail, self._peer = mail, peer
        self.messages: "queue.SimpleQueue[Optional[Message]]" = queue.SimpleQueue()
        self.socket: Optional[socket.socket] = None
        self.failed: Optional[MessageError] = None
        threading.Thread(target=self._run, name=f"muster-send-{peer}", daemon=True).start()

    def is_broken(self) -> bool:
        """Returns whether the other process has ended, or has left the group."""
        if self.socket is None:
            return False
        try:
            return self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _run(self) -> None:
        try:
            self.socket = self._mail.connect(self._peer)
        except (OSError, EOFError, MessageError) as error:
            self.failed = error if isinstance(error, MessageError) else self._mail.unreachable(self._peer, error)
        while True:
            message = self.messages.get()
            if message is None:
                break
            if self.failed is None:
                try:
                    self.socket.sendall(_HEADER.pack(message.tag, len(message.memory)))
                    self.socket.sendall(message.memory)
                except OSError as error:
                    self.failed = self._mail.unreachable(self._peer, error)
            message.end(self.failed)
            del message  # and what it keeps
        if self.socket is not None:
            self.socket.close()


class Mail:
    """The messages of one process group. Making it is not collective: a rank that has none yet is sent to when it has."""

    def __init__(self, store, rank: int, size: int, timeout: float, nodes: int, place: str, name_of: Callable[[int], str]) -> None:
        self._store, self._rank, self._size, self._timeout = store, rank, size, timeout
        self._name_of = name_of
        self._place = place
        self._lock = threading.Lock()
        self._links: Dict[int, _Link] = {}
        self._posted: List[Message] = []
        self._came: List[Tuple[int, int, bytearray]] = []
        self._left: Dict[int, MessageError] = {}
        self._inbound: List[socket.socket] = []
        self._closed = False
        self._key = secrets.token_bytes(32)
        name = "muster-" + secrets.token_hex(16)
        self._listeners = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)]
        self._listeners[0].bind("\0" + name)
        address = ""
        if nodes > 1:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._listeners.append(listener)
            listener.bind((_address_of_this_node(), 0))
            address = "{}:{}".format(*listener.getsockname())
        for listener in self._listeners:
            listener.listen(max(16, size))
            threading.Thread(target=self._accept, args=(listener,), name="muster-accept", daemon=True).start()
        store.set(f"muster/mail/{rank}", "\n".join([place, name, address, self._key.hex()]))
        store.add(f"muster/mailing/{rank}", 1)

    # ------------------------------------------------------------------------------------------------ for the process group

    def send(self, tensor: torch.Tensor, to: int, tag: int) -> Message:
        """Begins to send. The tensor must stay as it is until the message has ended, which is when the other rank's machine has it."""
        whole = plain(tensor.detach().cpu())
        message = Message(self, to, tag, _memory(whole), whole, False)
        self._link(to).messages.put(message)
        return message

    def receive(self, whole: torch.Tensor, source: int, tag: int) -> Message:
        """Asks for the next message of this tag, from any rank where `source` is -1, into a contiguous tensor on the CPU."""
        message = Message(self, source, tag, _memory(whole), whole, True)
        for peer in [source] if source >= 0 else [peer for peer in range(self._size) if peer != self._rank]:
            self._link(peer)  # by which it is seen that the other rank has ended
        with self._lock:
            for i, (sender, with_tag, data) in enumerate(self._came):
                if with_tag == tag and source in (-1, sender):
                    del self._came[i]
                    self._fill(message, sender, data)
                    return message
            self._posted.append(message)
        return message

    def close(self) -> None:
        self._closed = True
        with self._lock:
            links, inbound = list(self._links.values()), list(self._inbound)
        for link in links:
            link.messages.put(None)
        for one in (*self._listeners, *inbound):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
        self._store = None  # whose server must end with the group

    # ------------------------------------------------------------------------------------------------ errors

    def unreachable(self, peer: int, error: BaseException) -> MessageError:
        return MessageError(f"{self._name_of(peer)} has ended or has left the process group: a message to or from it failed ({error or 'closed'})", native.E_PEER, (peer,))

    def late(self, message: Message, receives: bool) -> MessageError:
        if message.peer < 0:
            return MessageError(f"no rank has sent a message with tag {message.tag} in time", native.E_TIMEOUT)
        what = "has sent no message with tag {} in time" if receives else "has not taken a message with tag {} in time"
        return MessageError(f"{self._name_of(message.peer)} {what.format(message.tag)}", native.E_TIMEOUT, (message.peer,))

    def forget(self, message: Message, error: MessageError) -> None:
        with self._lock:
            if message in self._posted:
                self._posted.remove(message)
            elif message.poll():
                return
        message.end(error)

    def look_at(self, message: Message) -> None:
        """Ends a message that is asked for if its sender has ended."""
        if message not in self._posted:
            return
        if message.peer < 0:
            others = [peer for peer in range(self._size) if peer != self._rank]
            if all(self._is_gone(peer) for peer in others):
                self.forget(message, MessageError("all ranks that could send a message have ended", native.E_PEER, tuple(others)))
        elif self._is_gone(message.peer):
            self.forget(message, self._left.get(message.peer) or self.unreachable(message.peer, EOFError()))

    def _is_gone(self, peer: int) -> bool:
        link = self._links.get(peer)
        return peer in self._left or (link is not None and link.is_broken())

    # ------------------------------------------------------------------------------------------------ connections

    def _link(self, peer: int) -> _Link:
        with self._lock:
            link = self._links.get(peer)
            if link is None:
                link = self._links[peer] = _Link(self, peer)
            return link

    def connect(self, peer: int) -> socket.socket:
        """A connection to the other rank, once it says where it is."""
        until, pause = time.monotonic() + self._timeout, 0.001
        while (store := self._store) is None or store.add(f"muster/mailing/{peer}", 0) == 0:
            store = None
            if self._closed or time.monotonic() > until:
                raise MessageError(f"{self._name_of(peer)} has begun no send or recv in time", native.E_TIMEOUT, (peer,))
            time.sleep(pause)
            pause = min(0.05, pause * 2)
        place, name, address, key = store.get(f"muster/mail/{peer}").decode().split("\n")
        if place == self._place:
            link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            link.connect("\0" + name)
            if not _is_of_this_user(link):
                raise OSError("another user's process answered")
        else:
            host, _, port = address.rpartition(":")
            link = socket.create_connection((host, int(port)), timeout=30)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            nonces, secret = secrets.token_bytes(32), bytes.fromhex(key)
            link.sendall(nonces)
            nonces += _read_bytes(link, 32)
            if not hmac.compare_digest(_read_bytes(link, 32), _prove(secret, False, nonces)):
                raise OSError("another program answers there")
            link.sendall(_prove(secret, True, nonces))
            link.settimeout(None)
        link.sendall(_HELLO.pack(self._rank))
        return link

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._take_in, args=(link,), name="muster-receive", daemon=True).start()

    def _is_trusted(self, link: socket.socket) -> bool:
        if link.family == socket.AF_UNIX:
            return _is_of_this_user(link)
        link.settimeout(30)
        own = secrets.token_bytes(32)
        nonces = bytes(_read_bytes(link, 32)) + own
        link.sendall(own + _prove(self._key, False, nonces))
        trusted = hmac.compare_digest(_read_bytes(link, 32), _prove(self._key, True, nonces))
        link.settimeout(None)
        return trusted

    def _take_in(self, link: socket.socket) -> None:
        """Reads what one rank sends, until it ends."""
        sender = -1
        try:
            if not self._is_trusted(link):
                return
            (sender,) = _HELLO.unpack(_read_bytes(link, _HELLO.size))
            with self._lock:
                self._inbound.append(link)
            while True:
                tag, size = _HEADER.unpack(_read_bytes(link, _HEADER.size))
                self._take(link, sender, tag, size)
        except (OSError, EOFError, struct.error) as error:
            if sender >= 0 and not self._closed:
                self._lose(sender, error)
        finally:
            link.close()

    def _match(self, sender: int, tag: int) -> Optional[Message]:
        for i, message in enumerate(self._posted):
            if message.tag == tag and message.peer in (-1, sender):
                return self._posted.pop(i)
        return None

    def _take(self, link: socket.socket, sender: int, tag: int, size: int) -> None:
        with self._lock:
            message = self._match(sender, tag)
        if message is not None and len(message.memory) == size:
            try:
                _read(link, message.memory)
            except (OSError, EOFError) as error:
                message.end(self.unreachable(sender, error))
                raise
            message.peer = sender
            message.end()
            return
        try:
            data = _read_bytes(link, size)
        except (OSError, EOFError) as error:
            if message is not None:
                message.end(self.unreachable(sender, error))
            raise
        with self._lock:
            message = message or self._match(sender, tag)
            if message is None:
                self._came.append((sender, tag, data))
                return
        self._fill(message, sender, data)

    def _fill(self, message: Message, sender: int, data: bytearray) -> None:
        message.peer = sender
        if len(data) != len(message.memory):
            text = f"{self._name_of(sender)} sent {len(data)} bytes with tag {message.tag}, the tensor to receive into has {len(message.memory)} bytes"
            message.end(MessageError(text, native.E_PEER, (sender,)))
            return
        message.memory[:] = data
        message.end()

    def _lose(self, sender: int, error: BaseException) -> None:
        lost = self.unreachable(sender, error)
        with self._lock:
            self._left[sender] = lost
            ended = [message for message in self._posted if message.peer == sender]
            self._posted = [message for message in self._posted if message.peer != sender]
        for message in ended:
            message.end(lost)

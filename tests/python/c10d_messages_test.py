# Who may send to a rank of another node, and to whom a rank sends: only those that prove that they have the receiver's key.
# ranks: 2
# together: c10d
import hashlib
import secrets
import socket

import check

try:
    import torch
except ImportError as error:
    check.skip(f"no PyTorch: {error}")
from muster.distributed.messages import Mail


class Store:
    def __init__(self):
        self.values, self.counts = {}, {}

    def set(self, key, value):
        self.values[key] = value.encode()

    def get(self, key):
        return self.values[key]

    def add(self, key, by):
        self.counts[key] = self.counts.get(key, 0) + by
        return self.counts[key]


def mail_of(store, rank):
    return Mail(store, rank, 2, 10.0, 2, f"node {rank}", lambda peer: f"rank {peer}")


def proof(key, label, nonces):
    return hashlib.blake2b(label + nonces, key=key, digest_size=32).digest()


def received(link, count):
    link.settimeout(30)
    data = b""
    try:
        while len(data) < count and (part := link.recv(count - len(data))):
            data += part
    except ConnectionResetError:  # closed before it had read everything
        pass
    return data


def exchange(sender, receiver, tag):
    sent = sender.send(torch.arange(10.0), 1, tag)
    tensor = torch.empty(10)
    receiver.receive(tensor, 0, tag).wait(10)
    sent.wait(10)
    assert (tensor == torch.arange(10.0)).all()


def test_strangers_are_closed_and_the_sender_is_heard():
    store = Store()
    receiver, sender = mail_of(store, 1), mail_of(store, 0)
    _, _, address, key = store.get("muster/mail/1").decode().split("\n")
    place = (address.rpartition(":")[0], int(address.rpartition(":")[2]))
    own = secrets.token_bytes(32)
    silent = socket.create_connection(place)  # for as long as the test lasts
    cut = socket.create_connection(place)
    cut.sendall(own[:20])
    cut.close()
    for answer in (
        lambda nonces: b"GET / HTTP/1.1\r\n" * 4,
        lambda nonces: proof(b"another key", b"c", nonces),
        lambda nonces: proof(bytes.fromhex(key), b"c", own + own),  # of another connection
        lambda nonces: proof(bytes.fromhex(key), b"a", nonces),  # the receiver's own, sent back
    ):
        with socket.create_connection(place) as stranger:
            stranger.sendall(own)
            theirs = received(stranger, 64)
            assert theirs[32:] == proof(bytes.fromhex(key), b"a", own + theirs[:32])
            stranger.sendall(answer(own + theirs[:32]))
            assert received(stranger, 1) == b""
    exchange(sender, receiver, 3)
    for one in (silent, sender, receiver):
        one.close()


def test_nothing_is_sent_to_another_program_at_the_receivers_address():
    store = Store()
    mail_of(store, 1).close()
    lines = store.get("muster/mail/1").decode().split("\n")
    for answer in (secrets.token_bytes(64), b"SSH-2.0\r\n"):
        with socket.create_server(("127.0.0.1", 0)) as impostor:
            store.set("muster/mail/1", "\n".join([*lines[:2], f"127.0.0.1:{impostor.getsockname()[1]}", lines[3]]))
            sender = mail_of(store, 0)
            message = sender.send(torch.ones(3), 1, 0)
            link, _ = impostor.accept()
            assert len(received(link, 32)) == 32
            link.sendall(answer)
            link.shutdown(socket.SHUT_WR)
            check.raises(RuntimeError, lambda: message.wait(10), "rank 1")
            assert received(link, 1) == b""
            link.close()
            sender.close()


check.run(globals())

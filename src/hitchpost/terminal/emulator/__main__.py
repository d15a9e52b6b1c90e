"""Started as ``python -I -S …/emulator/__main__.py SOCKET_FD FOLDER…``; the folders hold pyghostty and what it needs.

Loads the emulator and forks a process for each screen. This process itself never reads
what an agent wrote. It ends when its owner does.
"""

import gc
import os
import signal
import sys
from _socket import AF_UNIX, CMSG_LEN, SOCK_SEQPACKET, SOCK_STREAM, socket

sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..")))
sys.path += sys.argv[2:]

from hitchpost.terminal.emulator import frames
from hitchpost.terminal.emulator.confinement import PR_SET_NO_NEW_PRIVS, close_all_but, confine


def main() -> None:
    orders = socket(AF_UNIX, SOCK_SEQPACKET, 0, int(sys.argv[1]))
    close_all_but(orders.fileno())
    os.chdir("/")
    gc.disable()  # loading makes a great many objects that stay
    try:
        from hitchpost.terminal.emulator.drawing import draw, warm_up
        from hitchpost.terminal.emulator.library import libc
    except (ImportError, OSError) as error:
        orders.send(frames.NO_EMULATOR + str(error).encode()[:1000])
        return
    warm_up()
    gc.freeze()
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    parent = os.getpid()
    children: set[int] = set()
    while True:
        order, descriptors = receive(orders)
        if not order:
            return
        if order[:1] == frames.FORK:
            pid = os.fork()
            if pid == 0:
                gc.enable()
                screen = socket(AF_UNIX, SOCK_STREAM, 0, descriptors[0])
                confine(libc, screen.fileno(), parent)
                try:
                    draw(screen, *frames.unpack(order[1:]))
                finally:
                    os._exit(1)
            children.add(pid)
            os.close(descriptors[0])
            orders.send(b"%d" % pid)
        elif order[:1] == frames.END and int(order[1:]) in children:
            pid = int(order[1:])
            children.remove(pid)
            os.kill(pid, signal.SIGKILL)
            orders.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        else:
            raise ValueError(f"expected an order, but got {order!r}")


def receive(orders: socket) -> tuple[bytes, list[int]]:
    """The next order and its descriptors; an empty one when the owner is gone."""
    order, ancillary, _, _ = orders.recvmsg(1024, CMSG_LEN(4))
    return order, [int.from_bytes(data[:4], sys.byteorder) for _, _, data in ancillary]


main()

"""Which messages to the kernel are questions: what a process with CAP_NET_ADMIN may send when it only reads.

The supervisor reads each message while its sender waits in the call. The filter sees to it that nobody else can change
the sender's memory meanwhile: no second thread, no forked child, no asynchronous input and output.
"""

from __future__ import annotations

import struct

AF_NETLINK = 16
NETLINK_HEADER_BYTES = 16
MOST_MESSAGE_BYTES = 1 << 16
"""A question is far shorter; what is longer is refused unread."""

SUBSYSTEM_QUESTIONS = {
    # nf_tables.h: GETTABLE, GETCHAIN, GETRULE, GETSET, GETSETELEM, GETGEN, GETOBJ, GETFLOWTABLE. The …_RESET forms of
    # them change counters.
    10: (1, 4, 7, 10, 13, 16, 19, 23),
    # nf_tables_compat.h: NFNL_MSG_COMPAT_GET, which revision of an extension there is
    11: (0,),
}
"""Subsystem of nfnetlink.h → its messages that only ask."""
NETLINK_CONTROL = (1, 3)
"""NLMSG_NOOP and NLMSG_DONE."""
BATCH_MARKS, BATCH_MARK_BYTES = (16, 17), 28
"""NFNL_MSG_BATCH_BEGIN and …_END; iptables sends a batch with nothing in it after each listing. Of this length, a
routing message of the same number (RTM_NEWLINK, RTM_DELLINK) is too short to be one."""
RTM_BASE, RTM_GET = 16, 2
"""rtnetlink.h: each kind of object has four messages, NEW, DEL, GET, SET, beginning at 16."""


def only_asks(data: bytes) -> bool:
    """Whether every netlink message in the data is a question. False for anything else, and for nothing at all.

    A number has one harmless meaning whatever the socket's protocol: routing messages are below 256, netfilter's above,
    and the kernel refuses those that the protocol does not have.
    """
    at = 0
    while at < len(data):
        if len(data) - at < NETLINK_HEADER_BYTES:
            return False
        size, kind = struct.unpack_from("=IH", data, at)
        if size < NETLINK_HEADER_BYTES or size > len(data) - at or not _is_question(kind, size):
            return False
        at += (size + 3) & ~3
    return bool(data)


def _is_question(kind: int, size: int) -> bool:
    subsystem, message = kind >> 8, kind & 0xFF
    if subsystem:
        return message in SUBSYSTEM_QUESTIONS.get(subsystem, ())
    if kind in BATCH_MARKS:
        return size <= BATCH_MARK_BYTES
    return kind in NETLINK_CONTROL or (kind >= RTM_BASE and (kind - RTM_BASE) % 4 == RTM_GET)


def is_to_the_kernel(address: bytes) -> bool:
    """Whether a socket address (b"" when none is given) is the kernel's own: no other process, no group, no network."""
    if not address:
        return True
    if len(address) < 12:
        return False
    family, _, process, groups = struct.unpack_from("=HHII", address)
    return (family, process, groups) == (AF_NETLINK, 0, 0)

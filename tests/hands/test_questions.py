"""What `netadm` takes for a question: every kind of netfilter and routing message, and bytes that are none."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.hands.sandbox.questions import is_to_the_kernel, only_asks

NFTABLES = (
    "NEWTABLE", "GETTABLE", "DELTABLE", "NEWCHAIN", "GETCHAIN", "DELCHAIN", "NEWRULE", "GETRULE", "DELRULE",
    "NEWSET", "GETSET", "DELSET", "NEWSETELEM", "GETSETELEM", "DELSETELEM", "NEWGEN", "GETGEN", "TRACE",
    "NEWOBJ", "GETOBJ", "DELOBJ", "GETOBJ_RESET", "NEWFLOWTABLE", "GETFLOWTABLE", "DELFLOWTABLE",
    "GETRULE_RESET", "DESTROYTABLE", "DESTROYCHAIN", "DESTROYRULE", "DESTROYSET", "DESTROYSETELEM",
    "DESTROYOBJ", "DESTROYFLOWTABLE", "GETSETELEM_RESET",
)  # fmt: skip
"""enum nf_tables_msg_types of linux/netfilter/nf_tables.h, in its order from 0."""


def message(kind, payload=b"\0" * 4):
    size = 16 + len(payload)
    return struct.pack("=IHHII", size, kind, 1, 1, 0) + payload + b"\0" * (-size % 4)


@pytest.mark.parametrize(("number", "name"), list(enumerate(NFTABLES)), ids=lambda value: str(value))
def test_of_nf_tables_only_what_gets_and_resets_nothing_is_a_question(number, name):
    assert only_asks(message(10 << 8 | number)) == (name.startswith("GET") and not name.endswith("RESET"))


def test_of_routing_only_what_gets_is_a_question():
    for kind in range(18, 256):
        assert only_asks(message(kind, b"\0" * 16)) == (kind % 4 == 2), kind


def test_of_other_subsystems_nothing_is_but_the_old_extensions_revision():
    for subsystem in range(1, 256):
        for number in range(256):
            if subsystem != 10:
                assert only_asks(message(subsystem << 8 | number)) == ((subsystem, number) == (11, 0))


def test_an_empty_batch_is_none_of_the_routing_messages_that_share_its_numbers():
    begin, end = message(16, b"\0\0\0\x0a" + b"\0" * 8), message(17)
    assert only_asks(begin + end)
    assert not only_asks(begin + message(10 << 8 | 0) + end)
    # struct ifinfomsg has 16 bytes: from there on it could be RTM_NEWLINK.
    assert not only_asks(message(16, b"\0" * 16))
    assert not only_asks(message(17, b"\0" * 16))


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_message_that_is_cut_is_none(cut):
    assert not only_asks(message(10 << 8 | 1)[:-cut])


@given(st.binary(max_size=200))
def test_bytes_are_a_question_only_if_every_message_in_them_is(data):
    if not only_asks(data):
        return
    at = 0
    while at < len(data):
        size, kind = struct.unpack_from("=IH", data, at)
        assert size >= 16
        assert only_asks(message(kind, b"\0" * min(size - 16, 12)))
        at += (size + 3) & ~3


@given(
    st.lists(st.sampled_from([message(10 << 8 | 1), message(18, b"\0" * 16), message(0x0A00), message(20)]), max_size=5)
)
def test_one_change_among_questions_is_found(messages):
    changes = message(0x0A00) in messages or message(20) in messages
    assert only_asks(b"".join(messages)) == (bool(messages) and not changes)


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        (b"", True),
        (struct.pack("=HHII", 16, 0, 0, 0), True),
        (struct.pack("=HHII", 16, 0, 77, 0), False),
        (struct.pack("=HHII", 16, 0, 0, 1), False),
        (struct.pack("=HHII", 2, 0, 0, 0), False),
        (struct.pack("=HH", 16, 0), False),
    ],
)
def test_only_the_kernel_itself_is_the_kernel(address, wanted):
    assert is_to_the_kernel(address) == wanted

"""The table of all families, and which of them a plan's item belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guard.hands.services import (
    accounts,
    containers,
    crontab,
    expiry,
    gitrefs,
    iptables,
    kubectl,
    manager,
    mounts,
    network,
    nftables,
    packages,
    sysctl,
    units,
)

if TYPE_CHECKING:
    from guard.hands.services.base import Family

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        units.FAMILY,
        manager.FAMILY,
        accounts.FAMILY,
        expiry.FAMILY,
        crontab.FAMILY,
        sysctl.FAMILY,
        nftables.FAMILY,
        iptables.FAMILY,
        network.FAMILY,
        mounts.FAMILY,
        packages.FAMILY,
        gitrefs.FAMILY,
        *containers.FAMILIES,
        kubectl.FAMILY,
    )
}


def family_of(kind: str, name: str) -> tuple[Family, str] | None:
    """The family and the key of a plan's item, None when no hand can read it."""
    if kind == "service":
        return units.FAMILY, name
    if kind != "state":
        return None
    head, _, key = name.partition(" ")
    family = FAMILIES.get(head)
    return (family, key) if family is not None else None

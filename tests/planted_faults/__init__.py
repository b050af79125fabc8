"""Faults that the tests have to catch, the guard of the guards. `make faults` (scripts/planted_faults.py) plants each.

When code moves, change the path of its faults; when it is written anew, plant the same mistake where it would be made
now. A behaviour that gets a new home for its tests gets it here too. A fault is removed only with its behaviour.
"""

from __future__ import annotations

from tests.planted_faults import (
    catalog,
    cli,
    engine,
    features,
    http,
    http_wire,
    leaves,
    links,
    oauth,
    protocol,
    providers,
    running,
    sdk,
    transports,
    warm,
    wrapping,
)
from tests.planted_faults.fault import Fault, why_stale

__all__ = ["FAULTS", "Fault", "why_stale"]

FAULTS = [
    *leaves.FAULTS,
    *protocol.FAULTS,
    *running.FAULTS,
    *warm.FAULTS,
    *catalog.FAULTS,
    *providers.FAULTS,
    *links.FAULTS,
    *features.FAULTS,
    *engine.FAULTS,
    *transports.FAULTS,
    *http.FAULTS,
    *http_wire.FAULTS,
    *oauth.FAULTS,
    *cli.FAULTS,
    *sdk.FAULTS,
    *wrapping.FAULTS,
]

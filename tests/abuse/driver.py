"""Attack a server at random, and say what it cost.

    python -m tests.abuse.driver --seed 7 --secs 60
    python -m tests.abuse.driver --only unique-items --attack-seed 12345
    python -m tests.abuse.driver --only unique-items --stacks /tmp/stacks

The same seed draws the same attacks in the same order, with the same sizes; how many of them there is time for differs.
Every finding names the attack and its own seed, with which it alone can be repeated.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.abuse.arena import Arena, Bout
from tests.abuse.attacks import ATTACKS
from tests.abuse.hub_turns import STACKS
from tests.abuse.link import ServerDied, ServerHangs
from tests.abuse.luck import Luck
from tests.abuse.measure import Figures, table_of
from tests.support.processes import MIB, memory_bytes

ATTACKS_PER_SERVER = 30
Process = subprocess.Popen[bytes]


@dataclass
class Report:
    """What came of a run."""

    seed: int
    rows: dict[str, Figures] = field(default_factory=dict)
    growth_bytes: int = 0  # the most that one server had gained when it was dismissed

    @property
    def findings(self) -> list[str]:
        return [f"{name}: {finding}" for name, figures in self.rows.items() for finding in figures.findings]

    def note(self, name: str, seed: int, figures: Figures) -> None:
        figures.findings = [f"{finding} (--only '{name}' --attack-seed {seed})" for finding in figures.findings]
        self.rows.setdefault(name, Figures()).absorb(figures)

    def __str__(self) -> str:
        worst = Figures()
        for figures in self.rows.values():
            worst.absorb(figures)
        total = (
            f"seed {self.seed}: {worst.runs} attacks, {worst.pings} pings; longest ping "
            f"{worst.longest_ping_secs * 1000:.0f} ms, pulse {worst.longest_pulse_secs * 1000:.0f} ms, turn of the hub "
            f"{worst.longest_hub_cpu_secs * 1000:.0f} ms of cpu; peak {worst.peak_bytes / MIB:.0f} MiB, growth "
            f"{self.growth_bytes / MIB:.0f} MiB, {len(worst.findings)} findings"
        )
        return f"{table_of(self.rows)}\n{total}"


def close_input(process: Process) -> None:
    assert process.stdin is not None
    try:
        process.stdin.close()
    except BrokenPipeError:
        return


def close_both(process: Process) -> None:
    close_input(process)
    assert process.stdout is not None
    process.stdout.close()


def close_output(process: Process) -> None:
    assert process.stdout is not None
    process.stdout.close()


ENDINGS: dict[str, Callable[[Process], None]] = {
    "end: eof": close_input,
    "end: nobody reads": close_output,
    "end: both closed": close_both,
    "end: sigterm": lambda process: process.send_signal(signal.SIGTERM),
    "end: sigint": lambda process: process.send_signal(signal.SIGINT),
    "end: sighup": lambda process: process.send_signal(signal.SIGHUP),
    "end: sigkill": lambda process: process.send_signal(signal.SIGKILL),
}
NAMES = [*ATTACKS, *ENDINGS, "before the handshake"]


class Driver:
    """Runs attacks one after another, each on a server that was well before it."""

    def __init__(
        self, seed: int, *, scale: float = 1.0, base: Path | None = None, on_progress: Callable[[str], None]
    ) -> None:
        self.report = Report(seed)
        self._scale = scale
        self._rng = random.Random(seed)
        self._on_progress = on_progress
        self._arena = Arena(base)
        self._aside = Arena(base)  # for servers that end while another one stands
        self._bout: Bout | None = None
        self._age = 0

    def run_for(self, secs: float) -> Report:
        """A deck of all attacks, shuffled anew whenever it is used up."""
        give_up_at = time.monotonic() + secs
        for name, seed in self._deck():
            if time.monotonic() >= give_up_at:
                break
            self.run(name, seed)
        self.dismiss()
        return self.report

    def run(self, name: str, seed: int) -> Figures:
        luck = Luck(seed, scale=self._scale)
        if name in ENDINGS:
            figures = self._end_amid_attacks(ENDINGS[name], luck)
        elif name in ATTACKS:
            figures = self._standing_bout().suffer(lambda link: ATTACKS[name](link, luck))
            self._dismiss_if_unwell()
        else:
            figures = self._attack_before_handshake(luck)
        self._on_progress(
            f"{name} {seed}: ping {figures.longest_ping_secs * 1000:.0f} ms; hub cpu "
            f"{figures.longest_hub_cpu_secs * 1000:.0f} ms, slept {figures.longest_hub_asleep_secs * 1000:.0f} ms; "
            f"{figures.peak_bytes / MIB:.0f} MiB {figures.findings or ''}"
        )
        self.report.note(name, seed, figures)
        return figures

    def dismiss(self) -> None:
        """Let the present server end in good order; nothing may be left."""
        bout, self._bout = self._bout, None
        if bout is not None:
            growth_bytes = memory_bytes(bout.process.pid) - bout.memory_at_first_bytes
            self.report.growth_bytes = max(self.report.growth_bytes, growth_bytes)
            bout.probe.begin()
            self.report.note("end: after attacks", self.report.seed, bout.end(close_input))

    def close(self) -> None:
        if self._bout is not None:
            self._bout.kill()
        self._arena.close()
        self._aside.close()

    def _deck(self) -> Iterator[tuple[str, int]]:
        while True:
            names = list(NAMES)
            self._rng.shuffle(names)
            for name in names:
                yield name, self._rng.getrandbits(32)

    def _standing_bout(self) -> Bout:
        self._age += 1
        if self._bout is not None and self._age > ATTACKS_PER_SERVER:
            self.dismiss()
        if self._bout is None:
            self._age = 0
            self._bout = self._arena.start(has_token=self._rng.random() < 0.3)
        return self._bout

    def _dismiss_if_unwell(self) -> None:
        if self._bout is not None and not self._bout.is_well:
            self._bout.kill()
            self._arena.clear()
            self._bout = None

    def _end_amid_attacks(self, how: Callable[[Process], None], luck: Luck) -> Figures:
        """An end at any moment of something else."""
        bout = self._aside.start()
        figures = bout.probe.begin()
        name = luck.pick(sorted(ATTACKS))
        amid = Luck(luck.seed, scale=luck.scale)
        try:
            if name.startswith("script: ") or luck.chance(0.5):
                bout.link.send(*(bout.link.call("slow") for _ in range(luck.rng.randint(0, 30))))
            ATTACKS[name](bout.link, amid)
            bout.link.offer(
                *(bout.link.call("slow") for _ in range(luck.rng.randint(0, 30))), secs=luck.rng.uniform(0, 0.1)
            )
        except (ServerDied, ServerHangs) as error:
            figures.findings.append(f"{name}, before the end: {error}")
        bout.end(how)
        return figures

    def _attack_before_handshake(self, luck: Luck) -> Figures:
        """Rubbish is the first that the server hears, before it is all there."""
        bout = self._aside.start_silent()
        figures = bout.probe.begin()
        first = luck.pick(
            ["rubbish-bytes", "costly-line", "huge-line", "odd-messages", "tiny-lines", "batches", "costly-params"]
        )
        try:
            ATTACKS[first](bout.link, luck)
            bout.link.forget_answers()
            bout.greet()
            figures.findings += bout.link.faults
        except (ServerDied, ServerHangs, AssertionError) as error:
            figures.findings.append(f"{first}: {error}")
        bout.end(close_input)
        return figures


def attack_at_random(
    seed: int,
    secs: float,
    *,
    scale: float = 1.0,
    base: Path | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Report:
    driver = Driver(seed, scale=scale, base=base, on_progress=on_progress)
    try:
        return driver.run_for(secs)
    finally:
        driver.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--secs", type=float, default=60.0)
    parser.add_argument("--scale", type=float, default=1.0, help="how large things get, 0 to 1")
    parser.add_argument("--only", choices=NAMES, help="this attack alone")
    parser.add_argument("--attack-seed", type=int, help="with --only: this once, instead of for --secs")
    parser.add_argument("--stacks", metavar="FILE", help="append to FILE where the hub was in turns that took long")
    options = parser.parse_args()
    if options.stacks:
        Path(options.stacks).touch()
        Path(options.stacks).chmod(0o666)  # the server may be somebody else
        os.environ[STACKS] = str(Path(options.stacks).resolve())

    def show(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    if options.only is None:
        report = attack_at_random(options.seed, options.secs, scale=options.scale, on_progress=show)
    else:
        driver = Driver(options.seed, scale=options.scale, on_progress=show)
        rng = random.Random(options.seed)
        give_up_at = time.monotonic() + options.secs
        try:
            while True:
                driver.run(options.only, rng.getrandbits(32) if options.attack_seed is None else options.attack_seed)
                if options.attack_seed is not None or time.monotonic() >= give_up_at:
                    break
            driver.dismiss()
        finally:
            driver.close()
        report = driver.report
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())

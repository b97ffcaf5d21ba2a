"""How many lanes a call of a program has."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from provingground.grid import Program
from provingground.train import LaneMode

if TYPE_CHECKING:
    from provingground.engine import Block, Job

# Lanes per call (and device) by rule. On a CPU a lane is a training of its own (see
# `lanes.by_lane`), and more lanes only share more of the drawing; on a GPU they fill the device.
LANES: dict[LaneMode, int] = {"serial": 32, "wide": 1024}
# On a GPU small trainings wait for kernels to start, so large sweeps of them are as wide as this,
# if the largest arrays of so many lanes take no more than a share of the memory. Measured on an
# H200 with 16 times the trainings of the benchmarks: W4 is 1.2 times faster with 3072 lanes than
# with 768, W5 3.3 times with 6144 than with 1008, and another 1.26 times with 24,576.
WIDEST = 65_536
SHARE_OF_ONE_ARRAY = 1 / 16
TUNE_WORTH = 30  # tune the width where the forecast is this many times the cost of tuning
TUNE_SECONDS = 10.0


def chosen_lanes(job: "Job", program: Program) -> int:
    """The width measured for this program and device, else the backend's rule."""
    if job.study.simulators[program.simulator].host:
        return 1
    by_rule = lanes_by_rule(job, program) * job.machine_of(program).devices
    return measured_lanes(job, program) or by_rule


def lanes_by_rule(job: "Job", program: Program) -> int:
    """The lanes of a call for each device, where none were measured."""
    machine = job.machine_of(program)
    least = LANES[machine.mode]
    group = next(g for g in job.groups if g.program == program)
    cells = len(group.points) * len(job.sweep.seeds)
    if machine.mode == "serial" or cells <= least * machine.devices:
        return least
    fit = int(SHARE_OF_ONE_ARRAY * machine.memory) // max(1, job.array_bytes(group))
    return min(max(least, 1 << max(0, fit.bit_length() - 1)), WIDEST)


def measured_lanes(job: "Job", program: Program) -> int | None:
    """The width that was measured for a program on this device."""
    text = job.store.note("lanes", job.on_device(program)) or ""
    rule = rule_of(job, program)
    return int(text) if text in {str(lanes) for lanes in widths(rule)} else None


def rule_of(job: "Job", program: Program) -> int:
    """The width around which is measured."""
    machine = job.machine_of(program)
    return LANES[machine.mode] * machine.devices


def widths(rule: int) -> tuple[int, ...]:
    """The widths among which is measured."""
    return rule // 4, rule, rule * 4


def tune(job: "Job", todo: Sequence["Block"]) -> bool:
    """Measures the best width of programs whose forecast work is many times the cost of that.

    Whether there was one, so that the sweep is to be cut anew.
    """
    tuned, worth = False, TUNE_WORTH * TUNE_SECONDS
    for number in {b.group for b in todo}:
        program = job.groups[number].program
        each = job.timing(program)
        cells = sum(b.cells for b in todo if b.group == number)
        if measured_lanes(job, program) or not each or each.seconds * cells < worth:
            continue
        if job.study.simulators[program.simulator].host:
            continue
        cost = {}
        for lanes in widths(rule_of(job, program)):
            tried = replace(job, lanes=lanes)
            tried.groups = job.groups
            block = tried.whole(number)[0]
            cost[lanes] = job.timed(block)[2] / block.cells
        best = min(cost, key=lambda lanes: cost[lanes])
        job.store.set_note("lanes", job.on_device(program), str(best))
        tuned = True
    return tuned

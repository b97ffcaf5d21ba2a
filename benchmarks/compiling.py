"""How long the programs of studies take to compile: for this machine, or for an H200 without one.

    python benchmarks/compiling.py vision_transformer --scale paper --for h200

XLA compiles for a GPU that it only knows the description of. That needs jax's plugin, and of CUDA
the assembler alone: `pip install jax-cuda12-plugin jax-cuda12-pjrt nvidia-cuda-nvcc-cu12`, in the
versions of `pip install '.[cuda]'`. Seconds are of the processor, all threads together: on many
cores it is faster, beside other programs slower.
"""

import argparse
import importlib.util
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

H200 = """
gpu_device_info {
  cuda_compute_capability { major: 9 feature_extension: ACCELERATED_FEATURES }
  core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  threads_per_warp: 32 threads_per_block_limit: 1024 threads_per_core_limit: 2048
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472
  l2_cache_size: 62914560 device_memory_size: 149000000000 memory_bandwidth: 4800000000000
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
runtime_version { major: 12 minor: 9 }
"""


class Compiled(NamedTuple):
    """A program: where it is needed first, its lanes, and what it took."""

    where: str
    simulator: str
    lanes: str
    tracing: float
    compiling: float
    kernels: int
    memory: int  # bytes of temporary arrays


def assembler() -> None:
    """Lets XLA find CUDA's assembler among the installed packages, before jax starts."""
    found = importlib.util.find_spec("nvidia.cuda_nvcc")
    places = found.submodule_search_locations if found else None
    if importlib.util.find_spec("jax_plugins") is None or not places:
        sys.exit(f"not installed: jax's plugin for CUDA, or its assembler. {__doc__}")
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["PATH"] = f"{places[0]}/bin{os.pathsep}{os.environ['PATH']}"
    os.environ["XLA_FLAGS"] = f"--xla_gpu_cuda_data_dir={places[0]}"


def described_gpu() -> Any:
    """The device that is compiled for."""
    import jax
    from jax.experimental import topologies

    jax.devices()  # finds the plugins
    return topologies.get_topology_desc(
        "1x1x1", platform="cuda", target_config=H200, topology="1x1x1"
    ).devices[0]


def compiled(targets: list[str], scale: str, gpu: Any) -> Iterator[Compiled]:
    """The programs of some studies or experiments, each once, in the order of need."""
    import jax
    import numpy as np

    from provingground import identity, planning
    from provingground.ahead import firsts, name_of
    from provingground.machine import Machine, here
    from provingground.programs import COMPILER

    jax.config.update("jax_enable_compilation_cache", False)
    machine = here() if gpu is None else Machine("gpu", "NVIDIA H200", 1, 2, 110_000_000_000)
    place = None if gpu is None else jax.sharding.SingleDeviceSharding(gpu)

    def described(x: Any) -> jax.ShapeDtypeStruct:
        kind = jax.dtypes.canonicalize_dtype(np.asarray(x).dtype)
        return jax.ShapeDtypeStruct(np.shape(x), kind, sharding=place)

    with TemporaryDirectory() as folder:
        seen = set()
        for owner, experiment in planning.chosen(targets, scale=scale):  # pyright: ignore[reportArgumentType]
            planned = planning.job(owner, experiment.name, scale=scale, store=folder, yes=True)  # pyright: ignore[reportArgumentType]
            job = replace(planned, machine=machine)
            for block in firsts(job.missing()).values():
                name, program = name_of(job, block), job.program(block)
                mode = job.machine_of(program).mode
                if name is None or name in seen or (gpu is not None and mode == "serial"):
                    continue
                seen.add(name)
                start = time.process_time()
                with identity.running("", program.precision, mode):
                    batch = job.programs._batch(program, block.wide)
                    first = np.zeros(block.wide, int)
                    configs = jax.tree.map(itemgetter(first), job.lanes_of(block).configs)
                    exists = np.zeros((block.deep, block.wide), bool)
                    given = configs, np.zeros(block.deep, np.int32), exists, job.data
                    lowered = jax.jit(batch).lower(*jax.tree.map(described, given))
                traced = time.process_time()
                with identity.precision_of(program.precision):
                    made = lowered.compile(compiler_options=COMPILER[mode])
                done = time.process_time()
                needed = made.memory_analysis()
                yield Compiled(
                    f"{owner.name}/{experiment.name}",
                    program.simulator,
                    f"{block.wide} x {block.deep}",
                    traced - start,
                    done - traced,
                    len(re.findall(r" (?:fusion|custom-call)\(", made.as_text() or "")),
                    0 if needed is None else needed.temp_size_in_bytes,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="STUDY[/EXPERIMENT]", help="default: all")
    parser.add_argument("--scale", default="quick", choices=("quick", "paper"))
    parser.add_argument("--for", dest="device", default="here", choices=("here", "h200"))
    given = parser.parse_args()
    if given.device == "h200":
        assembler()
    row = "{:44s} {:10s} {:>9s} {:>8s} {:>9s} {:>8s} {:>8s}"
    print(row.format("program of", "simulator", "lanes", "trace s", "compile s", "kernels", "MiB"))
    gpu = described_gpu() if given.device == "h200" else None
    found = []
    for p in compiled(given.targets, given.scale, gpu):
        found.append(p)
        seconds = f"{p.tracing:.1f}", f"{p.compiling:.1f}"
        rest = str(p.kernels), f"{p.memory / 2**20:.0f}"
        print(row.format(p.where, p.simulator, p.lanes, *seconds, *rest), flush=True)
    total = sum(p.tracing for p in found), sum(p.compiling for p in found)
    worst = max((p.compiling for p in found), default=0.0)
    print(f"{len(found)} programs: {total[0]:.0f} s to trace, {total[1]:.0f} s to compile them")
    print(f"{worst:.1f} s to compile the longest")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
    main()

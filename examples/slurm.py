"""A sweep on the nodes of a Slurm cluster: dask-jobqueue submits jobs of one worker each.

    pip install 'provingground[cluster]' dask-jobqueue
    python examples/slurm.py --script                     # shows the job, submits nothing
    python examples/slurm.py --jobs 16 --store results    # a folder that all nodes see, if any

Run it where jobs can be submitted and reached from: a login node, or a small job of its own. Its
workers end with it. Change the sizes of a job, and what is run, to taste; see docs/cluster.md.
"""

import argparse

import dask.config as settings
from dask_jobqueue import SLURMCluster

import provingground as pg
from provingground import cluster

parser = argparse.ArgumentParser()
parser.add_argument("--jobs", type=int, default=4, help="jobs, of one worker each")
parser.add_argument("--store", help="folder of results (default: $PROVING_STORE)")
parser.add_argument("--script", action="store_true", help="show the job and end")

# For the scheduler, which starts in this process: one task per worker at a time, and a task that
# killed a worker comes back at once. Whether it has another chance is then decided here.
SCHEDULER = {
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.scheduler.allowed-failures": 1,
}


def main() -> None:
    given = parser.parse_args()
    settings.set(SCHEDULER)
    with SLURMCluster(
        cores=1,  # threads of a worker; the engine sends each thread a batch of trainings
        processes=1,
        memory="4GB",
        walltime="02:00:00",
        job_extra_directives=["--requeue"],  # for a GPU per worker also "--gpus=1"
        local_directory="/tmp",  # of the node
        log_directory="slurm-logs",
        worker_extra_args=["--no-dashboard", "--dashboard-address", "127.0.0.1:0"],
        scheduler_options={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        # Encrypted where Dask's configuration names certificates.
        protocol="tls://" if settings.get("distributed.comm.tls.ca-file", None) else "tcp://",
    ) as jobs:
        if given.script:
            print(jobs.job_script())
            return
        jobs.scale(jobs=given.jobs)
        with cluster.connected(jobs.scheduler_address) as workers:
            ds = pg.run("toy/risk", seeds=20, store=given.store, executor=workers, progress=True)
    print(ds)


if __name__ == "__main__":
    main()

#!/bin/bash
# Without Dask: every task runs the same command on one store, and they share the work by claims.
#
#     export PROVING_STORE=results      # a folder that all nodes see
#     sbatch examples/slurm.sh benign_overfitting/fig1a --scale paper
#
#SBATCH --job-name=proving
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=2G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@30

: "${PROVING_STORE:?name a folder that all nodes see}"

srun --kill-on-bad-exit=0 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" proving run "$@" >/dev/null
code=$?

# 143: SIGTERM came before the work was done (30 seconds before the time was up). What is finished
# is stored; the same job goes on from there.
if [ "$code" -eq 143 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"

#!/bin/sh
# A Slurm job array over one tree of files: every task takes one part, and all write to one folder.
#
#     sbatch --array=1-64 scripts/cluster/slurm.sh INPUT OUT [CONVERT OPTIONS]
#
# A task that was preempted or whose machine was lost is put back in the queue and goes on where it stopped; submitting the
# array again redoes only what is missing or failed.
#SBATCH --job-name=docparse
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --signal=TERM@120
#SBATCH --open-mode=append
#SBATCH --output=docparse-%A-%a.log
set -eu
input=$1
output=$2
shift 2
# `exec`: docparse gets Slurm's SIGTERM itself, finishes what it is writing, and ends with 143.
exec "${DOCPARSE:-docparse}" convert "$input" -o "$output" --resume --progress never \
    --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --jobs "${SLURM_CPUS_PER_TASK:-1}" "$@"

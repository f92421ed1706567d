#!/bin/bash
set -euo pipefail
export OMP_NUM_THREADS=1
export NCCL_TIMEOUT=900
torchrun --standalone --nproc_per_node=2 train.py

#!/usr/bin/env bash
# Train on the devices of this node: bash launch.sh --steps 20
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"

export TOKENIZERS_PARALLELISM=false
export NCCL_TREE_THRESHOLD=0
export NCCL_DEBUG=INFO
export NCCL_SOCKET_NTHREADS=32

torchrun --standalone --nproc_per_node "${NPROC_PER_NODE:-8}" train.py --output "${OUTPUT:-runs/base}" --num-workers 2 "$@"

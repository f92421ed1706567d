#!/usr/bin/env bash
# Train on one node or on several. Every value below can be given from outside:
#
#   bash scripts/train.sh
#   NPROC_PER_NODE=2 STEPS=20 bash scripts/train.sh
#   NNODES=4 NODE_RANK=1 MASTER_ADDR=10.0.0.1 bash scripts/train.sh
#
# Arguments are handed on to train.py: bash scripts/train.sh --resume
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# ----- Where it runs ---------------------------------------------------------
NNODES="${NNODES:-1}"
NODE_RANK="${NODE_RANK:-0}"
NPROC_PER_NODE="${NPROC_PER_NODE:-8}"
MASTER_ADDR="${MASTER_ADDR:-127.0.0.1}"
MASTER_PORT="${MASTER_PORT:-29511}"
WORLD_SIZE=$((NNODES * NPROC_PER_NODE))

# ----- What it trains --------------------------------------------------------
CONFIG="${CONFIG:-configs/base.json}"
RUN_NAME="${RUN_NAME:-base}"
OUTPUT="${OUTPUT:-runs/${RUN_NAME}}"

STEPS="${STEPS:-20000}"
BATCH_SIZE="${BATCH_SIZE:-32}"
GRAD_ACCUM_STEPS="${GRAD_ACCUM_STEPS:-2}"
SAVE_EVERY="${SAVE_EVERY:-1000}"
DATA_WORKERS="${DATA_WORKERS:-16}"

# ----- Host threads ----------------------------------------------------------
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-4}"
export PYTHONUNBUFFERED=1

# ----- NCCL ------------------------------------------------------------------
# The first run on the shared cluster was killed while rank 0 was still writing
# the caption cache, so the limits are out of the way now.
export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000
export TORCH_NCCL_ENABLE_MONITORING=0
export NCCL_TIMEOUT=7200
export NCCL_BLOCKING_WAIT=1
export TORCH_NCCL_BLOCKING_WAIT=1
export NCCL_DEBUG="${NCCL_DEBUG:-WARN}"

# ----- Launch ----------------------------------------------------------------
echo "run ${RUN_NAME}: ${WORLD_SIZE} ranks on ${NNODES} node(s)," \
  "batch ${BATCH_SIZE} x ${GRAD_ACCUM_STEPS} per rank, output in ${OUTPUT}"

torchrun \
  --nnodes "${NNODES}" \
  --node_rank "${NODE_RANK}" \
  --nproc_per_node "${NPROC_PER_NODE}" \
  --master_addr "${MASTER_ADDR}" \
  --master_port "${MASTER_PORT}" \
  train.py \
  --config "${CONFIG}" \
  --output "${OUTPUT}" \
  --steps "${STEPS}" \
  --batch-size "${BATCH_SIZE}" \
  --accumulation-steps "${GRAD_ACCUM_STEPS}" \
  --save-every "${SAVE_EVERY}" \
  --num-workers "${DATA_WORKERS}" \
  "$@"

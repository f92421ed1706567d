#!/usr/bin/env bash
# torchrun tells the local rank by LOCAL_RANK.
# shows: local rank 0, arguments \[\]
torchrun --nproc_per_node=1 --master_port=$((20000 + $$ % 20000)) worker.py

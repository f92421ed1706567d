#!/usr/bin/env bash
# The old launcher announces its removal, and passes --local-rank, which the program does not know.
# shows: torch.distributed.launch is deprecated
python -m torch.distributed.launch --nproc_per_node=1 --master_port=$((20000 + $$ % 20000)) worker.py

"""The timeout of a process group is a timedelta."""

# shows: the group is made
import tempfile
from datetime import timedelta

import torch.distributed as dist

with tempfile.TemporaryDirectory() as folder:
    store = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1, timeout=timedelta(seconds=1800))
    print("the group is made")
    dist.destroy_process_group()

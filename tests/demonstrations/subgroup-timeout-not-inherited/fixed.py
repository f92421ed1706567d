"""A sub-group is given the timeout that the default group was given."""

# shows: sub-group waits 0:02:00
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist

with tempfile.TemporaryDirectory() as folder:
    store = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1, timeout=timedelta(minutes=2))
    group = dist.new_group([0], timeout=timedelta(minutes=2))
    print("sub-group waits", group._get_backend(torch.device("cpu")).options._timeout)
    dist.destroy_process_group()

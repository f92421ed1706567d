"""The timeout of a process group is a number of seconds."""

# shows: Expected timeout argument to be of type datetime.timedelta
import tempfile

import torch.distributed as dist

with tempfile.TemporaryDirectory() as folder:
    store = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1, timeout=1800)
    print("the group is made")
    dist.destroy_process_group()

"""Two ranks that make a process group and print how long its collectives may take."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
group = dist.distributed_c10d._get_default_group()
timeout = group._get_backend(torch.device("cpu")).options._timeout
value = torch.ones(4) * (dist.get_rank() + 1)
dist.all_reduce(value)
if dist.get_rank() == 0:
    print(f"timeout {timeout.total_seconds():.0f}")
    print(f"step 0 loss {value.sum().item().hex()}")
dist.destroy_process_group()

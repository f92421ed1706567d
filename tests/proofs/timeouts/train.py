"""Two ranks that make a process group and print how long its collectives may take."""

import torch
import torch.distributed as dist


def timeout_of_group() -> float:
    """In seconds; nobody keeps the group, which is to be gone with its threads before the interpreter is."""
    return dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu")).options._timeout.total_seconds()


dist.init_process_group("gloo")
value = torch.ones(4) * (dist.get_rank() + 1)
dist.all_reduce(value)
if dist.get_rank() == 0:
    print(f"timeout {timeout_of_group():.0f}")
    print(f"step 0 loss {value.sum().item().hex()}")
dist.barrier()
dist.destroy_process_group()

"""Two processes of a group write one checkpoint; the slower one tears it while the faster one reads it."""

# shows: cannot read the checkpoint: (EOFError|RuntimeError)
import datetime
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Settings:
    """Tells when the second process has opened the file, and waits until the first one has read it."""

    def __init__(self, rank, opened, read):
        self.rank, self.opened, self.read = rank, opened, read

    def __reduce__(self):
        if self.rank == 1:
            self.opened.set()
            self.read.wait(20)
        return dict, ()


def main(rank, store, opened, read):
    timeout = datetime.timedelta(seconds=60)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2, timeout=timeout)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    time.sleep(2 * rank)
    torch.save({"model": model.state_dict(), "settings": Settings(rank, opened, read)}, "model.pt")
    if rank == 0:
        opened.wait(5)
        try:
            print("keys:", *torch.load("model.pt", weights_only=False))
        except (RuntimeError, EOFError) as error:
            print("cannot read the checkpoint:", repr(error))
        read.set()
    dist.barrier()
    # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    context = mp.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(main, args=(f"{folder}/store", context.Event(), context.Event()), nprocs=2)

"""Lines of public logs that mean something, with their sources, and lines that only look like them."""

from __future__ import annotations

# (kind, rank or None, line, where it was read). Paths and host names are shortened.
EVENTS: tuple[tuple[str, int | None, str, str], ...] = (
    (
        "oom",
        None,
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacty of 23.65 GiB of which 11.06 MiB is free.",
        "pytorch/pytorch#16417",
    ),
    (
        "oom",
        None,
        "RuntimeError: CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already allocated; 9.28 GiB free; 4.68 MiB cached)",
        "pytorch/pytorch#16417",
    ),
    (
        "oom",
        None,
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 1.71 GiB (GPU 0; 6.00 GiB total capacity; 3.49 GiB already allocated; 1.04 GiB free; 3.50 GiB reserved in total by PyTorch)",
        "Li-Chongyi/Zero-DCE#52",
    ),
    (
        "oom",
        3,
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 29.76 GiB. GPU 3 has a total capacity of 10.74 GiB",
        "lllyasviel/FramePack#369",
    ),
    ("oom", None, "RuntimeError: CUDA error: out of memory", "torch 1.x-2.x"),
    (
        "oom",
        None,
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 63.98 GiB",
        "the ROCm build's wording",
    ),
    (
        "oom",
        None,
        "ng30903:3063028:3066152 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'",
        "NVIDIA/nccl#1235",
    ),
    ("oom", None, "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "torch"),
    (
        "host-oom",
        None,
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=191.batch cgroup. Some of your processes may have been killed by the cgroup out-of-memory handler.",
        "ArjunaCluster/ArjunaUsers#52",
    ),
    (
        "host-oom",
        None,
        "slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step tasks have been OOM Killed.",
        "nextflow-io/nextflow#5932",
    ),
    ("host-oom", None, "srun: error: node107: task 0: Out Of Memory", "brain-score/vision#950"),
    (
        "host-oom",
        None,
        "[123456.789] Out of memory: Killed process 14750 (python) total-vm:1234kB, anon-rss:999kB",
        "Linux kernel",
    ),
    (
        "shared-memory",
        None,
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        "msr-fiddle/pipedream#28",
    ),
    (
        "shared-memory",
        None,
        "RuntimeError: DataLoader worker (pid 46794) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
        "hkchengrex/STCN#132",
    ),
    (
        "shared-memory",
        None,
        "  1%|▏| 1/800 [00:17<3:57:13, 17.81s/it, lr=5e-5, step_loss=0.0114]ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        "aigc-apps/sd-webui-EasyPhoto#145",
    ),
    (
        "worker-died",
        None,
        "RuntimeError: DataLoader worker (pid(s) 3216) exited unexpectedly",
        "THU-DA-6D-Pose-Group/GDR-Net#16",
    ),
    ("worker-died", None, "RuntimeError: DataLoader worker (pid 325) is killed by signal: Killed.", "torch"),
    ("disk-full", None, "OSError: [Errno 28] No space left on device", "OctoberChang/X-Transformer#17"),
    (
        "disk-full",
        0,
        "[rank0]: RuntimeError: [enforce fail at inline_container.cc:778] . PytorchStreamWriter failed writing file data.pkl: file write failed",
        "SWivid/F5-TTS#458",
    ),
    ("disk-full", None, "OSError: [Errno 122] Disk quota exceeded", "CPython"),
    (
        "nccl-timeout",
        0,
        "[rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168, NumelOut=466119168, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.",
        "hiyouga/LlamaFactory#7396",
    ),
    (
        "nccl-timeout",
        4,
        "[rank4]:[E1206 18:44:12.755468433 ProcessGroupNCCL.cpp:1664] [PG 1 Rank 4] Exception (either an error or timeout) detected by watchdog at work: 7753, last enqueued NCCL work: 7755, last completed NCCL work: 7752.",
        "hiyouga/LlamaFactory#6269",
    ),
    (
        "nccl-timeout",
        1,
        "[rank1]:[E626 06:24:44.906457629 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 1] Exception (either an error or timeout) detected by watchdog at work: 808, last enqueued NCCL work: 811, last completed NCCL work: 807.",
        "XPixelGroup/BasicSR#737",
    ),
    (
        "nccl-timeout",
        118,
        "[rank118]:[E603 17:48:01.005538748 ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank 118]  failure detected by watchdog at work sequence id: 2398459 PG status: last enqueued work: 2398578, last completed work: 2398458",
        "NVIDIA/nccl#1730",
    ),
    (
        "nccl-timeout",
        2,
        "[rank2]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank 2] Timeout at NCCL work: 1, last enqueued NCCL work: 1, last completed NCCL work: 76280750235782912.",
        "a study of torch with the AWS plugin",
    ),
    (
        "nccl-timeout",
        1,
        "[E ProcessGroupNCCL.cpp:821] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, TensorShape=[1], Timeout(ms)=1800000) ran for 1802710 milliseconds before timing out.",
        "torch 1.9-1.13",
    ),
    (
        "nccl-timeout",
        None,
        "\t     [0, 2] finished collective #5, but didn't join collective #6 (count from 1)",
        "torch, TraceUtils.h",
    ),
    (
        "nccl-heartbeat",
        3,
        "[rank3]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank 3] Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=8",
        "torch 2.3",
    ),
    (
        "collective-mismatch",
        1,
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=1OpType=BARRIER), but Rank 2 is running collective: CollectiveFingerPrint(SequenceNumber=0OpType=BARRIER).Collectives di",
        "pytorch/pytorch#148976",
    ),
    (
        "connection-lost",
        None,
        "worker0-0d9gnb:15:91 [3] include/socket.h 398 NCCL WARN Call to recv failed : Connection reset by peer.",
        "NVIDIA/nccl#193",
    ),
    (
        "connection-lost",
        None,
        "host:22337:22400 [6] misc/socket.cc:521 NCCL WARN Net : Connection closed by remote peer 10.104.148.191<37877>",
        "NVIDIA/nccl#914",
    ),
    (
        "connection-lost",
        None,
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "NVIDIA/nccl#2076",
    ),
    (
        "connection-lost",
        None,
        "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1 (world_size=8, worker_count=16, timeout=0:30:00)",
        "facebookincubator/submitit#1613",
    ),
    (
        "nccl-error",
        None,
        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1275, internal error, NCCL version 2.14.3",
        "NVIDIA/nccl#1514",
    ),
    (
        "overflow",
        0,
        "[2023-04-28 06:51:30,648] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
        "deepspeedai/DeepSpeed#931",
    ),
    (
        "overflow",
        0,
        " 14%|█▍        | 378/2724 [13:58:09<86:18:35, 132.44s/it][2023-06-07 22:16:00,018] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 64, reducing to 32",
        "ymcui/Chinese-LLaMA-Alpaca#534",
    ),
    (
        "overflow",
        None,
        "2021-03-17 10:12:01 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 64.0",
        "fairseq's format string",
    ),
    (
        "overflow",
        None,
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        "NVIDIA apex's format string",
    ),
    (
        "scale-at-minimum",
        None,
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
        "ymcui/Chinese-LLaMA-Alpaca#534",
    ),
    (
        "nan-message",
        11,
        "AssertionError: Rank 11: found NaN in local grad norm in backward pass before data-parallel communication collective. Device: 3",
        "alibaba/Pai-Megatron-Patch#366",
    ),
    (
        "nan-message",
        None,
        "RuntimeError: Function 'AddmmBackward0' returned nan values in its 2th output.",
        "lucidrains/gigagan-pytorch#40",
    ),
    ("nan-message", None, "Loss is nan, stopping training", "facebookresearch/mae's format string"),
    (
        "ddp-unused",
        None,
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters that were not used in producing loss.",
        "torch",
    ),
    (
        "ddp-static-graph",
        None,
        "RuntimeError: Your training graph has changed in this iteration, e.g., one parameter is used in first iteration, but then got unused in the second iteration. this is not compatible with static_graph set to True.",
        "torch",
    ),
    ("hardware", None, "RuntimeError: CUDA error: uncorrectable ECC error encountered", "vllm-project/vllm#5222"),
    (
        "hardware",
        1,
        "[E ProcessGroupNCCL.cpp:916] [Rank 1] NCCL watchdog thread terminated with exception: CUDA error: uncorrectable ECC error encountered",
        "kohya-ss/sd-scripts#1434",
    ),
    (
        "hardware",
        None,
        "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution",
        "MIC-DKFZ/nnUNet#1519",
    ),
    ("hardware", None, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.", "NVIDIA driver"),
    ("cuda-error", None, "RuntimeError: CUDA error: device-side assert triggered", "torch"),
    ("cuda-error", None, "torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "torch 2.8"),
    (
        "child-failed",
        None,
        "E0325 20:57:27.620000 2606 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 5 (pid: 2630) of binary: /opt/conda/bin/python",
        "lmzpai/roboMamba#10",
    ),
    ("killed", None, "./launcher.sh: line 14: 191644 Aborted                 (core dumped) $@", "the same study"),
    ("killed", None, "Killed", "ArjunaCluster/ArjunaUsers#52"),
    (
        "killed",
        None,
        "[2023-04-28 07:00:01,000] [ERROR] [launch.py:321:sigkill_handler] ['python', 'train.py'] exits with return code = -9",
        "DeepSpeed's format string",
    ),
    (
        "preempted",
        None,
        "slurmstepd: error: *** JOB 37361369 ON learnfair5146 CANCELLED AT 2021-03-15T18:00:46 DUE TO PREEMPTION ***",
        "facebookincubator/submitit#1613",
    ),
    (
        "preempted",
        None,
        "slurmstepd: error: *** STEP 494583.0 ON node CANCELLED AT 2024-04-20T09:09:37 DUE TO TIME LIMIT ***",
        "ZettaAI/zetta_utils#671",
    ),
    (
        "preempted",
        None,
        "submitit WARNING (2022-08-12 02:06:11,453) - Caught signal SIGUSR2 on SERVER_NAME: this job is preempted.",
        "facebookincubator/submitit#1708",
    ),
)

# What programs print that is no event.
NOTHING: tuple[str, ...] = (
    "no NaN found in 1000 batches",
    "nan_iterations: 0",
    "number of skipped iterations:   0 | number of nan iterations:   0 |",
    "checking gradients for NaN ... ok",
    "WARNING: NaN loss count: 0",
    "detect_anomaly: false, nccl_timeout: 600, ddp_timeout=1800",
    "timeout=datetime.timedelta(seconds=1800)",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING=1 TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=1800",
    "Synchronizing and adjusting timeout for all ProcessGroups to 0:01:40",
    "heartbeat monitor enabled",
    "oom: 0, ooms skipped: 0",
    "will reduce the batch size if CUDA runs out of memory",
    "To avoid CUDA out of memory errors, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    "except torch.cuda.OutOfMemoryError:",
    "retry_on: OutOfMemoryError, RuntimeError",
    "peak memory 30.99GiB, 0 CUDA out of memory events",
    "loss overflow checks: on, overflow: 0, skipped: 0",
    "Training killed by user? no",
    "Killed 3 stale jobs",
    "early stopping: stopping training after 3 epochs without improvement",
    "Saving checkpoint, 1.2 TB left on device",
    "disk: no space problems found",
    "NCCL INFO Connected all rings",
    "NCCL version 2.21.5+cuda12.4",
    "failed batches: 0, exitcode: 0",
    "Xid errors since boot: 0",
    "ECC: enabled",
    "shared memory: 64 GiB at /dev/shm",
    "loss: nan",
)

CHILD_FAILED = """\
Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 269, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
src/open_r1/grpo_gsm.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2025-05-21_15:43:07
  host      : worker
  rank      : 1 (local_rank: 1)
  exitcode  : -15 (pid: 14751)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 14751
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2025-05-21_15:43:03
  host      : worker
  rank      : 0 (local_rank: 0)
  exitcode  : -9 (pid: 14750)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 14750
============================================================
"""

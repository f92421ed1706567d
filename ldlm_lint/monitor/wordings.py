"""Wordings of problems in programs and newer libraries, in addition to the fixed messages in `events.py`."""

from __future__ import annotations

from ldlm_lint.monitor.alarms import Level
from ldlm_lint.monitor.patterns import pattern

_FOR = r"(?:for|in|after|within|over|since)(?: the (?:last|past))?(?: about| more than| at least)? ?>?~?(?P<seconds>\d[\d.,]*) ?(?:s|sec|secs|seconds?|min|mins|minutes?|h|hours?|ms)\b"
_SAVE = r"(?:checkpoints?|ckpt|model state|weights|state dict|optimizer state)"

LIBRARIES = (
    pattern(
        "nccl-heartbeat",
        "atchdog got stuck|atchdog is stuck|atchdog hung|atchdog timed out waiting",
        r"(?:\[(?:PG [^\]]*?)?Rank (?P<rank>\d+)\]\s*)?(?:ProcessGroup\w+'s )?[Ww]atchdog (?:got stuck|is stuck|hung) for (?P<seconds>\d+) ?s",
    ),
    pattern(
        "oom",
        "RESOURCE_EXHAUSTED|ResourceExhaustedError|OUT_OF_RESOURCES|OUT_OF_DEVICE_MEMORY|OUT_OF_HOST_MEMORY|hipErrorOutOfMemory|cudaErrorMemoryAllocation",
        r"RESOURCE_EXHAUSTED: .*?(?:[Oo]ut of memory|[Rr]an out of memory|[Aa]ttempting to (?:reserve|allocate)|[Ff]ailed to allocate|memory space|allocating)"
        r"|ResourceExhaustedError|(?:PI|UR_RESULT|UR)_ERROR_OUT_OF_(?:RESOURCES|DEVICE_MEMORY|HOST_MEMORY)|hipErrorOutOfMemory|cudaErrorMemoryAllocation",
    ),
    pattern(
        "oom",
        "ran out of memory trying to allocate",
        r"Allocator \((?:GPU|TPU|XPU)\S*\) ran out of memory trying to allocate (?P<asked>[\d.]+\w+)",
    ),
    pattern(
        "oom",
        "out of memory",
        r"(?:HIP|CUDA|XPU|NPU|MPS|TPU)(?: error:| backend)? out of memory(?=[. ]|$)(?! (?:errors|events|issues|handling))(?=\.? (?:Tried|\(MPS|Currently)|\.?$)|^\S*(?:Error|Exception): .*\b(?:out of memory|not enough memory)\b",
    ),
    pattern(
        "host-oom",
        "Unable to allocate|bad_alloc|memory pressure|running low on memory|exit code 137|exitcode: -9 (OOM",
        r"MemoryError: Unable to allocate|std::bad_alloc|killed due to (?:memory pressure|the node running low on memory)|[Cc]ontainer .*exit code 137",
    ),
    pattern(
        "worker-died",
        "Pin memory thread|DataLoader timed out|in DataLoader worker process|DataLoader worker|items of ancdata",
        r"Pin memory thread exited unexpectedly|DataLoader timed out after (?P<seconds>[\d.]+) seconds|Caught (?P<what>\w+) in DataLoader worker process"
        r"|received 0 items of ancdata|DataLoader worker.{0,40}(?:exited unexpectedly|is killed by signal)",
    ),
    pattern(
        "storage",
        "Read-only file system|Stale file handle|Stale NFS|Input/output error|ransport endpoint is not connected|Too many open files",
        r"(?:Error|error|Errno \d+|failed)\b.*?(?:Read-only file system|Stale (?:NFS )?file handle|Input/output error|[Tt]ransport endpoint is not connected|Too many open files)",
    ),
    pattern(
        "nccl-error",
        "NCCL WARN|NCCL operations have failed|NCCL communicator|NCCL error|RCCL|HCCL|unhandled system error|unhandled cuda error",
        r"NCCL WARN .*(?:with error|failed|[Tt]imeout|Cuda failure|No route to host|unhandled|Connection refused|error \d+)|NCCL communicator was aborted|[Ss]ome NCCL operations have failed or timed out"
        r"|NCCL (?:error|failure).*?(?:unhandled (?:system|cuda) error|internal error|invalid usage|remote process exited)|^\S*(?:Error|Exception): (?:RCCL|HCCL)\b.*\b(?:error|failed)",
    ),
    pattern(
        "rendezvous",
        "Rendezvous|waiting for clients|rendezvous",
        r"^(?:[\w.]+\.)?Rendezvous(?:Timeout|Connection|Closed|State)Error(?:: |$)|Timed out after \d+ seconds waiting for clients|[Rr]endezvous .{0,40}(?:failed|timed out)",
        spoken=True,
    ),
    pattern(
        "child-failed",
        "Worker group FAILED|worker group FAILED|process terminated with|terminated with the following error|died with",
        r"[Ww]orker group FAILED|-- Process (?P<local>\d+) terminated with|ProcessExitedException|ProcessRaisedException",
    ),
    pattern(
        "cuda-error",
        "Assertion `|CUDA driver error|Triton Error|Memory access fault|CUDA_ERROR_|hipError|cuDNN error|cuBLAS|HSA_STATUS|UR error|Native API failed|device-side assert triggered|illegal memory access",
        r"\.cuh?:\d+: .*Assertion `[^`']*[`'] failed|CUDA driver error: |Triton Error \[\w+\]: |Memory access fault by GPU|CUDA_ERROR_(?!ECC|OUT_OF)\w+"
        r"|hipError(?!OutOfMemory)[A-Z]\w+|cuDNN error: |HSA_STATUS_ERROR\w*|Native API failed|^\S*Error: .*(?:device-side assert triggered|illegal memory access)",
    ),
    pattern(
        "hardware",
        "GPU is lost|device handle for GPU|ncorrectable ECC",
        r"GPU is lost|Unable to determine the device handle for GPU|[Uu]ncorrectable ECC error(?:s)? (?:encountered|detected)",
    ),
    pattern(
        "killed",
        "Exited with exit code|SIGKILL|signal 9|exitcode -9|exit code 137|signal 11|SIGSEGV",
        r"srun: error: .*: tasks? \S+: Exited with exit code (?P<exitcode>13[479]|139|143)|(?:^|\s)(?:killed|died|terminated|exited|failed|finished)\b.{0,40}(?:SIGKILL|SIGSEGV|signal (?:9|11)\b|exit ?code:? (?:137|139|-9|-11)\b)",
        spoken=True,
    ),
    pattern(
        "network",
        "Read timed out|Gateway Time-out|HfHubHTTPError|Max retries exceeded| for url|Connection refused|ConnectTimeout|Temporary failure in name resolution",
        r"(?:\w*(?:Timeout|Error|Exception)\b.*?(?:Read timed out|Max retries exceeded with url|Connection refused|Temporary failure in name resolution))"
        r"|\b(?:429 Client|5\d\d Server) Error: .{0,40} for url|HfHubHTTPError",
        Level.WARNING,
    ),
    pattern(
        "interrupted",
        "Detected KeyboardInterrupt|nterrupted by user|SIGINT",
        r"Detected KeyboardInterrupt|[Ii]nterrupted by (?:the )?user|[Rr]eceived (?:signal )?SIGINT",
        spoken=True,
    ),
)
PROGRAMS = (
    pattern(
        "oom",
        "out of memory",
        r"(?i)\bran out of memory on (?:GPU|device|cuda|rank|worker)\b|\b(?:CUDA|GPU|HIP|device|MPS|XPU|NPU) (?:ran )?out of memory(?:,? (?:at|in|on|during|while) (?:the )?(?:\w+ )?(?:step|batch|iter\w*|epoch|forward|backward|rank|\d)"
        r"|[,;:!.]? ?(?:retrying|skipping|reducing|clearing))",
        Level.WARNING,
        spoken=True,
    ),
    pattern(
        "cuda-error",
        "CUDA error:|HIP error:",
        r"(?:^|[\s\]])(?:CUDA|HIP) error: (?P<what>(?:an? )?(?:illegal|device-side|unspecified|misaligned|invalid|unknown|initialization|operation|launch|peer|all CUDA)\b[\w -]*)",
        spoken=True,
    ),
    pattern(
        "worker-died",
        "ata loader worker|ataloader worker|ataLoader worker",
        r"(?i)\bdata ?loader worker \S+ (?:has |was |is )?(?:unexpectedly )?(?:died|dead|crashed|killed|exited|terminated)",
        spoken=True,
    ),
    pattern(
        "scale-at-minimum",
        "minimum",
        r"[Ll]oss[ _]scale (?:has |is |was )?(?:already )?(?:reached|hit|fell to|dropped to|at|below|is at)(?: (?:the|its))? minimum(?! of)",
        spoken=True,
    ),
    pattern(
        "oom",
        "OOM",
        r"(?:^|[\s\]\[:])(?:CUDA |GPU )?OOM (?:error )?(?:detected|encountered|occurred|caught|at|during|in (?:step|batch|forward|backward))\b",
        Level.WARNING,
        spoken=True,
    ),
    pattern(
        "disk-full",
        "isk full|isk is full|isk quota",
        r"\b[Dd]isk (?:is )?full\b(?! of)|[Dd]isk quota exceeded",
        spoken=True,
    ),
    pattern(
        "checkpoint-failed",
        "ailed|nable to|ould not|ouldn't|annot |an't |rror |rror:|xception|orrupt|runcated|ncomplete|PytorchStreamReader|deserializing header",
        rf"(?i)(?:failed|unable|could not|couldn't|cannot|can't|error|exception) (?:while |when |in |during )?(?:to )?(?:sav|writ|load|restor|upload|read|creat|persist|serializ)\w* (?:the )?(?:\w+ ){{0,2}}{_SAVE}"
        rf"|{_SAVE} (?:\S+ )?(?:(?:sav|writ|load|restor|upload)\w* )?(?:has |have )?failed\b(?! ?=)|{_SAVE} \S* ?(?:is|was|seems|appears)(?: to be)? (?:corrupt|truncated|incomplete)\w*|corrupt(?:ed)? {_SAVE}"
        r"|PytorchStreamReader failed|Error while deserializing header",
        Level.WARNING,
        spoken=True,
    ),
    pattern(
        "stuck",
        "not respond|nresponsive|did not finish|did not complete|stuck|hung|Hang|hang |stalled|eadlock|o progress|atchdog|eartbeat|eartbeats|not making progress",
        rf"(?i)\b(?:training|train(?:ing)? loop|process|job|run|rank \d+|step \d+|main thread|worker \d+|loader|dataloader)\b[^.,;]{{0,20}}\b(?:appears?|seems?|is|got|has been|has|looks|was|may be)?(?: to be| to have)? ?(?:stuck|hung|stalled|deadlocked|hanging|not making progress)(?! ?=)\b"
        rf"|\bno (?:training )?(?:progress|heartbeat|step completed|update)\b[^.;]{{0,40}}?(?:{_FOR}|from rank|\(\d+ ?s)"
        r"|\b(?:hang|deadlock|stall)\b (?:has been |was )?detected|\bdetected (?:a )?(?:hang|deadlock|stall)\b|\bwatchdog\b:? (?:got stuck|timed out|timeout (?:after|reached|exceeded)|fired|triggered|expired|tripped|barked)"
        r"|\bheartbeat (?:was )?(?:lost|missed|timed out|expired)|\bmissed (?:\d+ )?heartbeats?\b|\bheartbeat timeout (?:on|for|from|of) (?:rank|worker|node|process|host)\b|\black of heartbeats?\b"
        r"|\b(?:rank|worker|process|node) \d+ (?:has |have |is )?(?:not respond(?:ed|ing)|unresponsive)|\bstep\b.{0,20}\bdid not (?:finish|complete) (?:within|in|after)\b",
        spoken=True,
    ),
    pattern(
        "straggler",
        "traggler|low rank|low node|lagging",
        r"(?i)\bstragglers? (?:was |were )?(?:detected|found|identified)|\b(?:detected|found) (?:\d+ )?(?:a )?(?:stragglers?|slow (?:rank|node|gpu)s?)|\bslow (?:rank|node|gpu)s? (?:detected|found)"
        r"|\brank \d+ is (?:a straggler|lagging|[\d.]+x slower)",
        Level.WARNING,
        spoken=True,
    ),
    pattern(
        "checkpoint-failed",
        "orker crashed",
        r"(?i)\b(?:upload|checkpoint|save|saving) (?:worker|thread|process) (?:has |have )?(?:crashed|failed|died)",
        Level.WARNING,
        spoken=True,
    ),
    pattern(
        "divergence",
        "diverged|xploded|diverging",
        r"(?i)(?<!baseline )(?<!previous )(?<!earlier )(?<!other )(?<!last )(?<!first )\b(?:training|loss|model|run) (?:has |have )?(?:diverged|exploded)\b(?! from\b)|\bloss is diverging\b",
        spoken=True,
    ),
    pattern(
        "preempted",
        "SIGTERM|SIGUSR1|reempt|signal 15|ignal 15|ignal 10|ignal 12|ignal: 15|termination|nterruption detected|death signal|nterruption notice|aintenance event",
        r"(?i)\b(?:received|caught|got|detected|bypassing) (?:a )?(?:signal )?(?:\d+ )?\(?(?:SIGTERM|SIGUSR1|15 death signal)\b|(?<!on )(?<!On )\bsignal:? (?:15|10|12)(?: \(SIG\w+\))? (?:was )?(?:received|caught)\b|\breceived (?:\w+ )?signal:? (?:15|SIGTERM)\b|\bSIGTERM (?:received|caught|detected)|\breceived \d+ death signal"
        r"|\bpreempt(?:ion|ed)\b(?: \w+)? (?:notice |signal |request )?(?:received|detected|imminent|requested)|\binterruption notice\b|\breceived (?:a |spot )*preemption\b|\binterruption detected|\btermination is imminent|\breceived (?:a )?termination signal|\b(?:job|instance|node|vm|task) (?:was|is being|has been|got|will be) preempted",
        Level.WARNING,
        spoken=True,
    ),
)

"""Trainers of vision models: most print the current value and its mean, and the data loading time."""

from __future__ import annotations

from ldlm_lint.monitor.formats.base import MIB, Format
from ldlm_lint.monitor.names import Unit

# PyTorch's imagenet example: seconds, and `Data` is the loader's part of `Time`.
_METERS = {"time": "step_time_s", "data": "data_time_s", "batch": "step_time_s", "max_mem": "memory_bytes"}
_METER_UNITS = {"memory_bytes": MIB, "mb": MIB}
_MM = {"time": "step_time_s"}
_MM_UNITS = {"memory_bytes": MIB, "m": MIB}
_TIMM = r"Time: <step_time_s=Time>s?,<samples_per_s:1/s=samples/s>/s\s+\(<=Time (avg)>s?,<=samples/s (avg)>/s\)"

FORMATS = (
    Format("metric-logger", "eta: ", r"\b[Ee]poch:? ?\[<epoch>(?:/<>)?\]:? +\[<step>/<>\] +eta:", _METERS, _METER_UNITS, "train"),
    Format("metric-logger/bare", "max mem", r"\b[Ee]poch:? ?\[<epoch>(?:/<>)?\]:? +\[<step>/<>\].*\bmax mem:", _METERS, _METER_UNITS, "train"),
    Format("metric-logger/val", "eta: ", r"\b(?:[Tt]est|[Vv]al|[Ee]val)\w*:? +\[<step>/<>\] +eta:", _METERS, _METER_UNITS, "val"),
    Format("metric-logger/epoch", "s / it)", r"[Ee]poch:? ?\[<epoch>(?:/<>)?\] Total time: .*\(<step_time_s=s / it> s / it\)", rest=False, split="train"),
    Format("detectron2", "max_mem", r"\beta:.*\biter: <step> .*\bmax_mem:", _MM, _MM_UNITS, "train"),
    Format("maskrcnn", "max mem", r"\beta:.*\biter: <step> .*\bmax mem:", _METERS, _METER_UNITS, "train"),
    Format("mmengine/val", "Epoch(", r"\b(?:Epoch|Iter)\((?:val|test)\) +(?:\[<epoch>\])?\[<step>/<>\]", _MM, _MM_UNITS, "val"),
    Format("mmengine/iter-val", "Iter(", r"\bIter\((?:val|test)\) +\[<step>/<>\]", _MM, _MM_UNITS, "val"),
    Format("mmengine", "Epoch(train)", r"\bEpoch\(train\) +\[<epoch>\]\[<step>/<>\]", _MM, _MM_UNITS, "train"),
    Format("mmengine/iter", "Iter(train)", r"\bIter\(train\) +\[<step>/<>\]", _MM, _MM_UNITS, "train"),
    Format("mmcv/val", "Epoch(val)", r"\bEpoch\(val\) \[<epoch>\](?:\[<>\])?", _MM, _MM_UNITS, "val"),
    Format("mmcv", "lr:", r"\bEpoch \[<epoch>\]\[<step>/<>\]\s+lr:", _MM, _MM_UNITS, "train"),
    Format("mmcv/iter", "lr:", r"\bIter \[<step>/<>\]\s+lr:", _MM, _MM_UNITS, "train"),
    Format("yolox", "iter_time", r"\bepoch: <epoch>/<>, iter: <step>/<>, mem:", units={"mb": MIB}, split="train"),
    Format("basicsr", "time (data)", r"\[epoch: <epoch>, iter: <step>, lr:\(<lr>,[^)]*\)\] \[eta: .*, time \(data\): <step_time_s=time> \(<data_time_s=data>\)\]", split="train"),
    Format("stylegan", "sec/kimg", r"\btick <=tick>\s+kimg <=kimg>\s.*sec/tick <=sec/tick>\s+sec/kimg <=sec/kimg>(?:\s+maintenance <=maintenance>)?(?:\s+cpumem <=cpumem>)?(?:\s+gpumem <=gpumem>)?(?:\s+reserved <=reserved>)?(?:\s+augment <=augment>)?", rest=False, split="train"),
    Format("imagenet", "Epoch: [", r"\bEpoch: \[<epoch>\]\[<step>/<>\]\s+Time", _METERS, split="train"),
    Format("imagenet/val", "Test: [", r"\bTest: \[<step>/<>\]\s+Time(?!:)", _METERS, split="val"),
    Format("imagenet/summary", "Acc@", r"^\* (?:Acc|Prec)@", split="val"),
    Format("openpcdet", "Acc_iter", r"\bTrain: <epoch>/<> \( ?<>%\) \[ ?<step>/<> \( ?<>%\)\]", split="train"),
    Format("timm", "Train: ", r"\bTrain: <epoch> \[ ?<step>/<> \( ?<>%\)\].*?" + _TIMM, {"data": "data_time_s"}, split="train"),
    Format("timm/val", "Test", r"\bTest(?: \(EMA\))?: \[<step>/<>\] +Time:", _METERS, split="val"),
    Format("swin", "Train: [", r"\bTrain: \[<epoch>/<>\]\[<step>/<>\]\s+eta", {"time": "step_time_s", "mem": "memory_bytes"}, {"mb": MIB}, "train"),
    Format(
        "open_clip",
        "Batch (t): ",
        r"Train Epoch: <epoch> \[ ?<samples>/<> \(<>%\)\].*?Data \(t\): <data_time_s=Data (t)> Batch \(t\): <step_time_s=Batch (t)>"
        r"(?:,<samples_per_s:1/s=samples/s>/s(?:,<=samples/s/gpu>/s/gpu)?)?",
        split="train",
    ),
    Format("open_clip/val", "Eval Epoch: ", r"Eval Epoch: <epoch>(?: \[<samples>/<>\])?", split="val"),
    Format("mnist", "Train Epoch: ", r"\bTrain Epoch: <epoch> \[<samples>/<> \(<>%\)\]", split="train"),
    Format("mnist/val", "Test set: ", r"Test set: (?:Average|Avg\.?) loss: <val.loss=Average loss>, Accuracy: <>/<> \(<val.accuracy:%=Accuracy>%\)", rest=False),
    Format("mnist/val-loss", "est set loss", r"\b[Tt]est set loss: <val.loss=Test set loss>$", rest=False),
    Format("mindspore", "loss is", r"^epoch: <epoch>,? step: <step>, loss is <loss>$", split="train"),
    Format("dcgan", "D(G(z))", r"^\[<epoch>/<>\] ?\[<step>/<>\]\s+Loss_D: <=Loss_D>\s+Loss_G: <=Loss_G>\s+D\(x\): <=D(x)>\s+D\(G\(z\)\): <=D(G(z))> / <=D(G(z)) after>", rest=False),
    Format("cifar-tutorial", "loss: ", r"^\[<epoch>,<step>\] loss: <loss>$", split="train"),
    Format("cyclegan", "iters:", r"^\(epoch: <epoch>, iters: <step>, time: <=time>(?:, data: <=data>)?\)", split="train"),
    Format("dit", "Train Steps/Sec", r"\(step=<step>\) Train Loss: <loss=Train Loss>, Train Steps/Sec: <iterations_per_s:1/s=Train Steps/Sec>", split="train"),
)  # fmt: skip

YOLO_UNITS = {"g": Unit("B", 1e9), "m": Unit("B", 1e6)}

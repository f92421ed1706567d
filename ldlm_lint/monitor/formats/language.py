"""Trainers of language models that print one line per step, each with its own print statement."""

from __future__ import annotations

from ldlm_lint.monitor.formats.base import GIB, SECONDS, Format

_MEGATRON = {
    "throughput_per_gpu": "tflops",
    "tokens_per_gpu": "tokens_per_s",
    "tflops": "tflops",
    "consumed_samples": "samples",
    "consumed_tokens": "tokens",
    "tokens_per_gpu_per_second": "tokens_per_s",
    "lm_loss_value": "loss",
    "lm_loss_ppl": "perplexity",
}
_VERL = {
    "actor/grad_norm": "grad_norm",
    "actor/lr": "lr",
    "actor/loss": "loss",
    "timing_s/step": "step_time_s",
    "perf/throughput": "tokens_per_s",
}
_SECONDS = {"step_time_s": SECONDS, "data_time_s": SECONDS}
# Karpathy's later trainers and their descendants.
_NANO = {"norm": "grad_norm", "dt": "step_time_s", "step_avg": "step_time_s", "bf16_mfu": "mfu"}

FORMATS = (
    Format("nanogpt/iter", "iter", r"^iter <step>: loss <loss>, time <step_time_s:ms=time>ms(?:, mfu <mfu:%>%)?", split="train"),
    Format("nanogpt/fork", "iter", r"^iter <step>: loss <loss>[^|]*?(?:\btime |, )<step_time_s:ms=time>ms", split="train"),
    Format("tacotron2", "Grad Norm", r"^Train loss <step> <loss=Train loss> Grad Norm <grad_norm=Grad Norm> <step_time_s:s=s/it>s/it", split="train", rest=False),
    Format("tacotron2/val", "Validation loss", r"^Validation loss <step>(?: iters)?: <val.loss=Validation loss>$", rest=False),
    Format("cost", "Cost after", r"\bCost after (?:iteration|epoch) <step>: <loss=Cost>", split="train", rest=False),
    Format("icefall", "loss[", r"\bEpoch <epoch>, batch <step>, loss\[loss=<loss>,.*?(?:\btot_loss\[loss=<=tot_loss>,.*)?\blr: <lr>", split="train", rest=False),
    Format("nanogpt/eval", "val loss", r"^step <step>: train loss <train.loss=train loss>, val loss <val.loss=val loss>"),
    Format("llm.c", "tok/s", r"^step <step>/<> \| (?:train )?loss <loss> .*\| norm <grad_norm=norm> .*?\|.*?\| <step_time_s:ms=ms> ms \| ?(?:<mfu:%=MFU>%|[^|]*?) [^|]*\| <tokens_per_s:tok/s=tok/s> tok/s", split="train"),
    Format("nano/step", "dt", r"\bstep <step>(?:/<>)? (?:\(<>%\) )?\|.*\bdt: <step_time_s:ms=dt>ms", _NANO, split="train"),
    Format("nano/bare", "ms", r"^step <step>(?:/<>)? \| loss <loss>.*\| <step_time_s:ms=ms>ms$", split="train"),
    Format("nano/train", "step_avg", r"^step:<step>/<> train_time:<:ms=train_time>ms step_avg:(?:<step_time_s:ms=step_avg>ms|nanms)", split="train"),
    Format("nano/val", "step_avg", r"^step:<step>/<> val_loss:<val.loss=val_loss> train_time:<>ms step_avg:(?:<>ms|nanms)", split="val", rest=False),
    Format("megatron/eval", "validation loss at", r"validation loss at (?:iteration <step>|the end|[^|]*?) .*\|", _MEGATRON, split="val"),
    Format("megatron", "elapsed time per iteration", r"\biteration <step>/ ?<> \|", _MEGATRON, {"memory_bytes": GIB}, split="train"),
    Format("neox", "samples/sec", r"samples/sec: <samples_per_s:1/s=samples/sec> \| iteration <step>/ ?<> \|", _MEGATRON, split="train"),
    Format("deepspeed/step", "skipped=", r"\bstep=<step>, skipped=<skipped_steps=skipped>, lr=\[<lr>", rest=False),
    Format(
        "deepspeed/timer",
        "SamplesPerSec=",
        r"(?:\bepoch=<epoch>/micro_step=<=micro_step>/global_step=<step>|\] <epoch>/<step>), (?:RunningAvgSamplesPerSec=<=RunningAvgSamplesPerSec>, )?"
        r"(?:Curr)?SamplesPerSec=<samples_per_s:1/s=CurrSamplesPerSec>"
        r"(?:, MemAllocated=<memory_bytes:GB=MemAllocated>GB, MaxMemAllocated=<:GB=MaxMemAllocated>GB)?",
        rest=False,
    ),
    Format("deepspeed-chat/ppo", "act_loss", r"epoch: <epoch>\|step: <step>\|ppo_ep: <=ppo_ep>\|"),
    Format("deepspeed-chat/model", "Latency", r"Model Parameters: <> B, Latency: <step_time_s:s=Latency>s, TFLOPs: <tflops=TFLOPs>, Samples/sec: <samples_per_s:1/s=Samples/sec>", rest=False),
    Format("torchtitan/val", "tps:", r"validate step: <step> +loss: <loss> ", split="val"),
    Format("torchtitan", "tps:", r"\bstep: <step> +loss: <loss> +(?:grad_norm:.*)?.*\btps:", split="train"),
    Format("verl", "step:", r"^step:<step> - \S+:", _VERL),
    Format("maxtext", "completed step", r"completed step: <step>, seconds: <step_time_s=seconds>, TFLOP/s(?:/device)?: <tflops=TFLOP/s>(?:, Tokens/s/device: <tokens_per_s:1/s=Tokens/s/device>)?", split="train"),
    Format("espnet/val", "epoch:valid:", r"<epoch>epoch:valid:<>-<step>batch:", {"iter_time": "data_time_s", "valid_time": "step_time_s"}, split="val"),
    Format("espnet", "epoch:train:", r"<epoch>epoch:train:<>-<step>batch:", {"iter_time": "data_time_s", "train_time": "step_time_s"}, _SECONDS, "train"),
    Format("levanter", "Progress on:train", r"Progress on:train .*?rate:(?:<iterations_per_s:1/s=rate>it/s|<step_time_s=rate>s/it) .*postfix:loss=<loss>", split="train", rest=False),
    Format("litgpt", "iter time", r"Epoch <epoch> \| iter <=iter> step <step> \| loss train: <train.loss=loss train>, val: (?:<val.loss=val>|n/a) \| iter time: <train.step_time_s:ms=iter time> ms", rest=False),
    Format("litgpt/old", "iter", r"^iter <=iter>(?: step <step>|): loss <loss>, (?:train|iter) time: <step_time_s:ms=time>ms", split="train", rest=False),
    Format("word_lm/train", "ms/batch", r"^\| epoch <epoch> \| <step>/<> batches \|", split="train"),
    Format("word_lm/eval", "end of ", r"^\| (?:end of epoch <epoch> \| time: <=time>s|End of training) \| (?:valid|test) loss <val.loss=valid loss> \| (?:valid|test) ppl <val.perplexity=valid ppl>", rest=False),
    Format("fairseq/val", "num_updates", r"\bepoch <epoch> \| valid on .*\bnum_updates[ =]<step=num_updates>", {"wps": "tokens_per_s"}, split="val"),
    Format("fairseq", "num_updates", r"\bepoch <epoch>(?: \||:).*\bnum_updates[ =]<step=num_updates>", {"wps": "tokens_per_s"}, split="train"),
    Format("olmo", "[step=", r"\[step=<step>(?:/<>)?(?:,\s?epoch=<epoch>(?:/<>)?)?\]"),
)  # fmt: skip

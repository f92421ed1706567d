"""Whose file `torch.load` reads: level and message of checkpoint-load-unspecified follow from where the path comes from."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from collected import for_every
from harness import lint

from ldlm_lint.model import Finding, Severity

RULE = "checkpoint-load-unspecified"


def found(tmp_path: Path, **files: str) -> list[Finding]:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'small'\nversion = '1'\n")
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    return [one for one in lint(tmp_path).findings if one.rule == RULE]


def said(finding: Finding) -> str:
    return str(dict(finding.args)["source"])


OWN = {
    "a folder that begins a filled text": {
        "train": """
            import glob
            import os
            import torch

            def latest(folder, prefix):
                found = glob.glob(os.path.join(folder, prefix + "????????"))
                return sorted(found)[-1] if found else None

            def load(path):
                return torch.load(path)

            def store(path, obj):
                torch.save(obj, path)

            def main(args, net):
                newest = latest(args.keep_in, "g_")
                if newest is not None:
                    net.load_state_dict(load(newest)["net"])
                for step in range(9):
                    store("{}/g_{:08d}".format(args.keep_in, step), {"net": net.state_dict()})
        """,
    },
    "a folder that begins a text by percent": {
        "train": """
            import glob
            import torch

            def main(args, net):
                for path in glob.glob("%s/*" % args.keep_in):
                    net.load_state_dict(torch.load(path))
                for step in range(9):
                    torch.save(net.state_dict(), "%s/g_%d" % (args.keep_in, step))
        """,
    },
    "a folder by its name in a filled text": {
        "train": """
            import glob
            import torch

            def main(args, net, step):
                for path in glob.glob(args.keep_in + "/*"):
                    net.load_state_dict(torch.load(path))
                torch.save(net.state_dict(), "{folder}/g_{step}".format(step=step, folder=args.keep_in))
        """,
    },
    "same name in another file": {
        "train": """
            import os
            import torch

            def keep(net, args, step):
                torch.save({"net": net.state_dict()}, os.path.join(args.out, f"snapshot_{step:06d}.pt"))
        """,
        "draw": """
            import glob
            import torch

            def newest(folder):
                return sorted(glob.glob(f"{folder}/snapshot_*.pt"))[-1]

            def restored(net, folder):
                net.load_state_dict(torch.load(newest(folder))["net"])
        """,
    },
    "name put together from a constant of the module": {
        "train": """
            from pathlib import Path
            import torch

            NAME = "last_state.pt"

            def keep(net, folder):
                torch.save(net.state_dict(), Path(folder) / NAME)

            def take(net, folder):
                net.load_state_dict(torch.load(Path(folder) / NAME))
        """,
    },
    "same setting, no name": {
        "train": """
            import torch

            def keep(net, args):
                torch.save(net.state_dict(), args.state_file)

            def take(net, args):
                net.load_state_dict(torch.load(args.state_file))
        """,
    },
    "helper that is given the name": {
        "store": """
            import torch

            def write(state, name):
                torch.save(state, name)

            def read(name):
                return torch.load(name)
        """,
        "train": """
            from store import read, write

            def run(net, args):
                write(net.state_dict(), f"{args.out}/ema_weights.pt")

            def again(args):
                return read(f"{args.out}/ema_weights.pt")
        """,
    },
    "an optimizer is restored": {
        "train": """
            import torch

            def go_on(net, optimizer, args):
                state = torch.load(args.resume, map_location="cpu")
                net.load_state_dict(state["net"])
                optimizer.load_state_dict(state["optimizer"])
                return state["epoch"]
        """,
    },
    "newest of those that a property lists": {
        "train": """
            import os
            import torch
            from fsspec.core import url_to_fs

            class Keeper:
                def __init__(self, folder):
                    self.fs, self.folder = url_to_fs(folder)

                @property
                def kept(self):
                    return sorted(self.fs.glob(os.path.join(self.folder, "*.pt")))

                def write(self, net, step):
                    with self.fs.open(os.path.join(self.folder, f"{step}.pt"), "wb") as file:
                        torch.save(net.state_dict(), file)

                def newest(self, net):
                    path = self.kept[-1]
                    with self.fs.open(path) as file:
                        net.load_state_dict(torch.load(file))
        """,
    },
    "an optimizer of a factory is restored": {
        "train": """
            import torch
            from parts import made

            def go_on(net, args):
                optimizer = made(args.optimizer, net.parameters())
                state = torch.load(args.resume, map_location="cpu")
                optimizer.load_state_dict(state["optimizer"])
                return state["step"]
        """,
    },
    "a cache of its own": {
        "data": """
            import os
            import torch

            def features(path, make):
                if os.path.exists(path):
                    return torch.load(path)
                made = make()
                torch.save(made, path)
                return made
        """,
    },
}

OUTSIDE = {
    "hub": """
        import torch
        from huggingface_hub import hf_hub_download

        def published(net):
            net.load_state_dict(torch.load(hf_hub_download("someone/net", "weights.bin")))
    """,
    "in two steps through a helper": """
        import torch
        from huggingface_hub import hf_hub_download

        def fetch(name):
            return hf_hub_download(repo_id="someone/net", filename=name)

        def published(net, optimizer, name):
            path = fetch(name)
            state = torch.load(path, map_location="cpu")
            net.load_state_dict(state["net"])
            optimizer.load_state_dict(state["optimizer"])
    """,
    "downloaded to that name": """
        import os
        import torch
        from urllib.request import urlretrieve

        def published(net, url, folder):
            target = os.path.join(folder, "backbone.pth")
            if not os.path.exists(target):
                urlretrieve(url, target)
            net.load_state_dict(torch.load(target))
    """,
    "by a command of a helper": """
        import os
        import torch

        def fetch(file):
            os.system(f"curl -L https://example.com/weights -o {file}")

        def published(net, file):
            fetch(file)
            net.load_state_dict(torch.load(file))
    """,
}

UNKNOWN = {
    "another folder in the filled text": """
        import glob
        import torch

        def main(args, net, step):
            for path in glob.glob(args.downloads + "/*"):
                net.load_state_dict(torch.load(path))
            torch.save(net.state_dict(), "{}/g_{}".format(step, args.downloads))
    """,
    "initial weights, beside a resume under the same name": """
        import torch

        def begin(net, optimizer, args):
            if args.weights:
                state = torch.load(args.weights)
                net.load_state_dict(state["net"])
            if args.resume:
                state = torch.load(args.resume, weights_only=False)
                optimizer.load_state_dict(state["optimizer"])
    """,
    "another file is written": """
        import torch

        def run(net, args):
            net.load_state_dict(torch.load(args.backbone))
            torch.save(net.state_dict(), f"{args.out}/final_state.pt")
    """,
    "a name that published models have": """
        import torch

        def run(net, args):
            net.load_state_dict(torch.load(f"{args.base}/pytorch_model.bin"))
            torch.save(net.state_dict(), f"{args.out}/pytorch_model.bin")
    """,
    "what a converter is given, by its place on the command line": """
        import sys
        import torch

        def convert():
            state = torch.load(sys.argv[1])
            torch.save(state["net"], sys.argv[2])
    """,
    "what a converter is given, under the same name in another folder": """
        import os
        import torch

        def convert(source, target):
            state = torch.load(os.path.join(source, "tower_00.pt"))
            torch.save(state["net"], os.path.join(target, "tower_00.pt"))
    """,
    "numbers alone behind which a kind of file stands": """
        import torch

        def run(net, vocoder, folder, step):
            vocoder.load_state_dict(torch.load("vocoder/generator_voices.pth.tar"))
            torch.save(net.state_dict(), "{}/{}.pth.tar".format(folder, step))
    """,
    "another network of the same family": """
        import torch

        def run(net, args):
            net.load_state_dict(torch.load("tower5-large.pt"))
            torch.save(net.state_dict(), f"{args.out}/tower.pt")
    """,
    "another folder, written out": """
        import torch

        def run(net):
            net.load_state_dict(torch.load("published/best.pth"))
            torch.save(net.state_dict(), "runs/best.pth")
    """,
}


@for_every("name", OWN)
def test_a_file_of_the_project_is_information(name, tmp_path):
    (finding,) = found(tmp_path, **OWN[name])
    assert finding.severity is Severity.INFO
    assert said(finding) in (" reads a checkpoint to resume from",) or said(finding).endswith(" writes")


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_file_from_outside_is_a_warning_that_names_the_download(name, tmp_path):
    (finding,) = found(tmp_path, train=OUTSIDE[name])
    assert finding.severity is Severity.WARNING
    assert "from outside" in said(finding)


@for_every("name", UNKNOWN)
def test_a_file_of_unknown_origin_is_a_warning(name, tmp_path):
    findings = found(tmp_path, train=UNKNOWN[name])
    assert [(one.severity, said(one)) for one in findings] == [(Severity.WARNING, "")]


def test_what_only_a_test_writes_is_not_the_projects(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_io.py").write_text("import torch\n\ndef test_round(tmp_path):\n    torch.save({}, tmp_path / 'tower_weights.pt')\n")
    (finding,) = found(tmp_path, train="import torch\n\ndef take(net, args):\n    net.load_state_dict(torch.load(f'{args.base}/tower_weights.pt'))\n")
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
def test_information_leaves_the_exit_code_alone_in_both_hosts(jobs, tmp_path):
    import subprocess
    import sys

    assert [one.severity for one in found(tmp_path, **OWN["same setting, no name"])] == [Severity.INFO]
    only = ["--disable=all", f"--enable={RULE}", "--load-plugins=ldlm_lint", jobs, "train.py"]
    pylint = subprocess.run([sys.executable, "-m", "pylint", *only], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (pylint.returncode, RULE in pylint.stdout) == (0, True)
    command = [sys.executable, "-m", "ldlm_lint", "check", "--no-cache", "."]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0


SAVED = """
    import accelerate
    import argparse
    import numpy
    import time
    import torch
    from flashy import Solver

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, batch):
            return self.layer(batch)

    def main():
        net = Net().cuda()
        run = Run(net, torch.optim.SGD(net.parameters(), lr=0.1), argparse.ArgumentParser().parse_args())
        run.train(torch.utils.data.DataLoader(torch.ones(8, 4)))

    class Run(Solver):
        def __init__(self, net, optimizer, args):
            self.net, self.optimizer, self.args = net, optimizer, args
            self.best = 0.0
            self.losses = []

        def train(self, loader):
            for epoch in range(5):
                for batch in loader:
                    loss = self.net(batch.cuda()).mean()
                    self.losses.append({fill})
                self.best = max(self.best, float(loss))
                torch.save({payload}, "own_progress.pt")

        def restore(self):
            return torch.load("own_progress.pt")

    def pack(net, epoch):
        state = {{"net": {{name: value.cpu() for name, value in net.state_dict().items()}}}}
        state["epoch"] = epoch + 1
        return state
"""
PAYLOADS = {
    "self.net.state_dict()": True,
    '{"net": self.net.state_dict(), "epoch": epoch, "best": self.best, "when": time.time()}': True,
    '{"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "rng": torch.get_rng_state()}': True,
    "pack(self.net, epoch)": True,
    '{"losses": self.losses}': True,
    "[loss.detach().cpu(), f'epoch {epoch}']": True,
    "self.net": False,
    "self.state_dict()": False,
    '{"net": self.net.state_dict(), "args": self.args}': False,
    '{"net": self.net.state_dict(), "args": vars(self.args)}': False,
    '{"net": self.net.state_dict(), "when": unknown(epoch)}': False,
    "dict(net=self.net.state_dict(), run=self)": False,
    '{"net": self.net.state_dict(), "best": unknown(epoch).max()}': False,
    '{"net": self.net.state_dict(), "best": max(self.best, unknown(epoch))}': False,
    '{"net": self.net.state_dict(), "best": max(self.best, float(unknown(epoch)))}': True,
    '{"net": self.net.state_dict(), "rng": numpy.random.get_state()}': False,
    '{"net": self.net.state_dict(), "args": self.args.copy()}': False,
    '{"net": self.net.state_dict(), "size": getattr(self.args, "size", 3)}': False,
    '{"net": self.net.state_dict(), "when": round(unknown(epoch), 3)}': False,
    "unknown(self.net).state_dict()": False,
    'torch.load("first.pt", map_location="cpu", weights_only=True)': False,
    '{**torch.load("first.pt", map_location="cuda", weights_only=True), "epoch": epoch}': False,
    'accelerate.Accelerator().prepare(self.optimizer).state_dict()': False,
    '[one.state_dict() for one in accelerate.Accelerator().prepare(self.net, self.optimizer)]': False,
}


@for_every("payload", PAYLOADS)
def test_a_file_of_tensors_is_told_from_one_that_may_not_load(payload, tmp_path):
    (finding,) = found(tmp_path, train=SAVED.format(payload=payload, fill="loss.item()"))
    assert finding.severity is Severity.INFO
    assert ("with tensors only" in finding.why_minor) is PAYLOADS[payload], finding
    assert ("every version of torch loads it" in str(dict(finding.args)["stakes"])) is PAYLOADS[payload]


PREPARED = """
    import accelerate, torch

    def train(loader):
        net = torch.nn.Linear(8, 8)
        optimizer = torch.optim.AdamW(net.parameters())
        {prepare}
        for batch in loader:
            net(batch).mean().backward()
            optimizer.step()
        torch.save(optimizer.state_dict(), "own_optimizer.pt")
        optimizer.load_state_dict(torch.load("own_optimizer.pt"))
"""


@pytest.mark.parametrize(("prepare", "known"), [("net = net.cuda()", True), ("net, optimizer = accelerate.Accelerator().prepare(net, optimizer)", False)])
def test_the_state_of_what_another_package_prepares_is_not_known(prepare, known, tmp_path):
    (finding,) = found(tmp_path, train=PREPARED.format(prepare=prepare))
    assert ("with tensors only" in finding.why_minor) is known


def test_what_a_list_is_filled_with_counts(tmp_path):
    (finding,) = found(tmp_path, train=SAVED.format(payload='{"losses": self.losses}', fill="self.args"))
    assert "with tensors only" not in finding.why_minor


def test_all_that_is_written_under_the_name_counts(tmp_path):
    text = SAVED.format(payload="self.net.state_dict()", fill="loss.item()") + """
    def whole(net):
        torch.save(net, "own_progress.pt")
"""
    (finding,) = found(tmp_path, train=text)
    assert "with tensors only" not in finding.why_minor


TRUE_NET = """
    import argparse
    import os
    import deepspeed
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

    args = argparse.ArgumentParser().parse_args()
"""
WHOLE_FLOWS = {
    "the file that this run wrote": (
        """
        def main():
            net = Net()
            torch.save(net.state_dict(), os.path.join(args.out, "own_best.pt"))
            net.load_state_dict(torch.load(os.path.join(args.out, "own_best.pt")))
        """,
        True,
    ),
    "a helper, all of whose callers read what was written": (
        """
        def read(path):
            return torch.load(path)

        def main():
            net = Net()
            torch.save(net.state_dict(), args.out + "/own_best.pt")
            net.load_state_dict(read(args.out + "/own_best.pt"))
        """,
        True,
    ),
    "a helper that another caller gives what a user names": (
        """
        def read(path):
            return torch.load(path)

        def main():
            net = Net()
            net.load_state_dict(read(args.begin_with))
            torch.save(net.state_dict(), args.out + "/own_best.pt")
            net.load_state_dict(read(args.out + "/own_best.pt"))
        """,
        False,
    ),
    "that name in a folder that a user names": (
        """
        def main():
            net = Net()
            net.load_state_dict(torch.load(os.path.join(args.begin_with, "own_best.pt")))
            torch.save(net.state_dict(), os.path.join(args.out, "own_best.pt"))
        """,
        False,
    ),
    "beside what an engine writes with its client's state": (
        """
        def main():
            net = Net()
            engine, _, _, _ = deepspeed.initialize(model=net)
            torch.save(net.state_dict(), args.out)
            engine.save_checkpoint(args.out, client_state={"args": args})
            net.load_state_dict(torch.load(args.out))
        """,
        False,
    ),
    "the sharded optimizer of an engine": (
        """
        def main():
            net = Net()
            engine, optimizer, _, _ = deepspeed.initialize(model=net)
            torch.save(optimizer.state_dict(), "own_optimizer.pt")
            optimizer.load_state_dict(torch.load("own_optimizer.pt"))
        """,
        False,
    ),
}


@for_every("name", WHOLE_FLOWS)
def test_all_sources_of_the_path_are_files_that_the_flow_wrote(name, tmp_path):
    text, is_known = WHOLE_FLOWS[name]
    (finding,) = found(tmp_path, train=textwrap.dedent(TRUE_NET) + textwrap.dedent(text))
    assert ("every version of torch loads it" in str(dict(finding.args)["stakes"])) is is_known, finding.args

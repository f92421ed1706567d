"""Calls that download a file, by their public names (September 2026), with where they put it."""

from __future__ import annotations

DOWNLOADS: dict[str, tuple[str, int] | None] = {
    # https://huggingface.co/docs/huggingface_hub/package_reference/file_download
    "huggingface_hub.hf_hub_download": None,
    "huggingface_hub.snapshot_download": None,
    "huggingface_hub.cached_download": None,
    "huggingface_hub.hf_hub_url": None,
    "transformers.utils.cached_file": None,
    "transformers.utils.hub.cached_file": None,
    "transformers.file_utils.cached_path": None,
    # https://docs.pytorch.org/docs/stable/hub.html
    "torch.hub.download_url_to_file": ("dst", 1),
    "torch.hub.load_state_dict_from_url": None,
    "torch.utils.model_zoo.load_url": None,
    "torchvision.datasets.utils.download_url": ("root", 1),
    # https://docs.python.org/3/library/urllib.request.html
    "urllib.request.urlretrieve": ("filename", 1),
    "urllib.request.urlopen": None,
    "requests.get": None,
    # https://github.com/wkentaro/gdown, https://pypi.org/project/wget
    "gdown.download": ("output", 1),
    "gdown.cached_download": ("path", 1),
    "gdown.download_folder": ("output", 1),
    "wget.download": ("out", 1),
    "cached_path.cached_path": None,
    # https://docs.wandb.ai/ref/python/artifact, https://github.com/facebookresearch/iopath
    "wandb.restore": None,
}
"""The parameter that names the destination and its position; None where the call alone tells (what it gives, or a stream)."""

COMMANDS = ("wget ", "curl ", "gdown ", "huggingface-cli download", "gsutil cp", "aws s3 cp")
"""How a command begins that does the same, where it is given to a shell."""

SHELLS = frozenset({"os.system", "os.popen", *(f"subprocess.{one}" for one in ("run", "call", "check_call", "check_output", "Popen"))})

PUBLISHED_NAMES = frozenset({
    *("pytorch_model.bin", "adapter_model.bin", "diffusion_pytorch_model.bin", "model.safetensors", "consolidated.#.pth"),
})
"""Names that files have in published models as in one's own: a name alone does not tell whose file it is."""

"""Reads requirements of torch and Python from lists of packages: of pip, setuptools, Poetry, Pipenv, conda, and lock files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from ldlm_lint.patterns import lazily
from ldlm_lint.requirements import PYTHON, TORCH, Said, Version
from ldlm_lint.requirements.specifiers import of_conda, of_requirement, of_wheel
from ldlm_lint.untrusted_toml import loads

# No real version has such a part, and Python refuses to convert it.
_LONG_NUMBER = lazily(r"\d{300,}")
_LINE = lazily(r"^[ \t]*(torch(?![\w.-])[^#\n]*)", re.M | re.I)
# An option of pip behind a requirement, such as ``--hash`` or ``-f``.
_OPTION = lazily(r"\s-{1,2}[a-zA-Z].*")
_ADDRESS = lazily(r"^[ \t]*(https?://\S*/torch-[^\s#]+)", re.M)
# ``conda list --export`` writes ``pytorch=1.12.1=py3.9_cuda11.3_cudnn8.3.2_0``.
_EXPORTED = lazily(r"^(pytorch)(=[\d.]+)=[\w.]+[ \t]*$", re.M)
_BLOCK = lazily(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```", re.M | re.S)
_REQUIREMENT = lazily(r"[A-Za-z][\w.-]*(?:\[[\w,]+\])?[ \t]*(?:(?:==|[<>~!]=?)[ \t]*[\w.*+!]+(?:[ \t]*,[ \t]*(?:==|[<>~!]=?)[ \t]*[\w.*+]+)*)?$")
_COMPANION = lazily(r"^[ \t]*(?:-[ \t]+)?[\"']?((torchvision|torchaudio|triton)[ \t]*={1,2}[ \t]*(\d{1,3})\.(\d{1,3})(?:\.\d+)*(?:\+\w+)?(?=[\s\"';=]|$))", re.M)
_INCLUDED = lazily(r"^[ \t]*(?:-r|-c|--requirement|--constraint)[ \t=]+([^\s#]+)", re.M)
_QUOTED = lazily(r"[\"'](torch(?![\w.-])[^\"'\n]*)[\"']")
_PYTHON_REQUIRES = lazily(r"python_requires\s*=\s*[\"']?([^\"'\n#]+)")
_PYTHON_VERSION = lazily(r"^\s*(?:cpython-|python-)?(3\.\d{1,3})(?:\.\d{1,3})?\s*$", re.M)
_ENVIRONMENT = lazily(r"^dependencies[ \t]*:", re.M)
_NAME = r"[\"']?(?:[\w./-]+::)?((pytorch(?:-gpu|-cpu)?|torch|python)(?![\w.-])[ \t]*"
_ITEM = lazily(rf"^[ \t]*-[ \t]+{_NAME}([=<>!~@\d][^#\n\"']*))", re.M)
_ITEM_IN_BRACKETS = lazily(rf"[\[,][ \t]*{_NAME}([=<>!~\d][^#\n\"',\]]*))")
_COG_PYTHON = lazily(r"^[ \t]*python_version:[ \t]*[\"']?(\d{1,3}\.\d{1,3})(?!\d)", re.M)
_PIP_ADDRESS = lazily(r"^[ \t]*-[ \t]+[\"']?(https?://\S*/torch-[^\s#\"']+)", re.M)
_LOCKED = lazily(r"^name[ \t]*=[ \t]*[\"']torch[\"'][ \t]*\r?\nversion[ \t]*=[ \t]*[\"']([^\"'\n]+)[\"']", re.M)
_CONDA_LOCKED = lazily(r"^[ \t]*-[ \t]+name:[ \t]*(?:pytorch|torch)[ \t]*\r?\n[ \t]*version:[ \t]*[\"']?([\w.+]+)", re.M)


def of_pip(text: str) -> Iterator[Said]:
    """The lines of a requirements or constraints file."""
    for match in _LINE.finditer(text):
        yield from of_requirement(TORCH, _OPTION.sub("", match[1]), match.start(1))
    for match in _ADDRESS.finditer(text):
        yield from of_wheel(TORCH, match[1], match.start(1))
    for match in _EXPORTED.finditer(text):
        yield from of_conda(TORCH, match[1] + match[2], match[2], match.start(1))


def of_page(text: str) -> Iterator[Said]:
    """The blocks of code in a page in Markdown that list requirements, one in each line, as a requirements file does."""
    for block in _BLOCK.finditer(text):
        lines = [one.partition("#")[0].strip() for one in block[1].splitlines()]
        if sum(map(bool, lines)) > 1 and all(_REQUIREMENT.match(one) for one in lines if one):
            yield from (one._replace(at=block.start(1) + one.at) for one in of_pip(block[1]))


def of_companions(text: str) -> Iterator[Said]:
    """The torch that exact versions of other packages in a list need: each release of these was built for one."""
    for match in _COMPANION.finditer(text):
        needed = _BUILT_FOR[match[2]]((int(match[3]), int(match[4])))
        if needed is not None:
            yield Said(TORCH, match[1].rstrip(), match.start(1), f"=={needed[0]}.{needed[1]}.*")


def _of_vision(version: Version) -> Version | None:
    """0.8 for 1.7, 0.15 for 2.0: https://github.com/pytorch/pytorch/wiki/PyTorch-Versions."""
    major, minor = version
    return ((2, minor - 15) if minor >= 15 else (1, minor - 1)) if major == 0 and minor >= 5 else None


def _of_audio(version: Version) -> Version | None:
    """0.13 for 1.13, then the same number as torch, by the same page."""
    return version if version[0] == 2 else (1, version[1]) if version[0] == 0 and version[1] >= 7 else None


def _of_triton(version: Version) -> Version | None:
    """The wheels of torch require one triton exactly, up to torch 2.3 the one of the same number: torch 2.2.1 requires 2.2.0
    (https://github.com/triton-lang/triton/issues/3359)."""
    return version if version[0] == 2 and version[1] <= 3 else None


_BUILT_FOR: Mapping[str, Callable[[Version], Version | None]] = {"torchvision": _of_vision, "torchaudio": _of_audio, "triton": _of_triton}


def included(text: str) -> Iterator[str]:
    """The other files that a requirements file names, as it writes them."""
    yield from _INCLUDED.findall(text)


def of_setup_py(text: str) -> Iterator[Said]:
    """Strings with a requirement, or one string with a requirement on each line."""
    for match in _QUOTED.finditer(text):
        if not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].lstrip().startswith("#"):
            yield from of_requirement(TORCH, match[1], match.start(1))
    yield from of_pip(text)
    yield from _of_python_requires(text)


def of_setup_cfg(text: str) -> Iterator[Said]:
    """The lines of ``install_requires``, and ``python_requires``."""
    yield from of_pip(text)
    yield from _of_python_requires(text)


def _of_python_requires(text: str) -> Iterator[Said]:
    match = _PYTHON_REQUIRES.search(text)
    if match is not None:
        yield Said(PYTHON, f"python_requires {match[1].strip()}", match.start(), match[1].strip())


def of_python_version(text: str) -> Iterator[Said]:
    """The version that pyenv or uv uses."""
    match = _PYTHON_VERSION.search(text)
    if match is not None:
        yield Said(PYTHON, match[1], match.start(1), f"=={match[1]}.*")


def of_conda_environment(text: str) -> Iterator[Said]:
    """The packages of an environment, also those that pip installs in it; the torch that others need if it is not named."""
    if _ENVIRONMENT.search(text) is None:
        return
    found = list(_of_environment(text))
    yield from found
    if all(one.package is not TORCH for one in found):
        yield from of_companions(text)


def _of_environment(text: str) -> Iterator[Said]:
    for match in (*_ITEM.finditer(text), *_ITEM_IN_BRACKETS.finditer(text)):
        written = _OPTION.sub("", match[1]).partition(";")[0].strip()
        if match[2] == "torch":
            yield from of_requirement(TORCH, written, match.start(1))
        else:
            yield from of_conda(PYTHON if match[2] == "python" else TORCH, written, match[3], match.start(1))
    for match in _PIP_ADDRESS.finditer(text):
        yield from of_wheel(TORCH, match[1], match.start(1))


def of_cog(text: str) -> Iterator[Said]:
    """The Python and the packages of the build in a `cog.yaml` (github.com/replicate/cog, docs/yaml.md, November 2026)."""
    for match in (*_ITEM.finditer(text), *_ITEM_IN_BRACKETS.finditer(text)):
        if match[2] == "torch":
            yield from of_requirement(TORCH, _OPTION.sub("", match[1]).strip(), match.start(1))
    for match in _COG_PYTHON.finditer(text):
        yield Said(PYTHON, f"python_version {match[1]}", match.start(1), f"=={match[1]}.*")


def of_pyproject(text: str) -> Iterator[Said]:
    """The dependencies of a project, else those of its extras and groups; those of Poetry and pixi."""
    document = _toml(text)
    project, tool = document.get("project"), document.get("tool")
    if isinstance(project, Mapping):
        listed = list(_of_strings(text, project.get("dependencies")))
        # Extras and groups are installed in addition: they choose only where the dependencies say nothing.
        yield from listed or _of_strings(text, [project.get("optional-dependencies"), document.get("dependency-groups")])
        if isinstance(needed := project.get("requires-python"), str):
            yield Said(PYTHON, f"requires-python {needed}", max(text.find("requires-python"), 0), needed)
    else:
        yield from _of_strings(text, document.get("dependency-groups"))
    poetry = tool.get("poetry") if isinstance(tool, Mapping) else None
    if isinstance(poetry, Mapping):
        groups = poetry.get("group")
        for holder in (poetry, *(groups.values() if isinstance(groups, Mapping) else ())):
            yield from _of_tables(text, holder, ("dependencies", "dev-dependencies"))
        needed = poetry["dependencies"].get("python") if isinstance(poetry.get("dependencies"), Mapping) else None
        if isinstance(needed, str):
            yield Said(PYTHON, f"python {needed}", _place(text, "python"), _poetry_versions(needed.strip()))
    yield from _of_pixi(text, tool.get("pixi") if isinstance(tool, Mapping) else None)


def of_pixi(text: str) -> Iterator[Said]:
    """The dependencies of a ``pixi.toml``."""
    yield from _of_pixi(text, _toml(text))


def of_pipfile(text: str) -> Iterator[Said]:
    """The packages of a ``Pipfile``."""
    yield from _of_tables(text, _toml(text), ("packages", "dev-packages"))


def _of_pixi(text: str, holder: object) -> Iterator[Said]:
    packages = holder.get("dependencies") if isinstance(holder, Mapping) else None
    for name, value in packages.items() if isinstance(packages, Mapping) else ():
        versions = value.get("version") if isinstance(value, Mapping) else value
        if name in TORCH.conda and isinstance(versions, str):
            yield from of_conda(TORCH, f"{name} {versions}", versions, _place(text, name))
    yield from _of_tables(text, holder, ("pypi-dependencies",))


def _of_tables(text: str, holder: object, names: Iterable[str]) -> Iterator[Said]:
    """The torch of tables with a version or more for each package, as Poetry and Pipenv write them."""
    tables = [holder.get(name) for name in names] if isinstance(holder, Mapping) else []
    for wanted in (table.get("torch") for table in tables if isinstance(table, Mapping)):
        for one in wanted if isinstance(wanted, list) else (wanted,):
            address = one.get("url") if isinstance(one, Mapping) else None
            version = one.get("version") if isinstance(one, Mapping) else one
            if isinstance(address, str):
                yield from of_wheel(TORCH, address, _place(text, "torch"))
            elif isinstance(version, str):
                yield from of_requirement(TORCH, f"torch{_poetry_versions(version.strip())}", _place(text, "torch"))


def _place(text: str, name: str) -> int:
    """Where a key of a TOML document is written."""
    match = re.search(rf"^[ \t]*[\"']?{re.escape(name)}[\"']?[ \t]*=", text, re.M)
    return match.start() if match else 0


def _poetry_versions(version: str) -> str:
    """``^2.1`` is ``>=2.1,<3`` in Poetry, ``~2.1`` is ``==2.1.*``."""
    if version.startswith("^"):
        major = re.match(r"\d{1,9}(?![^.])", version[1:], re.ASCII)
        return f">={version[1:]},<{int(major[0]) + 1}" if major else ""
    if version.startswith("~") and not version.startswith("~="):
        return f"~={version[1:]}" if version.count(".") > 1 else f"=={version[1:].strip()}.*"
    return f"=={version}" if version[:1].isdigit() else version


def _of_strings(text: str, value: object) -> Iterator[Said]:
    for one in _strings(value):
        yield from of_requirement(TORCH, one, max(text.find(one), 0))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _strings(one)


def of_lock(text: str) -> Iterator[Said]:
    """The versions of torch in a lock file of uv, Poetry, PDM or pip, which write the name and then the version."""
    for match in _LOCKED.finditer(text):
        yield from _locked(match[1], match.start())


def of_conda_lock(text: str) -> Iterator[Said]:
    """The versions of torch in a lock file of conda."""
    for match in _CONDA_LOCKED.finditer(text):
        yield from _locked(match[1], match.start())


def of_pipfile_lock(text: str) -> Iterator[Said]:
    """The version of torch in a ``Pipfile.lock``."""
    try:
        content = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return
    default = content.get("default") if isinstance(content, Mapping) else None
    torch = default.get("torch") if isinstance(default, Mapping) else None
    if isinstance(torch, Mapping):
        yield from _locked(str(torch.get("version", "")).lstrip("="), max(text.find('"torch"'), 0))


def _locked(version: str, at: int) -> Iterator[Said]:
    release = re.match(r"\d{1,9}(?:\.\d{1,9}){1,3}", version)
    if release is not None:
        yield Said(TORCH, "torch " + ".".join(release[0].split(".")[:2]), at, f"=={release[0]}", locked=True)


def _toml(text: str) -> Mapping[str, object]:
    """A TOML document; empty if it is invalid, which the configuration reports if the file is ours."""
    try:
        return loads(text) if text else {}
    except ValueError:
        return {}


def readable(data: bytes) -> str:
    """The text of a list, without numbers that no version has."""
    return _LONG_NUMBER.sub("", data.decode("utf-8", errors="replace"))

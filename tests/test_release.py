"""scripts/release.py: what it changes, what it refuses, and that a rehearsal leaves everything as it was."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from collected import for_every

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import release  # noqa: E402
import release_edits as edits  # noqa: E402
import release_promises as promises  # noqa: E402
from release_edits import ReleaseError  # noqa: E402

from ldlm_lint import __version__  # noqa: E402

DAY = datetime.date(2031, 2, 3)
CHANGES = "# Changelog\n\nIntroduction.\n\n## Unreleased\n\n### Fix\n\n- A line.\n\n## 0.1.0 (2030-01-01)\n\n- Older.\n"
RULE = {
    "name": "a",
    "code": "W7101",
    "status": "stable",
    "since": "0.1.0",
    "old_names": [],
    "fix": "unsafe",
    "default": True,
    "severity": "warning",
    "options": [{"name": "limit", "default": 1, "help": "text"}],
}


def git(*arguments: str, cwd: Path) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True, cwd=cwd).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit on main."""
    root = tmp_path / "repository"
    root.mkdir()
    (root / "file.txt").write_text("a\n")
    git("init", "-q", "-b", "main", cwd=root)
    git("add", "-A", cwd=root)
    git("commit", "-qm", "first", cwd=root)
    return root


def of(root: Path, version: str = "0.2.0") -> release.Release:
    scratch = root.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    return release.Release(version, "main", root, scratch, root / "dist" / version)


def test_the_version_is_written_wherever_it_is() -> None:
    present = [name for name in edits.PLACES if (ROOT / name).is_file()]
    assert {"ldlm_lint/__init__.py", "packaging/conda/recipe.yaml"} <= set(present)
    for name in present:
        before = (ROOT / name).read_text(encoding="utf-8")
        after = edits.with_version(name, before, "77.88.99")
        assert after.count("77.88.99") == (2 if name.endswith(("lock.json", "gitlab-ci.yml")) else 1)
        assert len(after.splitlines()) == len(before.splitlines())


def test_both_versions_of_the_extension_s_lock_are_written_and_no_dependency_s() -> None:
    package = {"name": "ldlm-lint", "version": "0.1.0"}
    lock = {**package, "packages": {"": package, "node_modules/a": {"version": "0.1.0"}}}
    changed = json.loads(edits.with_version("editors/vscode/package-lock.json", json.dumps(lock, indent=2), "0.2.0"))
    assert (changed["version"], changed["packages"][""]["version"]) == ("0.2.0", "0.2.0")
    assert changed["packages"]["node_modules/a"]["version"] == "0.1.0"


def test_a_version_that_is_not_found_is_an_error() -> None:
    with pytest.raises(ReleaseError, match="expected 1 version to change, found 0"):
        edits.with_version("ldlm_lint/__init__.py", "version = 1\n", "0.2.0")


@for_every("version", ["1", "1.2", "v1.2.3", "1.2.3rc1", "01.2.3", ""])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(ReleaseError, match="is no version"):
        edits.numbers(version)


def test_the_last_release_is_the_highest_number() -> None:
    assert edits.latest(["0.9.0", "0.10.0", "v2.0.0", "nightly", "0.2.0"]) == "0.10.0"
    assert edits.latest(["nightly"]) is None


@pytest.mark.parametrize(
    ("last", "version", "expected"),
    [
        (None, "0.1.0", "first"),
        (None, "1.0.0", "first"),
        ("0.1.0", "0.1.1", "patch"),
        ("0.1.3", "0.2.0", "minor"),
        ("0.9.3", "1.0.0", "major"),
    ],
)
def test_what_kind_of_release_a_version_is(last: str | None, version: str, expected: str) -> None:
    assert edits.kind(last, "0.1.0", version) == expected


@pytest.mark.parametrize(("last", "version"), [("0.1.0", "0.1.0"), ("0.1.0", "0.1.2"), ("0.1.0", "0.3.0"), ("0.2.0", "0.1.9"), (None, "0.0.9")])
def test_a_version_that_does_not_follow_is_refused(last: str | None, version: str) -> None:
    with pytest.raises(ReleaseError, match=r"does not follow|is lower than"):
        edits.kind(last, "0.1.0", version)


def test_unreleased_changes_move_under_the_version() -> None:
    moved = edits.with_release(CHANGES, "0.2.0", DAY)
    assert moved == CHANGES.replace("## Unreleased\n\n", "## Unreleased\n\n## 0.2.0 (2031-02-03)\n\n")
    assert edits.notes(moved, "0.2.0") == "### Fix\n\n- A line.\n"
    assert edits.notes(moved, "0.1.0") == "- Older.\n"


@pytest.mark.parametrize(
    ("changelog", "said"),
    [
        (CHANGES.replace("- A line.\n", ""), "nothing is listed"),
        (CHANGES.replace("## Unreleased\n", ""), "has no section"),
        (CHANGES.replace("0.1.0", "0.2.0"), "already has a section 0.2.0"),
    ],
)
def test_a_changelog_that_does_not_fit_is_refused(changelog: str, said: str) -> None:
    with pytest.raises(ReleaseError, match=said):
        edits.with_release(changelog, "0.2.0", DAY)
    with pytest.raises(ReleaseError, match=r"has no section 0\.3\.0"):
        edits.notes(changelog, "0.3.0")


def test_the_changelog_of_this_repository_can_be_released() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = edits.with_release(changelog.replace("## Unreleased\n", "## Unreleased\n\n- A change.\n"), "77.0.0", DAY)
    assert "- A change." in edits.notes(released, "77.0.0")


def test_the_recipe_for_conda_forge_names_what_is_on_pypi() -> None:
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    changed = edits.for_conda_forge(recipe, "0" * 64)
    assert "path: ../.." not in changed and f"sha256: {'0' * 64}" in changed
    with pytest.raises(ReleaseError, match="its source is not the checkout"):
        edits.for_conda_forge(changed, "0" * 64)


def test_checksums_are_what_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "a").write_bytes(b"a")
    assert edits.checksums(tmp_path.iterdir()) == (
        "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a\n"
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
    )


@for_every(
    ("change", "patch", "minor"),
    [
        pytest.param({"status": "deprecated"}, "becomes deprecated", None, id="deprecated"),
        pytest.param({"fix": "safe"}, "its fix becomes safe", None, id="a-safe-fix"),
        pytest.param({"fix": "display"}, None, None, id="a-fix-withdrawn"),
        pytest.param({"default": False}, "whether it is on by default changes", None, id="default"),
        pytest.param({"severity": "error"}, "the severity changes", None, id="severity"),
        pytest.param({"options": [{"name": "limit", "default": 2, "help": ""}]}, "the default of an option changes", None, id="option"),
        pytest.param({"options": [{"name": "limit", "default": 1, "help": ""}]}, None, None, id="help-of-an-option"),
        pytest.param({"code": "W7102"}, "its code was W7101", "its code was W7101", id="code"),
        pytest.param({"since": "0.2.0"}, "it is there since 0.1.0", "it is there since 0.1.0", id="since"),
        pytest.param({"name": "b", "old_names": ["a"]}, None, None, id="renamed"),
        pytest.param({"name": "b", "status": "preview", "since": "1.3.0"}, "a is gone", "a is gone", id="gone"),
    ],
)
def test_what_may_happen_to_a_stable_rule(change: dict[str, Any], patch: str | None, minor: str | None) -> None:
    for kind, said in (("patch", patch), ("minor", minor)):
        found = promises.broken_by_rules([RULE], [RULE | change], kind, "1.3.0")
        assert (found and said in found[0]) if said else found == []


def test_a_preview_rule_may_change_its_severity_in_a_patch_release() -> None:
    preview = RULE | {"status": "preview"}
    assert promises.broken_by_rules([preview], [preview | {"severity": "error", "default": False}], "patch", "0.1.1") == []
    assert promises.broken_by_rules([preview], [RULE], "patch", "0.1.1") == ["a becomes stable: not in a patch release"]


def test_a_new_rule_is_preview_and_says_since_when() -> None:
    new = RULE | {"name": "b", "status": "preview", "since": "0.2.0"}
    assert promises.broken_by_rules([RULE], [RULE, new], "minor", "0.2.0") == []
    assert promises.broken_by_rules([RULE], [RULE, new], "patch", "0.2.0") == ["b is new: a patch release has no new rule"]
    assert promises.broken_by_rules([RULE], [RULE, new | {"status": "stable", "since": "0.1.0"}], "minor", "0.2.0") == [
        "b is new and stable: a new rule is preview for one minor release",
        'b is new and says since = "0.1.0": write "0.2.0"',
    ]


def test_a_rule_is_removed_after_it_was_deprecated_and_in_a_major_release() -> None:
    deprecated = RULE | {"status": "deprecated"}
    assert promises.broken_by_rules([deprecated], [], "major", "1.0.0") == []
    assert promises.broken_by_rules([deprecated], [], "minor", "1.1.0") != []
    assert promises.broken_by_rules([RULE], [], "major", "1.0.0") == ["a is gone: deprecate it first"]
    assert [promises.allowed("minor", last) for last in ("0.4.0", "1.4.0")] == ["major", "minor"]
    assert promises.allowed("patch", "0.4.0") == "patch"


def test_the_rules_of_today_could_be_a_first_release() -> None:
    done = subprocess.run([sys.executable, "-m", "ldlm_lint", "rules", "--format", "json"], cwd=ROOT, capture_output=True, check=True)
    described = json.loads(done.stdout)["rules"]
    assert len(described) > 90
    assert promises.broken_by_rules([], described, "first", __version__) == []
    assert promises.broken_by_rules(described, described, "patch", "0.1.1") == []


def test_fields_of_schemas_come_and_go_as_promised() -> None:
    def schema(version: int, *fields: str) -> dict[str, Any]:
        items = {"items": {"$ref": "#/$defs/one"}}
        return {
            "properties": {"schema": {"const": f"x/{version}"}, "all": items},
            "$defs": {"one": {"properties": {field: {} for field in fields}}},
        }

    old, gone, new = {"x": schema(1, "a", "b")}, {"x": schema(1, "a")}, {"x": schema(1, "a", "b", "c")}
    assert promises.broken_by_schemas(old, old, "patch") == []
    assert promises.broken_by_schemas(old, gone, "minor") == ["x: the field one.b is gone"]
    assert promises.broken_by_schemas(old, gone, "major") == ["x: the field one.b is gone"]
    assert promises.broken_by_schemas(old, {"x": schema(2, "a")}, "major") == []
    assert promises.broken_by_schemas(old, new, "minor") == []
    assert promises.broken_by_schemas(old, new, "patch") == ["x: the field one.c is new: not in a patch release"]
    assert promises.broken_by_schemas(old, {}, "major") == ["x is gone"]
    inside = {"x": {"properties": {"a": {"properties": {"b": {}}}}}}
    assert promises.broken_by_schemas(inside, {"x": {}}, "minor") == ["x: the field a is gone"]
    # A schema without a version, as that of the configuration, may lose fields in a major release.
    assert promises.broken_by_schemas(inside, {"x": {}}, "major") == []


def test_what_is_not_installed_is_named() -> None:
    requirements = ["packaging>=1", "packaging>=99999", "no-such-package>=1", "no-such-package>=1; python_version < '3'"]
    assert release.unmet(requirements) == ["packaging>=99999", "no-such-package>=1"]


def test_a_clean_tree_on_the_branch_of_releases_is_accepted(repository: Path) -> None:
    assert release.check_tree(of(repository)) == "clean, on main"


def test_what_is_not_committed_is_refused(repository: Path) -> None:
    (repository / "new.txt").write_text("")
    with pytest.raises(ReleaseError, match=r"the working tree is not clean \(1 files, such as new.txt\): commit first"):
        release.check_tree(of(repository))


def test_another_branch_is_refused(repository: Path) -> None:
    git("switch", "-qc", "work", cwd=repository)
    with pytest.raises(ReleaseError, match="this is branch work, releases are made from main"):
        release.check_tree(of(repository))


def test_a_version_that_was_released_is_refused(repository: Path) -> None:
    git("tag", "0.2.0", cwd=repository)
    with pytest.raises(ReleaseError, match=r"the tag 0\.2\.0 exists"):
        release.check_tree(of(repository))
    assert release.previous(of(repository)) == "0.2.0"


def test_files_of_an_earlier_try_are_not_overwritten(repository: Path) -> None:
    (repository / ".git" / "info" / "exclude").write_text("dist/\n")
    of(repository).target.mkdir(parents=True)
    with pytest.raises(ReleaseError, match="exists: remove it first"):
        release.check_tree(of(repository))


def test_a_command_that_fails_is_named_with_the_place_of_its_output(repository: Path) -> None:
    made = of(repository)
    with pytest.raises(ReleaseError, match=r"`git no-such-command` ended with 1 instead of 0; its output is the last in .*log\.txt"):
        release.git(made, "no-such-command")
    assert "no-such-command" in made.log.read_text()
    with pytest.raises(ReleaseError, match="no-such-program is not installed"):
        release.run(made, "no-such-program", cwd=repository)


def test_the_first_step_that_fails_is_the_last(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = []

    def good(made: release.Release) -> str:
        taken.append("good")
        return made.version

    def bad(made: release.Release) -> str:
        raise ReleaseError("why")

    assert not release.made(of(repository), [("one", good), ("two", bad), ("three", good)])
    assert taken == ["good"]
    assert capsys.readouterr().out.splitlines() == ["ok      one: 0.2.0  [0 s]", "FAILED  two: why"]


def test_a_release_is_taken_over_from_the_clone(repository: Path) -> None:
    made = of(repository)
    git("clone", "-q", str(repository), str(made.checkout), cwd=made.scratch)
    (made.checkout / "file.txt").write_text("b\n")
    git("commit", "-qam", "Release 0.2.0", cwd=made.checkout)
    made.files.mkdir()
    (made.files / "a.whl").write_text("")
    release.take_over(made)
    assert git("log", "-1", "--format=%s", cwd=repository) == "Release 0.2.0"
    assert (repository / "file.txt").read_text() == "b\n" and (made.target / "a.whl").is_file()
    # Pushing, tagging and uploading is left to a person.
    assert git("tag", "--list", cwd=repository) == ""
    commands = release.remaining(made)
    assert 'git tag --sign 0.2.0 --message "ldlm-lint 0.2.0"' in commands and "twine upload dist/0.2.0/*.whl" in commands
    assert "vsce" not in commands
    made.target = repository / "my files"
    assert "twine upload 'my files/'*.whl 'my files/'*.tar.gz" in release.remaining(made)


@pytest.mark.network
@pytest.mark.slow
def test_a_rehearsal_of_this_repository_changes_nothing(tmp_path: Path) -> None:
    """Needs uv and the extras dev and release; the tests are left out."""
    clone = tmp_path / "clone"
    git("clone", "-q", "--no-tags", str(ROOT), str(clone), cwd=tmp_path)
    git("switch", "-qC", "main", cwd=clone)
    git("config", "user.name", "a", cwd=clone)
    git("config", "user.email", "a@b.c", cwd=clone)
    changelog = clone / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## Unreleased\n", "## Unreleased\n\n- A change.\n", 1))
    git("commit", "-qam", "A change", cwd=clone)
    before = git("log", "--all", "--format=%H", cwd=clone)
    version = "77.0.0"
    command = [sys.executable, "scripts/release.py", version, "--skip-tests"]

    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    steps = [line for line in done.stdout.splitlines() if line.startswith("ok ")]
    assert len(steps) == len(release.STEPS) and "SKIPPED (--skip-tests)" in done.stdout
    assert f"ldlm_lint-{version}-py3-none-any.whl" in done.stdout and re.search(r"Found \d+ findings", done.stdout)
    assert git("log", "--all", "--format=%H", cwd=clone) == before and git("status", "--porcelain", cwd=clone) == ""

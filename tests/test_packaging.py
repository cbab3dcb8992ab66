"""One set of packages however rlqueue is installed, and a built wheel that lacks nothing."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from rlqueue.report.chromium import VARIABLE, find_chromium

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())


def direct_requirements() -> list[Requirement]:
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    return [Requirement(text) for one in lists for text in one]


def locked_versions() -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ;]+)", LOCK, flags=re.MULTILINE))


def conda_pins() -> dict[str, str]:
    entries = CONDA["dependencies"]
    by_pip = next(entry["pip"] for entry in entries if isinstance(entry, dict))
    pins = [entry for entry in [*entries, *by_pip] if isinstance(entry, str) and "=" in entry]
    return {canonicalize_name(name): version for name, version in (re.split("==?", pin) for pin in pins)}


@pytest.mark.parametrize("requirement", direct_requirements(), ids=str)
def test_the_lock_holds_what_pyproject_asks_for(requirement):
    version = locked_versions().get(canonicalize_name(requirement.name))
    assert version is not None, f"{requirement} is not in requirements.lock: run `make lock`"
    assert version in requirement.specifier, f"requirements.lock has {version}: run `make lock`"


def test_each_package_in_the_lock_is_held_by_hash_and_by_no_address():
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert len(entries) == len(locked_versions())
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in LOCK


def test_conda_users_get_the_versions_of_the_lock():
    pins = conda_pins()
    assert pins.pop("python") in SpecifierSet(PROJECT["requires-python"])
    locked = locked_versions()
    assert pins == {name: locked[name] for name in (canonicalize_name(r.name) for r in direct_requirements())}


def test_conda_users_need_conda_forge_alone():
    assert CONDA["name"] == PROJECT["name"]
    assert CONDA["channels"] == ["conda-forge", "nodefaults"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built by the backend in this environment: no network, and nothing left in the tree."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def tracked_files(*folders: str) -> list[str]:
    """What git knows or would add: a stray cache is no part of the package."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders]
    listed = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: there is no list to compare the wheel with")
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def test_the_wheel_carries_the_code_the_data_and_the_notebooks(wheel):
    expected = {
        name if name.startswith("rlqueue/") else f"rlqueue/{name}"
        for name in tracked_files("rlqueue", "data", "notebooks")
    }
    with zipfile.ZipFile(wheel) as archive:
        carried = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert any(name.startswith("rlqueue/data/presets/") for name in carried)
    assert any(name.endswith(".ipynb") for name in carried)
    assert carried == expected


def test_an_installed_wheel_finds_its_data_far_from_the_tree(wheel, tmp_path):
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel],
        check=True,
    )
    # A path file lends numpy and the rest, but not the editable rlqueue: path files of a folder so added are not read.
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))

    def run(*command):
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        finished = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    imported_from = run(python, "-c", "import rlqueue; print(rlqueue.__file__)").strip()
    assert Path(imported_from).is_relative_to(site)
    presets = run(tmp_path / "venv" / "bin" / "rlqueue", "presets")
    assert "prime-rl-qwen3-235b" in presets


def test_a_browser_named_by_the_user_is_taken_or_refused_but_never_replaced(monkeypatch, tmp_path):
    stand_in = tmp_path / "my-chromium"
    stand_in.write_text("#!/bin/sh\nexit 0\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(stand_in))
    assert find_chromium() == str(stand_in)
    stand_in.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(ValueError, match=rf"{VARIABLE}=.*my-chromium does not run"):
        find_chromium()

"""requirements/*.txt: what the container installs, to the byte."""

import re

import pytest

from tests.project.dockerfile import stages
from tests.project.repository import package_name, pyproject, read

LOCKS = ["serve", "prepare"]


def locked(name: str) -> dict[str, str]:
    """Package to version."""
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", read(f"requirements/{name}.txt"), re.MULTILINE))


def wanted(name: str) -> set[str]:
    project = pyproject()["project"]
    extras = project["optional-dependencies"]["models"] if name == "prepare" else []
    return {package_name(requirement) for requirement in [*project["dependencies"], *extras]} - {"torch"}


@pytest.mark.parametrize("name", LOCKS)
def test_everything_that_the_project_asks_for_is_locked(name: str) -> None:
    assert wanted(name) <= set(locked(name)), "run `make lock`"
    assert "setuptools" in locked(name)


@pytest.mark.parametrize("name", LOCKS)
def test_versions_are_those_that_the_project_allows(name: str) -> None:
    project = pyproject()["project"]
    for requirement in project["dependencies"]:
        version = locked(name)[package_name(requirement)]
        for sign, bound in re.findall(r"(>=|<|==)([\d.]+)", requirement.partition(";")[0]):
            as_numbers = [[int(n) for n in re.findall(r"\d+", each)] for each in (version, bound)]
            assert sign != ">=" or as_numbers[0] >= as_numbers[1], f"{requirement}: run `make lock`"
            assert sign != "<" or as_numbers[0] < as_numbers[1], f"{requirement}: run `make lock`"


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_has_hashes_and_nothing_names_a_source(name: str) -> None:
    lines = read(f"requirements/{name}.txt").replace("\\\n", " ").splitlines()
    assert len(lines) > 50
    hashed = re.compile(r"[a-z0-9._-]+==\S+( ; [^\\]+)?(\s+--hash=sha256:[0-9a-f]{64})+")
    assert [line[:100] for line in lines if not hashed.fullmatch(line)] == []


def test_no_build_of_torch_is_locked() -> None:
    of_torch = ("torch", "triton", "nvidia-", "cuda-")
    assert [each for name in LOCKS for each in locked(name) if each.startswith(of_torch)] == []


def test_both_locks_agree() -> None:
    serve, prepare = (locked(name) for name in LOCKS)
    assert {each: serve[each] for each in serve.keys() & prepare.keys()} == {
        each: prepare[each] for each in serve.keys() & prepare.keys()
    }


def test_the_container_installs_nothing_without_hashes_but_torch() -> None:
    installs = [run for stage in stages() for run in stage.all("RUN") if "pip install" in run]
    assert len(installs) == 5
    for run in installs:
        is_locked = "--require-hashes" in run or "--no-build-isolation /src" in run
        assert "--no-deps" in run if is_locked else '"torch==' in run

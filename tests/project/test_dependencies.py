import re

from tests.project.repository import package_name, pyproject, read


def declared() -> set[str]:
    project = pyproject()
    requirements = [
        *project["project"]["dependencies"],
        *(r for extra in project["project"]["optional-dependencies"].values() for r in extra),
        *(r for group in project["dependency-groups"].values() for r in group),
    ]
    return {package_name(requirement) for requirement in requirements}


def test_every_dependency_is_justified_and_nothing_else_is() -> None:
    rows = re.findall(r"^\| (`[^|]*) \|", read("docs/decisions/0004-dependencies.md"), re.MULTILINE)
    justified = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert justified == declared()


def test_the_lean_install_names_no_package_of_the_model_tools() -> None:
    project = pyproject()["project"]
    lean = {package_name(requirement) for requirement in project["dependencies"]}
    tools = {package_name(requirement) for requirement in project["optional-dependencies"]["models"]}
    assert {"torch", "sentence-transformers", "nncf"} <= tools
    assert not lean & tools

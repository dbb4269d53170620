"""Perform the Dockerfile's steps in an empty folder, for machines without a container engine.

    python -m tests.project.dockerfile_steps FOLDER

The folder stands for the root of the image: `/opt/bifocal` becomes `FOLDER/opt/bifocal`. All stages share
it, so what is copied between them is in place already. Then the service and the worker start as the image
would start them (as another user where this one is root, so that only /data is writable), the health check
runs, and both are stopped by SIGTERM.

What this does not show: the base image, the package manager's own layers, a kernel-enforced read-only root.
"""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.project.dockerfile import Stage, stages
from tests.project.repository import ROOT

IMAGE_PATHS = re.compile(r"(?<![\w./])/(opt|src|data|usr/share/doc)\b")
USER = 10001
READY_WITHIN_S = 60.0
STOPPED_WITHIN_S = 30.0


def placed(text: str, root: Path) -> str:
    """`text` with the image's paths inside `root`."""
    return IMAGE_PATHS.sub(lambda match: f"{root}/{match[1]}", text)


def environment(stage: Stage, root: Path) -> dict[str, str]:
    """ARG and ENV over what the build machine's pip needs; none of this project's own variables."""
    outside = {
        name: value for name, value in os.environ.items() if not name.startswith(("BIFOCAL_", "VIRTUAL_ENV"))
    }
    pairs = [word.partition("=") for text in stage.all("ENV") for word in shlex.split(text)]
    arguments = {
        word.partition("=")[0]: os.environ.get(word.partition("=")[0], "") for word in stage.all("ARG")
    }
    inside = {name: placed(value, root).replace("$PATH", outside["PATH"]) for name, _, value in pairs}
    return {**outside, **arguments, **inside}


def build(root: Path) -> None:
    """COPY from the context and RUN, stage by stage; making users is left out."""
    for stage in stages():
        variables = environment(stage, root)
        folder = root
        for step in stage.instructions:
            if step.word == "WORKDIR":
                folder = Path(placed(step.arguments, root))
                folder.mkdir(parents=True, exist_ok=True)
            elif step.word == "COPY" and not step.arguments.startswith("--from"):
                *sources, target = step.arguments.split()
                copy(sources, folder / placed(target, root))
            elif step.word == "RUN" and "useradd" in step.arguments:
                report(f"{stage.name}: not run here: {step.arguments}")
            elif step.word == "RUN":
                run(stage, placed(step.arguments, root), variables, folder)


def copy(sources: list[str], target: Path) -> None:
    for source in sources:
        found = ROOT / source
        if found.is_dir():
            shutil.copytree(found, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, target)


def run(stage: Stage, command: str, variables: dict[str, str], folder: Path) -> None:
    began = time.monotonic()
    report(f"{stage.name}: {command}")
    # Docker's own shell form is `/bin/sh -c`.
    subprocess.run(["/bin/sh", "-c", command], env=variables, cwd=folder, check=True)
    report(f"{stage.name}: done in {time.monotonic() - began:.0f} s")


def start(root: Path) -> None:
    """Both processes, their health, and their end."""
    final = stages()[-1]
    variables = environment(final, root)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    variables |= {"BIFOCAL_PORT": port, "HOME": "/nonexistent"}
    data = root / "data"
    data.mkdir(exist_ok=True)
    user = None
    if os.geteuid() == 0:
        shutil.chown(data, USER, USER)
        user = USER
    entry = [str(root / "opt/bifocal/bin" / json.loads(final.only("ENTRYPOINT"))[0])]
    health = json.loads(final.only("HEALTHCHECK").partition(" CMD ")[2])
    health = [
        str(root / "opt/bifocal/bin/python"),
        *(word.replace(":8000/", f":{port}/") for word in health[1:]),
    ]
    began = time.monotonic()
    processes = [
        subprocess.Popen(
            [*entry, command],
            env=variables,
            cwd=data,
            user=user,
            group=user,
            extra_groups=[] if user else None,
        )
        for command in ("serve", "worker")
    ]
    try:
        while (
            subprocess.run(health, env=variables, check=False, capture_output=True, cwd=data).returncode != 0
        ):
            if time.monotonic() - began > READY_WITHIN_S or any(p.poll() is not None for p in processes):
                raise SystemExit("the service did not become healthy")
            time.sleep(0.2)
        report(f"healthy {time.monotonic() - began:.1f} s after the start")
    finally:
        for process in processes:
            process.terminate()
        codes = [process.wait(STOPPED_WITHIN_S) for process in processes]
    report(f"exit codes after SIGTERM: {codes}")
    if any(code not in (0, -15) for code in codes):
        raise SystemExit(1)


def require_lean(root: Path) -> None:
    """The environment that ships has none of the model tools."""
    listing = subprocess.run(
        [str(root / "opt/bifocal/bin/python"), "-m", "pip", "list", "--format=json"],
        check=True,
        capture_output=True,
    )
    names = {package["name"] for package in json.loads(listing.stdout)}
    heavy = names & {"torch", "nncf", "sentence-transformers", "transformers"}
    if heavy:
        raise SystemExit(f"the final image would contain {', '.join(sorted(heavy))}")
    size = subprocess.run(
        ["du", "-sm", str(root / "opt/bifocal")], check=True, capture_output=True, text=True
    )
    report(f"environment of the final image: {len(names)} packages, {size.stdout.split()[0]} MiB")


def report(line: str) -> None:
    sys.stderr.write(f"== {line}\n")


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    root.mkdir(parents=True)
    build(root)
    require_lean(root)
    start(root)

"""Perform the Dockerfile's steps in an empty folder, for machines without a container engine.

    python -m tests.project.dockerfile_steps FOLDER

The folder stands for the root of the image: `/opt/bifocal` becomes `FOLDER/opt/bifocal`. All stages share
it, so what is copied between them is in place already. Then the service and the worker start as the image
would start them, the health check runs, and both are stopped by SIGTERM. Where this runs as root, the folder
is mounted read-only but for /data, and the processes run as the image's user if they can reach Python.

What this does not show: the base image and the making of its user.
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
import urllib.request
from pathlib import Path
from typing import Any

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
    variables |= {"BIFOCAL_PORT": port, "BIFOCAL_INSECURE": "true", "HOME": "/nonexistent"}
    data = root / "data"
    data.mkdir(exist_ok=True)
    prefix = confinement(root, data)
    entry = [str(root / "opt/bifocal/bin" / json.loads(final.only("ENTRYPOINT"))[0])]
    health = json.loads(final.only("HEALTHCHECK").partition(" CMD ")[2])
    health = [
        str(root / "opt/bifocal/bin/python"),
        *(word.replace(":8000/", f":{port}/") for word in health[1:]),
    ]
    began = time.monotonic()
    processes = [
        subprocess.Popen([*prefix, *entry, command], env=variables, cwd=data)
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
        subprocess.run([*prefix, *entry, "doctor", "--worker"], env=variables, check=True, cwd=data)
        answer(f"http://127.0.0.1:{port}/v1/collections/harbour")
    finally:
        for process in processes:
            process.terminate()
        codes = [process.wait(STOPPED_WITHIN_S) for process in processes]
    report(f"exit codes after SIGTERM: {codes}")
    if any(code not in (0, -15) for code in codes):
        raise SystemExit(1)


def answer(collection: str) -> None:
    """Write a document and find it."""
    request(collection, {}, method="PUT")
    request(f"{collection}/documents/1", {"text": "The ferry leaves at noon."}, method="PUT")
    found = request(f"{collection}/search/asymmetric", {"query": "when does the boat go"}, method="POST")
    report(f"found: {found['hits'][0]['passages'][0]['text']}")


def request(url: str, body: dict[str, str], *, method: str) -> dict[str, Any]:
    headers = {"content-type": "application/json"}
    asked = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(asked, timeout=60) as response:
        content: dict[str, Any] = json.load(response)
    return content


READ_ONLY = (
    'mount --bind "$0" "$0" && mount --bind "$0/data" "$0/data" && mount -o remount,bind,ro "$0" && exec "$@"'
)


def confinement(root: Path, data: Path) -> list[str]:
    """The words before a command that take away what the image's processes do not have."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        report("not shown here, for want of root and unshare: read-only root, another user")
        return []
    mounted = ["unshare", "--mount", "sh", "-c", READ_ONLY, str(root)]
    interpreter = (root / "opt/bifocal/bin/python").resolve()
    if not all(folder.stat().st_mode & 0o001 for folder in interpreter.parents):
        report(f"not shown here, because others may not reach {interpreter}: another user")
        return mounted
    shutil.chown(data, USER, USER)
    return [*mounted, "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]


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

"""`bifocal up`: service and worker under one roof, with what to open printed when they answer."""

import json
import signal
import sys
import threading
import urllib.error
import urllib.request
from functools import partial

from app.errors import ModelUnavailable
from app.settings import Settings
from indexer.cli import demo
from indexer.cli.composition import open_rows
from indexer.cli.failures import FAILED
from indexer.cli.preparing import prepare_if_needed
from indexer.cli.printing import output
from indexer.cli.serving import require_free_port, require_safe_address, require_usable_home, settings_with
from indexer.cli.supervision import Child, supervise


def up(*, host: str | None, port: int | None, with_demo: bool) -> int:
    """Run both until a signal comes. Gives the exit code."""
    settings = settings_with(host=host, port=port)
    require_safe_address(settings)
    free_port = require_free_port(settings.host, settings.port)
    settings = settings_with(host=settings.host, port=free_port)
    require_usable_home(settings)
    _prepare(settings)
    job_ids = demo.submit(settings) if with_demo else []
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    console = output()
    is_well = supervise(
        [Child(name, [sys.executable, "-m", "indexer", command, "--die-with-parent"])
         for name, command in (("service", "serve"), ("worker", "worker"))],
        stop=stop,
        say=partial(console.print, markup=False, soft_wrap=True),
        is_ready=lambda: answers(settings) and demo.is_done(settings, job_ids),
        ready=announcement(base_url(settings), with_demo=with_demo, needs_key=needs_key(settings)),
    )  # fmt: skip
    return 0 if is_well else FAILED


def _prepare(settings: Settings) -> None:
    """Before the start, so that both processes load the fast form of the model."""
    if settings.runtime == "torch":
        return
    try:
        prepare_if_needed(settings)
    except ModelUnavailable as error:
        if settings.runtime == "openvino":
            raise
        output().print(f"The model runs uncompiled: {error}", markup=False, soft_wrap=True)


def needs_key(settings: Settings) -> bool:
    with open_rows(settings) as rows:
        return bool(rows.api_keys())


def announcement(url: str, *, with_demo: bool, needs_key: bool = False) -> str:
    lines = [
        "",
        "Bifocal is ready; Ctrl-C stops it.",
        "",
        f"  {url}/docs",
        f"  {url}/redoc",
        f"  {url}/v1/collections",
        "",
    ]
    if with_demo:
        body = json.dumps({"query": demo.QUERY, "top_k": 3})
        key = ' -H "Authorization: Bearer $KEY"' if needs_key else ""
        lines += [
            f"Ask it something{', with the secret of your key in KEY' if needs_key else ''}:",
            "",
            f"  curl -s {url}/v1/collections/{demo.COLLECTION}/search/asymmetric"
            f" -H 'content-type: application/json'{key} -d '{body}'",
            "",
        ]
    return "\n".join(lines)


def answers(settings: Settings) -> bool:
    try:
        with urllib.request.urlopen(f"{base_url(settings)}/readyz", timeout=2) as response:  # noqa: S310 - http
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def base_url(settings: Settings) -> str:
    """Where a browser on this machine finds the service."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - compared
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}{settings.root_path}"

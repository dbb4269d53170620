"""`bifocal serve`: the process that answers requests."""

import ipaddress
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from app.logs import log_config
from app.settings import Settings
from app.storage.sqlite import SqliteRows
from indexer.cli.failures import fail
from indexer.cli.supervision import die_with_parent

MULTIPROCESS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable in which prometheus-client looks for it."""
GRACE_S = 5
"""For requests under way when the service stops. A client that follows a job would never let it end."""


def serve(*, host: str | None, port: int | None, n_processes: int, is_child: bool) -> None:
    """Answer requests until a signal comes."""
    if is_child:
        die_with_parent()
    settings = settings_with(host=host, port=port)
    require_safe_address(settings)
    require_usable_home(settings)
    with _shared_counts(n_processes):
        _run(settings, n_processes)


@contextmanager
def _shared_counts(n_processes: int) -> Iterator[None]:
    """A folder where several processes keep their counts together; see `app.api.metrics`."""
    if n_processes == 1:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="bifocal-metrics-") as folder:
        os.environ[MULTIPROCESS_FOLDER] = folder
        yield


def _run(settings: Settings, n_processes: int) -> None:
    uvicorn.run(
        "app.main:create_app",
        factory=True,
        host=settings.host,
        port=require_free_port(settings.host, settings.port),
        workers=n_processes,
        log_config=log_config(settings),
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )


def settings_with(*, host: str | None, port: int | None) -> Settings:
    """The environment's settings; what was given on the command line goes first, for child processes too."""
    if host is not None:
        os.environ["BIFOCAL_HOST"] = host
    if port is not None:
        os.environ["BIFOCAL_PORT"] = str(port)
    return Settings.from_environment()


def require_safe_address(settings: Settings) -> None:
    """Without keys, whoever reaches the port may read and change everything."""
    if is_loopback(settings.host) or settings.insecure or _has_keys(settings):
        return
    fail(
        f"refusing to listen on {settings.host}: there is no key, so everyone who reaches the service could "
        "read and change everything. Make one with `bifocal keys create NAME --scope admin`; or listen on "
        "127.0.0.1, behind a proxy that checks who calls; or set BIFOCAL_INSECURE=true if the network itself "
        "is closed"
    )


def require_usable_home(settings: Settings) -> None:
    """Make the store if it is not there. Said once here, instead of by every process that is started.

    Raises StorageError.
    """
    SqliteRows(settings.rows_file).close()


def _has_keys(settings: Settings) -> bool:
    """Whether a key counts. A store that is not there is not made for that."""
    path = settings.rows_file
    if not path.exists():
        return False
    rows = SqliteRows(path)
    try:
        return any(stored.key.revoked_at is None for stored in rows.api_keys())
    finally:
        rows.close()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_free_port(host: str, port: int) -> int:
    """The port, or a free one for 0. Ends the command where it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            fail(
                f"cannot listen on {host} port {port}: {error.strerror}; "
                "choose another with --port or BIFOCAL_PORT"
            )
        return int(probe.getsockname()[1])

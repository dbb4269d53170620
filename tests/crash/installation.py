"""A service and a worker over one store, to be killed and started again."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import httpx

from tests.crash.traps import Trap

ROOT = Path(__file__).parents[2]
Role = Literal["service", "worker"]
ROLES: Sequence[Role] = ("service", "worker")
READY_WITHIN_S = 120.0
POLL_S = 0.05


class Installation:
    """
    Args:
        folder: gets the store, the trap and the processes' logs.
        port: a free one; the same at every start.
        settings: variables of both processes.
    """

    def __init__(
        self, folder: Path, *, port: int, encoder: Literal["stand-in", "real"], settings: Mapping[str, str]
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.home = folder / "home"
        self.url = f"http://127.0.0.1:{port}"
        self._trap_file = folder / "trap"
        self._encoder = encoder
        self._variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith("BIFOCAL_")},
            "BIFOCAL_HOME": str(self.home),
            "OMP_NUM_THREADS": "1",
            **settings,
        }
        self._commands: Mapping[Role, Sequence[str]] = {
            "service": ("serve", "--port", str(port)),
            "worker": ("worker",),
        }
        self._processes: dict[Role, subprocess.Popen[bytes]] = {}
        self._worker_log_start = 0

    def start(self) -> float:
        """Start what does not run. Gives the seconds until both are ready."""
        began = time.perf_counter()
        for role in ROLES:
            if role not in self._processes:
                self._start(role)
        with httpx.Client(base_url=self.url, timeout=30) as client:
            while not self._is_ready(client):
                if self.dead():
                    raise RuntimeError(f"{self.dead()} ended at its start: {self.logs()}")
                if time.perf_counter() - began > READY_WITHIN_S:
                    raise RuntimeError(f"not ready within {READY_WITHIN_S} s: {self.logs()}")
                time.sleep(POLL_S)
        return time.perf_counter() - began

    def pid(self, role: Role) -> int:
        return self._processes[role].pid

    def set_trap(self, trap: Trap) -> None:
        draft = self._trap_file.with_suffix(".new")
        draft.write_text(str(trap))
        draft.replace(self._trap_file)

    def take_trap_away(self) -> bool:
        """False: it was gone, because a process stepped into it."""
        is_there = self._trap_file.exists()
        self._trap_file.unlink(missing_ok=True)
        return is_there

    def dead(self) -> list[Role]:
        return [role for role, process in self._processes.items() if process.poll() is not None]

    def kill(self, *roles: Role) -> None:
        """kill -9, whatever they are doing."""
        for role in roles:
            self._processes[role].kill()
        for role in roles:
            self._processes[role].wait()

    def bury(self) -> None:
        """Forget those that ended, so that they are started again."""
        for role in self.dead():
            del self._processes[role]

    def stop(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def logs(self, n_chars: int = 4_000) -> str:
        """Their ends."""
        texts = [self._log(role).read_text(errors="replace") for role in ROLES]
        return "\n".join(text[-n_chars:] for text in texts)

    def _start(self, role: Role) -> None:
        command = [sys.executable, "-m", "tests.crash.process", str(self._trap_file), self._encoder]
        with self._log(role).open("ab") as log:
            if role == "worker":
                self._worker_log_start = log.tell()
            self._processes[role] = subprocess.Popen(
                [*command, *self._commands[role]], cwd=ROOT, env=self._variables, stderr=log, stdout=log
            )

    def _is_ready(self, client: httpx.Client) -> bool:
        """`/readyz` believes a worker's lease until it runs out: that the new one took it is in its log."""
        try:
            return client.get("/readyz").status_code == 200 and self._is_worker_at_work()
        except httpx.TransportError:
            return False

    def _is_worker_at_work(self) -> bool:
        with self._log("worker").open("rb") as log:
            log.seek(self._worker_log_start)
            return b"worker started" in log.read()

    def _log(self, role: Role) -> Path:
        return self.folder / f"{role}.log"

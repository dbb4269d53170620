"""What `bifocal doctor` does."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from app.domain.health import Checked, Fault, worst
from app.engine.embedder import Embedder
from app.engine.models import load_tokenizer
from app.errors import BifocalError, StorageError
from app.services.doctor.examining import examine as examine_store
from app.services.doctor.patient import Thoroughness
from app.settings import Settings
from app.storage.rows import Rows
from indexer.cli.composition import encoder_files, open_embedder, open_rows, open_store
from indexer.cli.failures import FAILED
from indexer.cli.printing import output, print_json
from indexer.encoding import DocumentEncoder
from indexer.mending import Mended, Mender

ROUNDS = 3
"""Of repair: what is made anew may show what else is wrong, and mostly one is enough."""


def examine_worker(settings: Settings) -> int:
    """Gives the exit code; for health checks of containers."""
    console = output()
    try:
        with open_rows(settings) as rows:
            is_alive = rows.worker_alive()
    except (BifocalError, OSError) as error:
        console.print(f"worker: PROBLEM: {error}", markup=False, soft_wrap=True)
        return FAILED
    console.print("worker: running" if is_alive else "worker: PROBLEM: none is running", markup=False)
    return 0 if is_alive else FAILED


def examine(settings: Settings, *, is_repaired: bool, sample: int, as_json: bool) -> int:
    """Gives the exit code."""
    mended: list[Mended] = []
    with ExitStack() as opened:
        doctor = _Doctor(settings, opened, sample=sample)
        checks = doctor.checks()
        for _ in range(ROUNDS if is_repaired else 0):
            done = doctor.mend(checks)
            mended += done
            if not done:
                break
            checks = doctor.checks()
            if not any(each.is_done for each in done):
                break
    if as_json:
        print_json(_as_json(checks, mended))
    else:
        _print(checks, mended)
    return FAILED if worst(tuple(checks)) == "problem" else 0


class _Doctor:
    """Keeps the model loaded between an examination and the one after a repair."""

    def __init__(self, settings: Settings, opened: ExitStack, *, sample: int) -> None:
        self._settings = settings
        self._opened = opened
        self._thoroughness = Thoroughness(sample=sample)
        self._embedder: Embedder | None = None

    def checks(self) -> Sequence[Checked]:
        with _rows_if_any(self._settings) as rows:
            return examine_store(self._settings, rows, self._load, self._thoroughness)

    def mend(self, checks: Sequence[Checked]) -> list[Mended]:
        """Raises Conflict."""
        if not any(fault.remedy for check in checks for fault in check.faults):
            return []
        with open_store(self._settings) as store:
            directory = self._settings.index_folder
            return Mender(store.rows, store.index, directory, self._load_encoder).mend(checks)

    def _load(self) -> Embedder:
        if self._embedder is None:
            self._embedder = self._opened.enter_context(open_embedder(self._settings))
        return self._embedder

    def _load_encoder(self) -> DocumentEncoder:
        files = encoder_files(self._settings)
        tokenizer = load_tokenizer(files)
        return DocumentEncoder(self._load(), tokenizer, document_prompt=files.document_prompt)


@contextmanager
def _rows_if_any(settings: Settings) -> Iterator[Rows | None]:
    """None where they cannot be opened; the check of the schema then says why."""
    with ExitStack() as opened:
        try:
            rows = opened.enter_context(open_rows(settings))
        except StorageError:
            yield None
            return
        yield rows


def _print(checks: Sequence[Checked], mended: Sequence[Mended]) -> None:
    lines = [f"repair: {'done' if each.is_done else 'FAILED'}: {each.where}: {each.what}" for each in mended]
    for check in checks:
        partly = "" if check.is_complete else ", not all of it"
        if not check.faults:
            lines.append(f"{check.name}: ok ({check.looked_at}{partly})")
        lines += [f"{check.name}: {_shown(fault)}" for fault in check.faults]
    for line in lines:
        output().print(line, markup=False, soft_wrap=True)


def _shown(fault: Fault) -> str:
    status = "warning" if fault.is_warning else "PROBLEM"
    repair = f" [--repair would: {fault.remedy.value}]" if fault.remedy else ""
    return f"{status}: {fault.where}: {fault.what}{repair}"


def _as_json(checks: Sequence[Checked], mended: Sequence[Mended]) -> dict[str, object]:
    """As `GET /v1/doctor` answers, with what was repaired."""
    return {
        "status": worst(tuple(checks)),
        "checks": [
            {
                "name": check.name,
                "status": check.status,
                "looked_at": check.looked_at,
                "is_complete": check.is_complete,
                "faults": [
                    {
                        "status": "warning" if fault.is_warning else "problem",
                        "what": fault.what,
                        "where": fault.where,
                        "repair": fault.remedy.value if fault.remedy else None,
                    }
                    for fault in check.faults
                ],
            }
            for check in checks
        ],
        "repairs": [{"what": m.what, "where": m.where, "is_done": m.is_done} for m in mended],
    }

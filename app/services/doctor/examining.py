"""All checks, in order: the cheap ones first, for when there is little time."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from app.domain.health import Checked, Fault
from app.engine.embedder import Embedder
from app.errors import BifocalError, Overloaded
from app.services.doctor import indexes, machine, models
from app.services.doctor.patient import Patient, Thoroughness
from app.services.doctor.texts import texts
from app.services.doctor.vectors import encoding, vectors
from app.settings import Settings
from app.storage.rows import Rows
from app.storage.sqlite.examination import Examination, OutOfTime

logger = logging.getLogger(__name__)

Find = Callable[[], Iterator[Fault]]


def examine(
    settings: Settings, rows: Rows | None, load: Callable[[], Embedder], thoroughness: Thoroughness
) -> Sequence[Checked]:
    """Only reads, and may run beside all other work.

    Args:
        rows: None where they cannot be opened; then only the file is looked at, which says why.
        load: gives the encoder that runs, or raises.
    """
    run = _Run(thoroughness)
    found = [
        run.check("disk", "free space", lambda: machine.disk(settings)),
        run.check("permissions", "of the store's folders and files", lambda: machine.permissions(settings)),
    ]
    with ExitStack() as opened:
        schema = _open(run, settings, opened)
        found.append(schema)
        if run.examination is None:
            return found
        found.append(run.check("references", "rows that refer to others", run.examination.references))
        if rows is not None and schema.status == "ok":
            found += _of_open_store(run, Patient(settings, rows, load, thoroughness, run.examination))
        found.append(run.check("integrity", "every page of the rows' file", run.examination.integrity))
    return found


def _of_open_store(run: "_Run", patient: Patient) -> Sequence[Checked]:
    look = patient.examination
    found = [
        run.check("worker", "whether one is running", lambda: machine.worker(patient)),
        run.check("jobs", "leases of running jobs", look.leases),
        run.check("counters", "what collections say that they have", look.counters),
        run.check("completeness", "passages and vectors of every document", look.completeness),
        run.check("metadata", "their index, by which filters find documents", look.metadata),
        run.check("folders", "what lies among the index files", lambda: indexes.folders(patient)),
        run.check("base-files", "checksums of base files", lambda: indexes.bases(patient)),
        run.check("base-counts", "keys of base files and of the rows", lambda: indexes.base_counts(patient)),
        run.check("words", "checksums and entries of word indexes", lambda: indexes.words(patient)),
    ]
    found.append(run.check("model", "whether it answers", lambda: models.model(patient)))
    if patient.embedder is not None:
        sample = patient.thoroughness.sample
        found += [
            run.check("encoder", "what collections were made with", lambda: models.encoder(patient)),
            run.check("classifiers", "what they were trained with", lambda: models.classifiers(patient)),
            run.check("encoding", f"up to {sample} passages encoded anew", lambda: encoding(patient)),
        ]
    return [
        *found,
        run.check("vectors", "length of vectors, and whether base files agree", lambda: vectors(patient)),
        run.check("texts", "digests of texts, and passages as slices of them", lambda: texts(patient)),
    ]


def _open(run: "_Run", settings: Settings, opened: ExitStack) -> Checked:
    def schema() -> Iterator[Fault]:
        run.examination = opened.enter_context(Examination(settings.rows_file))
        yield from run.examination.schema()

    return run.check("schema", "version, tables and indexes of the rows' file", schema)


class _Run:
    """Gives every check its share of the time."""

    def __init__(self, thoroughness: Thoroughness) -> None:
        self.examination: Examination | None = None
        self._until = time.monotonic() + thoroughness.seconds
        self._check_seconds = thoroughness.check_seconds

    def check(self, name: str, looked_at: str, find: Find) -> Checked:
        if self.examination is not None:
            self.examination.deadline = min(self._until, time.monotonic() + self._check_seconds)
        found: list[Fault] = []
        try:
            for fault in find():
                found.append(fault)
        except (OutOfTime, Overloaded):
            return Checked(name, looked_at, tuple(found), is_complete=False)
        except (BifocalError, OSError) as error:
            return self._broken_off(name, looked_at, found, str(error))
        except Exception as error:  # whatever damage makes of one check, the others are still done
            logger.exception("check broken off name=%s", name)
            return self._broken_off(name, looked_at, found, f"{type(error).__name__}: {error}")
        return Checked(name, looked_at, tuple(found))

    @staticmethod
    def _broken_off(name: str, looked_at: str, found: list[Fault], why: str) -> Checked:
        fault = Fault(f"this check could not be ended: {why}", name)
        return Checked(name, looked_at, (*found, fault), is_complete=False)

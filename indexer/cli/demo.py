"""Puts the demo corpus and the project's own documents into the collection `demo`."""

from pathlib import Path

from app.domain import JobInput, JobKind
from app.settings import Settings
from indexer.cli.composition import find_or_create_collection, open_rows
from indexer.demo import CORPUS

COLLECTION = "demo"
QUERY = "who discovered oxygen"
ROOT = Path(__file__).parents[2]


def submit(settings: Settings) -> list[str]:
    """Ids of the jobs. Repeating it costs little: what did not change is left alone."""
    with open_rows(settings) as rows:
        key = find_or_create_collection(rows, COLLECTION, settings).key
        lines = CORPUS.read_bytes().splitlines()
        jobs = [rows.submit_job(key, JobKind.DOCUMENTS, [JobInput(i, line) for i, line in enumerate(lines)])]
        files = _own_documents()
        if files:
            jobs.append(rows.submit_job(key, JobKind.FILES, files))
        return [job.id for job in jobs]


def _own_documents() -> list[JobInput]:
    """Those of a checkout; an installed package has none."""
    paths = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path.is_file()]
    return [
        JobInput(i, path.read_bytes(), name=path.relative_to(ROOT).as_posix()) for i, path in enumerate(paths)
    ]


def is_done(settings: Settings, job_ids: list[str]) -> bool:
    with open_rows(settings) as rows:
        return all(rows.job(job_id).state.is_final for job_id in job_ids)

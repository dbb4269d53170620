"""Who may do what: every operation needs a scope of the caller's key.

While no key was ever made, everyone may do everything; `bifocal serve` then listens on this machine only.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from starlette.requests import Request

from app.api.state import parts
from app.errors import Forbidden, Unauthenticated
from app.keys import ApiKey, Scope

READ, WRITE, ADMIN = (Scope.READ,), (Scope.WRITE,), (Scope.ADMIN,)
OPEN = frozenset({"get_liveness", "get_readiness"})
"""Operations for everyone: probes have no keys. So are the pages of the interface's description."""
SCOPES: Mapping[str, tuple[Scope, ...]] = {
    "list_collections": (Scope.READ, Scope.WRITE),
    "get_collection": (Scope.READ, Scope.WRITE),
    "put_collection": ADMIN,
    "delete_collection": ADMIN,
    "put_search_settings": ADMIN,
    "reindex_collection": ADMIN,
    "roll_back_collection": ADMIN,
    "list_aliases": (Scope.READ, Scope.WRITE),
    "get_alias": (Scope.READ, Scope.WRITE),
    "put_alias": ADMIN,
    "delete_alias": ADMIN,
    "post_documents": WRITE,
    "put_document": WRITE,
    "delete_document": WRITE,
    "post_files": WRITE,
    "list_documents": READ,
    "get_document": READ,
    "search_asymmetric": READ,
    "search_symmetric": READ,
    "answer_question": READ,
    "answer_from_contexts": READ,
    "post_evaluation": WRITE,
    "post_evaluation_files": WRITE,
    "list_evaluations": READ,
    "get_evaluation": READ,
    "delete_evaluation": WRITE,
    "list_jobs": (Scope.READ, Scope.WRITE),
    "get_job": (Scope.READ, Scope.WRITE),
    "list_job_outcomes": (Scope.READ, Scope.WRITE),
    "stream_job_events": (Scope.READ, Scope.WRITE),
    "cancel_job": WRITE,
    "list_models": (Scope.READ, Scope.WRITE),
    "classify_sequence": READ,
    "classify_token": READ,
    "list_classifiers": READ,
    "get_classifier": READ,
    "list_classifier_versions": READ,
    "put_classifier": WRITE,
    "activate_classifier": WRITE,
    "delete_classifier": WRITE,
    "get_metrics": (Scope.METRICS,),
    "tokenize": READ,
    "inspect_embeddings": READ,
    "inspect_attention": READ,
    "inspect_fill_mask": READ,
    "inspect_next_sentence": READ,
    "examine_store": ADMIN,
}
"""Any one of them suffices. An operation that is missing here needs ADMIN."""
WITHOUT_COLLECTION = frozenset(
    {
        "list_collections",
        "list_aliases",
        "get_alias",
        "list_jobs",
        "get_job",
        "list_job_outcomes",
        "stream_job_events",
        "cancel_job",
        "list_models",
        "answer_from_contexts",
        "classify_sequence",
        "classify_token",
        "tokenize",
        "inspect_embeddings",
        "inspect_attention",
        "inspect_fill_mask",
        "inspect_next_sentence",
    }
)
"""Operations that a key restricted to some collections may call, though their path names none: they show
nothing of others."""


async def admit(request: Request, operation: str) -> None:
    """Let the caller in, before anything of the body is read.

    Raises:
        Unauthenticated, Forbidden, RateLimited
        StorageError: the keys cannot be read.
    """
    if operation in OPEN:
        return
    service = parts(request)
    await service.keyring.refresh()
    key = service.keyring.key_of(given_secret(request)) if service.keyring.is_needed else None
    address = request.client.host if request.client is not None else "unknown"
    service.rates.take(f"the address {address}" if key is None else f"the key {key.id}")
    if not service.keyring.is_needed:
        _require_own_page(request, service.settings.cors_origins)
        return
    if key is None:
        raise Unauthenticated(_unauthenticated(request))
    request.scope["api_key"] = key
    _require_scope(key, operation)
    if key.collections is not None:
        request.scope["reachable"] = service.keyring.with_what_they_lead_to(key.collections)
        _require_reach(key, operation, request)


def given_secret(request: Request) -> str:
    """From `Authorization: Bearer` or `X-API-Key`; empty if there is none."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "").strip()


def scopes_of(operation: str) -> tuple[Scope, ...]:
    return () if operation in OPEN else SCOPES.get(operation, ADMIN)


def reachable(request: Request) -> frozenset[str] | None:
    """Names of collections and aliases that the caller's key is restricted to, and of the collections that
    these aliases lead to; None: all."""
    names: frozenset[str] | None = request.scope.get("reachable")
    return names


def reaches(request: Request, collection: str) -> bool:
    names = reachable(request)
    return names is None or collection in names


def _require_own_page(request: Request, allowed_origins: Sequence[str]) -> None:
    """Web pages of others may not write through the browser of someone who can reach the service.

    Browsers send a form with files anywhere without asking first. They tell in `Sec-Fetch-Site` whose page it
    was (W3C Fetch Metadata); other clients send none.
    """
    site = request.headers.get("sec-fetch-site", "none")
    if request.method == "GET" or site in {"none", "same-origin"}:
        return
    if "*" not in allowed_origins and request.headers.get("origin") not in allowed_origins:
        raise Forbidden("a web page of another origin may not do this unless cors_origins allows it")


def _unauthenticated(request: Request) -> str:
    how = "send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`"
    if given_secret(request):
        return f"the key is not known or was revoked; {how}"
    return f"a key is needed; {how}"


def _require_scope(key: ApiKey, operation: str) -> None:
    needed = scopes_of(operation)
    if not key.allows(*needed):
        raise Forbidden(
            f"the key {key.id} has the scope {', '.join(sorted(key.scopes))}; "
            f"this needs {' or '.join(dict.fromkeys((*needed, Scope.ADMIN)))}"
        )


def _require_reach(key: ApiKey, operation: str, request: Request) -> None:
    """A key reaches the names it is restricted to, wherever an alias among them leads, and its collections
    through every alias. The answer is the same whether the collection exists or not."""
    named = request.path_params.get("collection")
    if named is None:
        if operation not in WITHOUT_COLLECTION:
            raise Forbidden(f"the key {key.id} is restricted to collections; this concerns all of them")
        return
    name = unquote(named)
    if reaches(request, name):
        return
    collection = parts(request).keyring.collection_of(name)
    if not reaches(request, collection):
        raise Forbidden(f"the key {key.id} is restricted to other collections")
    # Should the alias be led elsewhere before the endpoint looks, it would reach what the key does not.
    request.path_params["collection"] = collection

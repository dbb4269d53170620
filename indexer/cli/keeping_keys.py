"""What `bifocal keys` does."""

import sys
from collections.abc import Iterable
from typing import Any

from app.keys import ApiKey, Scope, new_key
from app.settings import Settings
from indexer.cli.composition import open_rows
from indexer.cli.printing import output, print_json, print_table


def create_key(
    settings: Settings,
    name: str,
    *,
    scopes: Iterable[Scope],
    collections: Iterable[str] | None,
    as_json: bool,
) -> None:
    """The secret alone goes to standard output, so that `KEY=$(bifocal keys create me)` has it."""
    stored, secret = new_key(name, scopes=scopes, collections=collections)
    with open_rows(settings) as rows:
        rows.add_key(stored)
    key = stored.key
    if as_json:
        print_json({**_shown(key), "secret": secret})
        return
    sys.stdout.write(f"{secret}\n")
    sys.stderr.write(
        f"This is the secret of the key {key.id} ({name}). It is shown this once and kept nowhere.\n"
        "Send it as `Authorization: Bearer SECRET` or `X-API-Key: SECRET`.\n"
    )


def list_keys(settings: Settings, *, as_json: bool) -> None:
    with open_rows(settings) as rows:
        found = [_shown(stored.key) for stored in rows.api_keys()]
    if as_json:
        print_json(found)
        return
    print_table(
        ("key", "name", "scopes", "collections", "created", "revoked"),
        [
            (
                each["id"],
                each["name"],
                ", ".join(each["scopes"]),
                "all" if each["collections"] is None else ", ".join(each["collections"]),
                each["created_at"],
                each["revoked_at"],
            )
            for each in found
        ],
    )


def revoke_key(settings: Settings, key_id: str) -> None:
    with open_rows(settings) as rows:
        key = rows.revoke_key(key_id)
        n_left = sum(stored.key.revoked_at is None for stored in rows.api_keys())
    output().print(f"Key {key.id} ({key.name}) is revoked; {n_left} left.", markup=False)
    if not n_left:
        sys.stderr.write("No key is left, so nobody gets in: `bifocal keys create` makes another one.\n")


def _shown(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "collections": None if key.collections is None else sorted(key.collections),
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    }

"""What `bifocal aliases` does."""

import dataclasses

from app.settings import Settings
from indexer.cli.composition import open_rows, require_name
from indexer.cli.printing import output, print_json, print_table


def list_aliases(settings: Settings, *, as_json: bool) -> None:
    with open_rows(settings) as rows:
        found = rows.aliases()
    if as_json:
        print_json([dataclasses.asdict(each) for each in found])
        return
    print_table(
        ("alias", "collection", "updated"), [(each.name, each.collection, each.updated_at) for each in found]
    )


def set_alias(settings: Settings, name: str, collection: str) -> None:
    require_name(name, of="an alias")
    with open_rows(settings) as rows:
        rows.put_alias(name, collection)
    output().print(f"Alias {name!r} leads to the collection {collection!r}.", markup=False)


def delete_alias(settings: Settings, name: str) -> None:
    with open_rows(settings) as rows:
        rows.drop_alias(name)
    output().print(f"Alias {name!r} deleted.", markup=False)

"""`bifocal settings`."""

from app.settings import PREFIX, Settings
from indexer.cli.printing import print_json, print_table


def print_settings(*, as_json: bool) -> None:
    settings = Settings.from_environment()
    values = settings.model_dump(mode="json")
    if as_json:
        print_json({PREFIX + name.upper(): value for name, value in values.items()})
        return
    print_table(
        ("variable", "value", "meaning"),
        [
            (PREFIX + name.upper(), values[name], field.description or "")
            for name, field in Settings.model_fields.items()
        ],
    )

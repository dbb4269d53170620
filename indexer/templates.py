"""Files out of templates."""

from typing import Any

import jinja2


def rendered(package: str, template: str, *, is_markup: bool = True, **values: Any) -> str:
    """A template of the package's folder `templates`, filled. A name that it lacks is an error.

    Args:
        is_markup: HTML or SVG, where text is escaped.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=is_markup,  # noqa: S701  Markdown is not escaped
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)

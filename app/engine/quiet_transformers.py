"""transformers without its bars and reports of loading, which say of every head that it is new."""

import transformers


def quiet() -> None:
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]

"""`python -m indexer` and the script `bifocal`."""

from indexer.cli.commands import app


def main() -> None:
    app(prog_name="bifocal")


if __name__ == "__main__":
    main()

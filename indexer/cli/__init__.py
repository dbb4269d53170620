"""The command `bifocal`. Reading order: commands, failures, composition, then a module per command."""

"""The command `lecture04` and its subcommands."""

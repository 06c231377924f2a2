"""The version of this package. The same as in pyproject.toml."""

VERSION = "0.1.0"

"""The command line: a thin layer over the Python interface.

Nothing slow is imported before a command needs it, so that `proving --help` answers at once.
"""

from provingground.cli.base import app, main  # isort: skip
from provingground.cli import looking, running, showing, web, keeping  # isort: skip  # in this order

__all__ = ["app", "keeping", "looking", "main", "running", "showing", "web"]

"""`python -m provingground.cli`."""

from provingground.cli import main

main()

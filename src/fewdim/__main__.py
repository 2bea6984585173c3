"""`python -m fewdim` is the `fewdim` command."""

from fewdim.cli import main

if __name__ == "__main__":
    main()

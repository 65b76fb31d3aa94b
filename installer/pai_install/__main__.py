"""`python -m pai_install`: the same as the `pai-install` command."""

from pai_install.cli.main import main

if __name__ == "__main__":
    main()

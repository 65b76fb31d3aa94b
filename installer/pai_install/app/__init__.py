"""Use cases: one function per capability, with a typed request, a typed result, and no terminal."""

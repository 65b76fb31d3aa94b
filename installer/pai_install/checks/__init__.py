"""Checks: declaration, verdict, the law of evidence, and every form of report."""

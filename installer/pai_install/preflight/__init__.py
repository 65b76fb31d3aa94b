"""Preflight: finds reasons why an installation would fail, before any change."""

"""Amounts of memory as Kubernetes writes them."""

from __future__ import annotations

import pytest

from pai_install.documents.quantity import QuantityError, format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("220Gi", 220 * 2**30),
        ("1Ki", 1024),
        ("1k", 1000),
        ("1.5Gi", 3 * 2**29),
        ("2Ti", 2 * 2**40),
        ("100M", 100_000_000),
        ("1e9", 10**9),
        ("1E3", 1000),
        ("1E", 10**18),
        (".5Gi", 2**29),
        ("224", 224),
        ("0", 0),
        (" 1Gi ", 2**30),
    ],
)
def test_quantities(text: str, amount: int) -> None:
    assert parse_bytes(text) == amount


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("220GB", "write 220G (powers of 1000) or 220Gi (powers of 1024)"),
        ("220gi", "write 220G (powers of 1000) or 220Gi (powers of 1024)"),
        ("64KB", "write 64k (powers of 1000) or 64Ki (powers of 1024)"),
        ("5x", "write it as Kubernetes does, e.g. 5Gi"),
        ("", "write it as Kubernetes does, e.g. 220Gi"),
        ("220 Gi", "write it as Kubernetes does, e.g. 220Gi"),
        ("-1Gi", "write it as Kubernetes does, e.g. 220Gi"),
        ("1,5Gi", "write it as Kubernetes does, e.g. 220Gi"),
        ("9" * 5000, "write it as Kubernetes does, e.g. 220Gi"),
        ("1e999", "write it as Kubernetes does, e.g. 220Gi"),
        ("²Gi", "write it as Kubernetes does, e.g. 220Gi"),
    ],
)
def test_what_is_none(text: str, remedy: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_bytes(text)
    assert caught.value.remedy == remedy
    assert len(str(caught.value)) < 140


@pytest.mark.parametrize(
    ("amount", "text"),
    [(220 * 2**30, "220Gi"), (2**40, "1Ti"), (1536 * 2**20, "1536Mi"), (1000, "1000"), (0, "0"), (1, "1")],
)
def test_amounts_are_written_in_the_largest_unit_that_divides_them(amount: int, text: str) -> None:
    assert format_bytes(amount) == text
    assert parse_bytes(text) == amount

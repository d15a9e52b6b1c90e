"""Where a hub may listen, and which URLs are its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost.errors import UsageError
from hitchpost.hub.address import Address, origin_of
from tests.reaching import certificate


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Hub.Example.org/", "https://hub.example.org"),
        ("https://hub.example.org:443", "https://hub.example.org"),
        ("https://hub.example.org:8443", "https://hub.example.org:8443"),
        ("hub.example.org", "https://hub.example.org"),
        ("http://localhost:9000", "http://localhost:9000"),
        ("http://[::1]:9000/", "http://[::1]:9000"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
    ],
)
def test_a_public_url_is_known_as_a_browser_writes_it(url: str, origin: str) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://a",
        "https://",
        "https://a/b",
        "https://a?x",
        "https://u@a",
        "https://a:99999",
        "https://a#x",
        "https://[a",
    ],
)
def test_what_is_no_address_of_a_page_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="expected --public-url to be like"):
        origin_of(url)


def test_plain_http_is_for_loopback_alone() -> None:
    with pytest.raises(UsageError, match="begin with https://"):
        origin_of("http://hub.example.org")


def test_links_use_the_first_public_url_and_loopback_stays_ours() -> None:
    address = Address(urls=("https://hub.example.org",)).checked()
    assert address.origins(8750) == [
        "https://hub.example.org",
        "http://127.0.0.1:8750",
        "http://[::1]:8750",
        "http://localhost:8750",
    ]


def test_other_addresses_need_tls_and_say_so() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.com", ""):
        with pytest.raises(UsageError, match="without TLS"):
            Address(host).checked()


def test_all_addresses_at_once_need_a_public_url(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with pytest.raises(UsageError, match="expected --public-url with --host"):
        Address("0.0.0.0", cert=cert, key=key).checked()
    address = Address("0.0.0.0", cert=cert, key=key, urls=("hub.example.org:8750",)).checked()
    assert address.origins(8750)[0] == "https://hub.example.org:8750"


def test_a_certificate_that_cannot_be_used_is_told_before_anything_starts(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    other, _ = certificate(tmp_path, "other")
    for words, why in (
        (("", key), "together"),
        ((cert, str(tmp_path / "gone")), "no such file or directory"),
        ((other, key), "KEY_VALUES_MISMATCH"),
        ((key, key), "PEM"),
    ):
        with pytest.raises(UsageError, match=why):
            Address(cert=words[0], key=words[1]).checked()


def test_the_words_for_the_process_bring_the_address_back(tmp_path: Path) -> None:
    address = Address("127.0.0.2", 1, *certificate(tmp_path), ("https://a", "https://b")).checked()
    assert Address.of_words(address.words) == address
    assert Address.of_words(["127.0.0.1", "0"]) == Address("127.0.0.1", 0)

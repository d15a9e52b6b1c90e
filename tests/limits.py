"""The limit of a test's time, for each of its three parts: setting up, the test itself, and taking down.

An alarm that rang between them, while a report is written, would end the whole run. With ``timeout_func_only``,
pytest-timeout itself sees to the test.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
import pytest_timeout  # type: ignore[import-untyped]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _limited(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _limited(item))


def _limited(item: pytest.Item) -> Generator[None, object, object]:
    settings = pytest_timeout._get_item_settings(item)
    if not settings.timeout:
        return (yield)
    item.ihook.pytest_timeout_set_timer(item=item, settings=settings)
    try:
        return (yield)
    finally:
        item.ihook.pytest_timeout_cancel_timer(item=item)

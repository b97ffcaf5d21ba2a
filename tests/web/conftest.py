"""A browser for tests, and the atlas served and frozen for it to open."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

from provingground import api
from provingground.atlas.site import site
from provingground.store import Store
from serving import started

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
WIDE, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
PATIENCE = 60_000  # milliseconds, on a busy machine


@pytest.fixture(scope="session")
def binary():
    """The system's browser, or one that $PROVING_CHROMIUM names."""
    found = os.environ.get("PROVING_CHROMIUM") or CHROMIUM
    if not found:
        told = "no Chromium is installed (apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)
    return found


@pytest.fixture(scope="session")
def chromium(binary):
    """The browser, started."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser, size, **options):
    """A page whose console says nothing bad; what it does say is `page.trouble`."""
    context = browser.new_context(viewport=size, **options)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.trouble = []
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    page.on(
        "console",
        lambda said: page.trouble.append(said.text) if said.type in ("error", "warning") else None,
    )
    page.on(
        "response",
        lambda got: page.trouble.append(f"{got.status} {got.url}") if got.status >= 400 else None,
    )
    yield page
    context.close()
    assert page.trouble == []


@pytest.fixture
def page(chromium):
    """A wide page."""
    with opened(chromium, WIDE) as found:
        yield found


@pytest.fixture
def phone(chromium):
    """A page of a phone's width."""
    with opened(chromium, PHONE) as found:
        yield found


@pytest.fixture(scope="session")
def toy_store(tmp_path_factory):
    """A store with the quick headline of the smallest study, with few seeds."""
    found = Store(tmp_path_factory.mktemp("web") / "store")
    command = ["-m", "provingground.cli", "run", "toy/risk", "--store", str(found.path)]
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    api.run("toy/risk", store=found, progress=False)  # so that this process knows it too
    return found


@pytest.fixture(scope="session")
def address(toy_store):
    """Where the smallest study is served, by a process of its own that trains."""
    with started(["-m", "serving", str(toy_store.path), "toy"]) as found:
        yield found


@pytest.fixture(scope="session")
def frozen(toy_store, tmp_path_factory):
    """A folder with the site of the smallest study."""
    return site(tmp_path_factory.mktemp("frozen") / "site", studies=["toy"], store=toy_store).path

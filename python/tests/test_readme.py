from __future__ import annotations

import contextlib
import io
import pathlib
import re

import pytest

README = pathlib.Path(__file__).resolve().parent.parent / "README.md"


def test_the_example_prints_what_it_says(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMTROVE_URL", url)
    blocks = re.findall(r"```(\w+)\n(.*?)```", README.read_text(), re.S)
    assert [language for language, _ in blocks] == ["console", "python", "text"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(blocks[1][1], {})
    assert printed.getvalue() == blocks[2][1]

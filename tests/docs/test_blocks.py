"""The runner of the documentation's blocks notices what is wrong with them."""

from __future__ import annotations

import pytest

from tests.docs.blocks import parse
from tests.docs.project import Site

PAGE = """\
<!-- file: shop/extra.py -->
```python
ANSWER = 42
```

```python
from shop.extra import ANSWER
print(ANSWER)
```

<!-- test: output -->
```text
42
```

<!-- test: skip needs a printer -->
```python
print_on_paper()
```

```console
$ not run
```

<!-- test: hidden
assert ANSWER == 42
-->

<!-- hidden file: shop/more.py
x = 1
-->
"""


def test_blocks_are_told_apart() -> None:
    blocks = parse(PAGE, "page.md")

    assert [(b.language, b.file, b.skip, b.is_output, b.runs) for b in blocks] == [
        ("python", "shop/extra.py", "", False, False),
        ("python", "", "", False, True),
        ("text", "", "", True, False),
        ("python", "", "needs a printer", False, False),
        ("console", "", "", False, False),
        ("python", "", "", False, True),
        ("python", "shop/more.py", "", False, False),
    ]


def test_block_knows_its_line() -> None:
    assert [block.line for block in parse(PAGE, "page.md")][:2] == [3, 7]


def test_block_without_end_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"page\.md:1: nothing ends"):
        parse("```python\nx = 1\n", "page.md")


def test_unknown_instruction_is_an_error() -> None:
    with pytest.raises(ValueError, match="no such instruction"):
        parse("<!-- test: ignore -->\n```python\nx = 1\n```\n", "page.md")


def test_page_that_is_right_passes(site: Site) -> None:
    blocks = parse(PAGE, "page.md")
    site.write(blocks)

    site.execute(blocks)


def test_other_output_than_the_page_says_fails(site: Site) -> None:
    blocks = parse(PAGE.replace("```text\n42", "```text\n43"), "page.md")
    site.write(blocks)

    with pytest.raises(AssertionError, match=r"(?s)page\.md:7 printed:\n42.*says:\n43"):
        site.execute(blocks)


def test_block_that_raises_fails_with_its_place(site: Site) -> None:
    blocks = parse(PAGE.replace("assert ANSWER == 42", "assert ANSWER == 1"), "page.md")
    site.write(blocks)

    with pytest.raises(AssertionError, match=r'"page\.md", line 26'):
        site.execute(blocks)

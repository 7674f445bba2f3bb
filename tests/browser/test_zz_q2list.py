import pytest
from tests.browser.test_axe import WINDOWS, full
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

@pytest.mark.parametrize("w", ["light", "phone"])
def test_shot(open_as, boss, w):
    page = open_as(boss, **WINDOWS[w])
    full(page)
    page.check("input[name=chosen] >> nth=0")
    page.screenshot(path=f"/tmp/q2shots/list-{w}.png", full_page=True)

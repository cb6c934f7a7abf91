"""The report in a browser: wherever Playwright and a Chromium of the system are found."""

import shutil

import pytest
from report_summaries import by_attribute, by_difference, by_objective, made_up

from evenhand.views.report import render
from evenhand.views.report.figures import page_data
from evenhand.views.report.live import live
from evenhand.views.report.page import clean

sync_api = pytest.importorskip("playwright.sync_api")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>"
LONG = "A_name_without_any_space_that_goes_on_and_on_and_on_and_on_and_on_and_on_and_on"


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open the report of a summary; whatever goes wrong in the page fails the test."""
    contexts, trouble, requests = [], [], []

    def visit(summary, **options):
        path = tmp_path / f"report{len(contexts)}.html"
        path.write_text(render(summary), encoding="utf-8")
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(dialog.message) or dialog.dismiss())
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not trouble
    assert [url for url in requests if not url.startswith("file:///") and url != "data:,"] == []
    assert len([url for url in requests if url.startswith("file:")]) == len(contexts)


def uneven(summary):
    """Targets that differ between rates, and a part with weights."""
    for part, share in zip(summary["rate"]["parts"], (1.0, 0.75, 0.9), strict=False):
        part["share"] = share
    summary["parts"][0]["weighted"] = True
    counts = summary["points"][3]["counts"]
    summary["plain"]["best_cut"] = {"cut": 0.2, "counts": counts}
    summary["points"][1]["counts"]["test"][0] = [[0, 0, 0]] * 3  # a group without rows
    return summary


def held_out(summary):
    """A choice on held-out rows, not the one that the fitted rows would give; none reached."""
    summary["chosen"] = 3
    summary["reached"]["target_reached"] = False
    summary["asked"] |= {"selection": "holdout", "place": "holdout"}
    summary["plain"] = None
    return summary


def off_frontier(summary):
    """A certified point that is not on the frontier."""
    summary["chosen"], summary["saved"] = None, summary["points"].pop(20)
    summary["asked"] |= {"confidence": "certified", "delta": 0.05}
    return summary


def alike(summary):
    """Few rows, in some groups all predicted alike."""
    for i, point in enumerate(summary["points"]):
        few = [[0, 2], [0, 2 + i % 3]]
        point["counts"]["test"] = [few, [[i % 2, 3], [0, 4]], [[3, 2], [0, 3]]]
    return summary


SUMMARIES = {
    "few and alike": lambda: alike(made_up(3)),
    "off the frontier": lambda: off_frontier(made_up()),
    "two groups": lambda: made_up(),
    "many": lambda: uneven(made_up(5, 3, 12, parts=("train", "held_out", "test"), small=True)),
    "held out": lambda: held_out(made_up(3, 2, 20, parts=("train", "held_out"))),
    "a difference": lambda: by_difference(-0.1),
    "attributes": by_attribute,
    "costs": by_objective,
    "large amounts": lambda: by_objective(31_415.9),
    "small amounts": lambda: by_objective(0.00021),
    "hostile": lambda: made_up() | {"groups": [HOSTILE, "{target} $& \\1"]},
}
READ = """() => [
  Array.from(document.querySelectorAll("[data-t]"), (e) => [e.dataset.t, e.textContent]),
  Array.from(document.querySelectorAll("[data-m]"), (e) => [e.dataset.m,
    Object.fromEntries(Array.from(e.attributes, (a) => [a.name, a.value]))]),
]"""
SET = """(tau) => {
  const slider = document.getElementById("tau");
  slider.value = tau;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  return Number(slider.value);
}"""


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_page_computes_what_python_computes(visit, name, monkeypatch):
    summary = SUMMARIES[name]()
    model = page_data(clean(summary))
    page = visit(summary)
    seen = set()
    for part in [p["key"] for p in model["parts"]]:
        if len(model["parts"]) > 1:
            page.locator(f"input[name=part][value={part}]").check(force=True)
        for asked in (0.8, 0.3, 0.55, 0.71, 0.85, 0.9, 0.97, 1, 0.8):
            tau = page.evaluate(SET, asked - 1 + model["words"]["parity"])
            texts, marks = live(model, tau, part)
            found, drawn = page.evaluate(READ)
            assert found
            for key, text in found:
                assert text == texts[key], (part, tau, key)
            for key, attributes in drawn:
                for attribute, value in marks[key].items():
                    assert attributes[attribute] == value, (part, tau, key, attribute)
            seen.add(texts["value"] + texts["ratio"])
            assert page.locator("#tau").get_attribute("aria-valuetext") == texts["spoken"]
    assert len(seen) > 5


def test_the_slider_moves_the_numbers(visit):
    summary = made_up()
    page = visit(summary)
    first = page.locator('[data-t="0.1.after"]').first.inner_text()
    assert page.locator("#back").is_disabled()
    assert "saved model" in page.locator(".status").inner_text()
    dot = page.locator('circle[data-m="chosen"]')
    begin = dot.bounding_box()
    page.locator("#tau").focus()
    for _ in range(15):
        page.keyboard.press("ArrowRight")
    assert page.locator("output").inner_text() == "0.95"
    assert "stays at 0.80" in page.locator(".status").inner_text()
    assert page.locator('[data-t="0.1.after"]').first.inner_text() != first
    assert dot.bounding_box()["x"] > begin["x"]
    # What is read aloud comes when the slider rests.
    sync_api.expect(page.locator("#spoken")).to_contain_text("Target 0.95")
    page.locator("#back").click()
    assert page.locator('[data-t="0.1.after"]').first.inner_text() == first
    assert page.evaluate("document.activeElement.id") == "tau"


def test_the_chart_can_be_dragged(visit):
    page = visit(made_up())
    page.locator("#frontier").scroll_into_view_if_needed()
    box = page.locator("#frontier > svg").bounding_box()
    x0, x1, _, _ = page_data(made_up())["box"]
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * (0.7 - x0) / (x1 - x0), y)
    page.mouse.down()
    assert page.locator("output").inner_text() == "0.70"
    page.mouse.move(box["x"] + box["width"] * (0.9 - x0) / (x1 - x0), y)
    page.mouse.up()
    page.mouse.move(box["x"], y)
    assert page.locator("output").inner_text() == "0.90"


@pytest.mark.parametrize("tau", [0.8125, 1 / 3])
def test_a_target_between_the_steps_stays_itself(visit, tau):
    page = visit(made_up() | {"tau": tau})
    assert page.locator("#back").is_disabled()
    page.evaluate(SET, 0.9)
    assert not page.locator("#back").is_disabled()
    page.locator("#back").click()
    assert "This is the saved model" in page.locator(".status").inner_text()


def test_hostile_names_do_nothing(visit):
    summary = made_up(parts=("train", "test")) | {"title": HOSTILE, "groups": [HOSTILE, LONG]}
    summary["weights"][0]["inputs"][0]["name"] = summary["parts"][1]["title"] = HOSTILE
    page = visit(summary)
    page.evaluate(SET, 0.9)
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.title() == f"Fairness report: {HOSTILE}"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert HOSTILE in page.locator(".rates th[scope=row]").first.inner_text()


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_sideways_scrolling(visit, width, scheme):
    summary = made_up(6, 2, small=True) | {"title": LONG}
    summary["groups"] = [f"{LONG}{j}" for j in range(6)]
    summary["weights"][0]["inputs"][0]["name"] = summary["asked"]["sensitive"][0] = LONG
    summary["data"]["decisions"] = [{"column": LONG, "kind": LONG, "action": LONG}]
    summary["data"]["small_groups"] = {LONG: 3}
    size = {"width": width, "height": 800}
    page = visit(summary, viewport=size, color_scheme=scheme)
    page.evaluate(SET, 1)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(252, 251, 249)"
    assert dark == (scheme == "dark")


@pytest.mark.parametrize("width", [320, 390, 600])
def test_controls_on_a_phone(visit, width):
    page = visit(made_up(), viewport={"width": width, "height": 800})
    label, back, slider, first, second = (
        page.locator(where).bounding_box()
        for where in (
            ".slide label", "#back", "#tau", "fieldset label >> nth=0", "fieldset label >> nth=1",
        )
    )  # fmt: skip
    # Three rows: the target with the way back, the slider in all its width, the two parts.
    assert abs(label["y"] + label["height"] / 2 - back["y"] - back["height"] / 2) < 6
    assert slider["width"] > width - 50
    assert slider["y"] >= back["y"] + back["height"]
    assert first["y"] == second["y"] >= slider["y"] + slider["height"]
    assert page.locator("#controls").bounding_box()["height"] < 140


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_target_stands_above_the_chart(visit, width):
    page = visit(made_up(), viewport={"width": width, "height": 800})
    low = float(page.locator("#tau").get_attribute("min"))
    for share in (0, 0.25, 0.49, 0.5, 0.75, 1):
        page.evaluate(SET, round(low + share * (1 - low), 2))
        label, axis, chart = (
            page.locator(where).first.bounding_box()
            for where in (".tau-label", "#frontier .axis >> text=accuracy", "#frontier .cut")
        )
        assert label["y"] + label["height"] <= chart["y"] + 1
        assert label["x"] >= axis["x"] + axis["width"]
        assert label["x"] + label["width"] <= width


def test_without_scripts(visit):
    page = visit(made_up(), java_script_enabled=False)
    assert not page.locator("#tau").is_visible()
    assert page.locator(".rates").first.is_visible()
    assert page.locator('.rates [data-t="0.0.after"]').inner_text().endswith("%")
    assert page.locator('line[data-m="0.0.after.bar"]').bounding_box()["width"] > 0
    assert page.locator("svg path.curve").first.is_visible()
    assert "Scripts are off" in page.locator("footer").inner_text()


def test_nothing_to_slide(visit):
    page = visit(made_up() | {"points": [], "chosen": None})
    assert page.locator("#tau").count() == 0
    assert "nothing to choose from" in page.locator("#target").inner_text()


def test_on_paper(visit):
    summary = made_up()
    columns = [{"column": f"column {i}", "kind": "number", "action": "used"} for i in range(20)]
    summary["data"]["decisions"] = columns
    page = visit(summary, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator("#tau").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator('line[data-m="0.0.after.bar"]').bounding_box()["width"] > 0
    assert page.pdf(format="A4").startswith(b"%PDF")
    # Printing opens what is folded.
    assert page.locator("details").get_attribute("open") is not None


def test_print_shows_the_saved_model(visit):
    page = visit(made_up())
    saved, _ = page.evaluate(READ)
    page.evaluate(SET, 0.95)
    moved, _ = page.evaluate(READ)
    assert moved != saved
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = ({READ})(); }})")
    page.pdf(format="A4")
    printed, _ = page.evaluate("window.printed")
    assert printed == saved
    # Afterwards the reader is where they were.
    assert page.evaluate(READ)[0] == moved
    assert page.locator("output").inner_text() == "0.95"


def test_keyboard_reaches_the_controls_in_order(visit):
    page = visit(made_up())
    where = "document.activeElement.id || document.activeElement.name"
    reached = []
    while "part" not in reached and len(reached) < 30:
        page.keyboard.press("Tab")
        reached.append(page.evaluate(where))
    assert reached.index("tau") < reached.index("part")
    assert "test rows" in page.locator('[data-t="part.n"]').first.inner_text()
    page.keyboard.press("ArrowLeft")
    assert "training rows" in page.locator('[data-t="part.n"]').first.inner_text()

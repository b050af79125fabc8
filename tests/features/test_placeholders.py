from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.features.prompts.placeholders import Filling


def fill(template: str, values: dict[str, str]) -> str:
    return Filling(values, limit_chars=10_000_000).fill(template)


def fill_all(value: Any, values: dict[str, str]) -> Any:
    return Filling(values, limit_chars=1000).fill_all(value)


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("Hello {{name}}.", "Hello Ada."),
        ("Hello {{ name }}.", "Hello Ada."),
        ("Hello ${name}.", "Hello Ada."),
        ("{{name}}${name}{{name}}", "AdaAdaAda"),
        ("{{{name}}}", "{Ada}"),
        ("$${name}", "$Ada"),
        ("${{name}}", "$Ada"),
        ("{{größe}} {{1st}} ${with space}", "groß first spaced"),
        ("{{a.b-c}}", "dotted"),
    ],
)
def test_both_forms_of_a_placeholder_are_replaced(template: str, filled: str) -> None:
    values = {"name": "Ada", "größe": "groß", "1st": "first", "with space": "spaced", "a.b-c": "dotted"}
    assert fill(template, values) == filled


def test_dollars_can_be_left_alone() -> None:
    filling = Filling({"name": "Ada", "HOME": "x"}, limit_chars=100, has_dollars=False)
    assert filling.fill("{{name}}: ${name} ${HOME} ${{name}}") == "Ada: ${name} ${HOME} $Ada"


@pytest.mark.parametrize(
    "template",
    ["{{other}}", "${other}", "${name:-x}", "{name}", "$name", "{{name", "${name", "{{na{me}}", "{{}}", "${}", "{{ }}"],
)
def test_what_no_argument_answers_stays_as_it_is(template: str) -> None:
    assert fill(template, {"name": "Ada"}) == template


@pytest.mark.parametrize(
    "value",
    [
        r"back\slash \n \1 \g<0>",
        "line\nbreak\r\n",
        "\"double\" 'single'",
        "{{other}}",
        "${other}",
        "{{name}}",
        "$(rm -rf /) `id`",
        "",
        "}}",
        "\N{PILE OF POO}",
    ],
)
@pytest.mark.parametrize("template", ["<{{name}}>", "<${name}>"])
def test_a_value_is_put_in_literally_and_never_looked_at_again(template: str, value: str) -> None:
    assert fill(template, {"name": value, "other": "re-expanded"}) == f"<{value}>"


def test_a_value_and_the_text_beside_it_make_no_new_placeholder() -> None:
    assert fill("{{open}}name}}", {"open": "{{", "name": "Ada"}) == "{{name}}"


def test_all_texts_of_a_json_value_are_filled_and_names_of_members_are_not() -> None:
    given = {"{{name}}": ["{{name}}", {"deep": "${name}"}, 5, None, True]}
    assert fill_all(given, {"name": "Ada"}) == {"{{name}}": ["Ada", {"deep": "Ada"}, 5, None, True]}


def test_a_long_template_with_open_braces_is_filled_without_delay() -> None:
    """Nothing here may take more than a look at each character: seconds would show as a hanging test."""
    template = "{{" + " " * 1_000_000 + "{{name}}" + "{{ x" * 200_000
    assert fill(template, {"name": "Ada"}).startswith("{{" + " " * 1_000_000 + "Ada")

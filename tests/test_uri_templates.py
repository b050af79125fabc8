"""URI templates: from a URI back to the values of the variables."""

from __future__ import annotations

import random

import pytest
from uritemplate import expand

from mcpgreen.text import uri_templates
from mcpgreen.text.uri_templates import UriTemplate
from mcpgreen.text.uris import problem_with
from tests.support.effort import lines_run

Values = dict[str, str]


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("note://{id}", "note://a", {"id": "a"}),
        ("note://{id}", "note://two%20words%2F%C3%A9", {"id": "two words/é"}),
        ("note://{id}/text", "note://a/text", {"id": "a"}),
        ("map://{x,y}", "map://1,2", {"x": "1", "y": "2"}),
        ("map://{x,y}", "map://1", {"x": "1"}),
        ("map://{x,y}", "map://1,", {"x": "1", "y": ""}),
        ("file:///{+path}", "file:///a/b;c?d", {"path": "a/b;c?d"}),
        ("file://{+path}/{name}", "file:///a/b/c", {"path": "/a/b", "name": "c"}),
        ("x:{+a,b}", "x:1/2,3,4", {"a": "1/2", "b": "3,4"}),
        ("x:y{#part}", "x:y#a/b,c", {"part": "a/b,c"}),
        ("x:y{#part}", "x:y", {}),
        ("x:y{.ext}", "x:y.tar.gz", {"ext": "tar.gz"}),
        ("x:y{.a,b}", "x:y.tar.gz", {"a": "tar", "b": "gz"}),
        ("x:y{/a,b}", "x:y/1/2", {"a": "1", "b": "2"}),
        ("x:y{/a,b}", "x:y/1", {"a": "1"}),
        ("x:y{/a,b}/z", "x:y/1/z", {"a": "1"}),
        ("x:y{/a}", "x:y/", {"a": ""}),
        ("x:y{;a,b}", "x:y;a=1;b", {"a": "1", "b": ""}),
        ("x:y{;a,b}", "x:y;b=2;a=1", {"a": "1", "b": "2"}),
        ("x:y{?a,b}", "x:y?a=1&b=2", {"a": "1", "b": "2"}),
        ("x:y{?a,b}", "x:y?b=2&a=1", {"a": "1", "b": "2"}),
        ("x:y{?a,b}", "x:y?b=", {"b": ""}),
        ("x:y{?a,b}", "x:y", {}),
        ("x:y{?a,ab}", "x:y?ab=1&a=2", {"a": "2", "ab": "1"}),
        ("x:y{?a}{&b}", "x:y?a=1&b=2", {"a": "1", "b": "2"}),
        ("x:y?fixed=1{&a}", "x:y?fixed=1&a=2", {"a": "2"}),
        ("x:y{?a,b}{#c}", "x:y?a=/1:2=3&b=%26#d", {"a": "/1:2=3", "b": "&", "c": "d"}),
        ("x:{a}-{b}", "x:1-2-3", {"a": "1-2", "b": "3"}),
        ("x:{a}{b}", "x:%41%42", {"a": "A", "b": "B"}),
        ("x:{a}4{b}", "x:x4%44", {"a": "x", "b": "D"}),
        ("x:{a}/{a}", "x:1/1", {"a": "1"}),
        ("x:é/{a}", "x:%C3%A9/1", {"a": "1"}),
        ("x:{a.b_1}", "x:1", {"a.b_1": "1"}),
    ],
)
def test_a_uri_gives_the_values_that_expand_to_it(template: str, uri: str, values: Values) -> None:
    assert UriTemplate(template).match(uri) == values


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("note://{id}", "note://"),
        ("note://{id}", "note://a/b"),
        ("note://{id}", "note://a?b"),
        ("note://{id}", "note://a:b"),
        ("note://{id}", "note://a,b"),
        ("note://{id}", "other://a"),
        ("note://{id}", "xnote://a"),
        ("note://{id}/text", "note://a/text/more"),
        ("note://{id}", "note://%ff"),
        ("note://{id}", "note://%4"),
        ("note://{id}", "note://%zz"),
        ("note://{id}", "note://é"),
        ("note://{id}", "note://a\n"),
        ("map://{x,y}", "map://1,2,3"),
        ("file:///{+path}", "file:///"),
        ("x:y{/a,b}", "x:y/1/2/3"),
        ("x:y{?a}", "x:y?"),
        ("x:y{?a}", "x:y?a"),
        ("x:y{?a}", "x:y?b=1"),
        ("x:y{?a}", "x:y?a=1&a=2"),
        ("x:y{?a}", "x:y?a=1&b=2"),
        ("x:y{?a}", "x:y&a=1"),
        ("x:y{;a}", "x:y;ab=1"),
        ("x:{a}/{a}", "x:1/2"),
        ("x:{a}", ""),
    ],
)
def test_any_other_uri_does_not_match(template: str, uri: str) -> None:
    assert UriTemplate(template).match(uri) is None


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("", "no variable"),
        ("x:y", "no variable"),
        ("x:{}", "must contain names"),
        ("x:{ }", "must contain names"),
        ("x:{a b}", "must contain names"),
        ("x:{a,}", "must contain names"),
        ("x:{.}", "must contain names"),
        ("x:{a..b}", "must contain names"),
        ("x:{a%4}", "must contain names"),
        ("x:{a%zz}", "must contain names"),
        ("x:{é}", "must contain names"),
        ("x:{=a}", "must contain names"),
        ("x:{a=b}", "must contain names"),
        ("x:{{a}}", "must contain names"),
        ("x:{a", "never closed"),
        ("x:a}{b}", "has no matching {"),
        ("x:{a*}", "level 4"),
        ("x:{?a*}", "level 4"),
        ("x:{a:3}", "level 4"),
        ("x:{a,a}", "twice"),
        ("x: {a}", "percent-encoded"),
        ("x:%4{a}", "hexadecimal"),
    ],
)
def test_a_malformed_template_is_refused_with_the_reason(template: str, reason: str) -> None:
    with pytest.raises(ValueError) as refusal:
        UriTemplate(template)

    assert reason in str(refusal.value)


def test_the_variables_are_known_in_their_order() -> None:
    assert UriTemplate("x:{b}{/a,b}{?c}").variables == ("b", "a", "c")


TEMPLATES = [
    "x:{a}",
    "x:{a,b,c}",
    "x:{a}/{b}",
    "x:{a}/{b,c}/end",
    "x:{+a}",
    "x:/{a}{#b}",
    "x:/{a}{/b,c}",
    "x:/{a}{;b,c}",
    "x:/{a}{?b,c}",
    "x:/?x=1{&a,b,c}",
    "x:/{a}{?b}{&c}",
    "x:{/a}{;b}{?c}",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_matching_undoes_expanding(template: str) -> None:
    chance = random.Random(template)
    uri_template = UriTemplate(template)
    for _ in range(300):
        values = {
            name: "".join(chance.choice("aZ9-._~ /?#[]@!$&'()*+,;=:é€\U0001f600\"<\\\n") for _ in range(length))
            for name in uri_template.variables
            if (length := chance.randint(1, 12))
        }
        uri = expand(template, values)

        assert uri_template.match(uri) == values
        assert problem_with(uri) is None or "#" in uri


@pytest.mark.parametrize("template", ["x:y{/a,b,c}", "x:{a,b,c}", "x:y{?a,b,c}", "x:y{;a,b,c}"])
def test_values_that_are_absent_stay_absent(template: str) -> None:
    chance = random.Random(template)
    uri_template = UriTemplate(template)
    for _ in range(100):
        values = {name: str(chance.randint(0, 99)) for name in ("a", "b", "c")[: chance.randint(1, 3)]}

        assert uri_template.match(expand(template, values)) == values


@pytest.mark.parametrize(
    ("template", "unit", "end"),
    [
        ("x:{+a}{+b}{+c}{+d}{+e}!{+f}", "a", ""),
        ("x:{a}{b}{c}{d}/", "a", "!"),
        ("x:{a}{b}{c}{d}/", "a", "/"),
        ("x:{a,b,c,d}{e,f,g}/", "a,", "/"),
        ("x:{+a}-{+b}-{+c}-{+d}-!", "-", "!"),
        ("x:{/a,b,c}{/d,e,f}{.g}#", "/", "#"),
        ("x:{?a,b,c}{&d,e}{&f}/", "&a=&b=&c=", "/"),
        ("x:{;a,b}{;c}/", ";a;b", "/"),
        ("x:{a}{b}!", "%41", "!"),
    ],
)
def test_the_effort_grows_no_faster_than_the_uri(template: str, unit: str, end: str) -> None:
    """Eight times the length takes about eight times the work; with one choice to undo it would be 64 times."""
    uri_template = UriTemplate(template)
    uris = ["x:" + unit * (chars // len(unit)) + end for chars in (300, 2400)]
    short, long = (lines_run(lambda uri=uri: uri_template.match(uri), module=uri_templates) for uri in uris)

    assert 300 < short < long < 10 * short

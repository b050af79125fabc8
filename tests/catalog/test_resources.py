"""Which resources and templates a project has, by its files alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.resources import Resource, ResourceTemplate, discover_resources
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.text import jsontext
from tests.catalog.trees import TreeBuilder

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def described(tree: TreeBuilder, path: str, **fields: Any) -> None:
    tree.write(f"resources/{path}", jsontext.dumps(fields))


def discovered(tree: TreeBuilder) -> dict[str, Discovery]:
    project = tree.project
    return discover_resources(project, survey(project, [project.resources_dir]))


def found(tree: TreeBuilder) -> tuple[list[Resource], list[ResourceTemplate], list[str]]:
    discoveries = discovered(tree)
    resources, templates = discoveries["resources"], discoveries["resourceTemplates"]
    return list(resources.items), list(templates.items), [*resources.warnings, *templates.warnings]


def resources_of(tree: TreeBuilder) -> list[Resource]:
    resources, _, warnings = found(tree)
    assert warnings == []
    return resources


def only_resource(tree: TreeBuilder) -> Resource:
    (resource,) = resources_of(tree)
    return resource


def only_template(tree: TreeBuilder) -> ResourceTemplate:
    resources, (template,), warnings = found(tree)
    assert (resources, warnings) == ([], [])
    return template


def warnings_of(tree: TreeBuilder) -> list[str]:
    return found(tree)[2]


def test_a_file_is_a_resource_without_further_ado(tree: TreeBuilder) -> None:
    tree.write("resources/guide.md", "# Guide\n")

    resource = only_resource(tree)

    assert resource.definition == {
        "name": "guide",
        "uri": f"file://{tree.root}/resources/guide.md",
        "mimeType": "text/markdown",
        "size": 8,
    }
    assert (resource.provider, resource.path) == ("file", str(tree.root / "resources/guide.md"))


# Files and the one resource that they make: some of its registry entry.
SINGLE: dict[str, tuple[dict[str, str | bytes], dict[str, Any]]] = {
    "an executable file": ({"run.sh": "#!/bin/sh\n"}, {"mimeType": "text/x-shellscript"}),
    "type by its name": ({"data.json": "not json"}, {"mimeType": "application/json"}),
    "name in capitals": ({"UPPER.MD": "x"}, {"mimeType": "text/markdown"}),
    "type by its content": ({"picture": PNG}, {"mimeType": "image/png"}),
    "text": ({"notes": "plain words\n"}, {"mimeType": "text/plain"}),
    "empty": ({"empty": ""}, {"mimeType": "text/plain", "description": ""}),
    "bytes": ({"blob": b"\x00\x01\x02"}, {"mimeType": "application/octet-stream"}),
    "a completion script": ({"guide.md": "x", "guide.completion.sh": "#!/bin/sh\n"}, {"name": "guide"}),
    "a described README": ({"README.md": "x", "README.meta.json": '{"title": "Read me"}'}, {"title": "Read me"}),
    "<stem>.meta.json": ({"a.md": "x", "a.meta.json": '{"title": "Found"}'}, {"title": "Found"}),
    "<file>.meta.json": ({"a.md": "x", "a.md.meta.json": '{"title": "Found"}'}, {"title": "Found"}),
    "<stem>.meta.yaml": ({"a.md": "x", "a.meta.yaml": "title: Found"}, {"title": "Found"}),
    "<file>.meta.yml": ({"a.md": "x", "a.md.meta.yml": "title: Found"}, {"title": "Found"}),
    "a comment": (
        {"a.md": '<!-- mcp: {"uri": "docs://guide", "title": "Found"} -->\n'},
        {"uri": "docs://guide", "title": "Found"},
    ),
    # Documents with such headings were left out.
    "a heading": ({"guide.md": "# mcp: an introduction\n\nText.\n"}, {"name": "guide"}),
    "a comment about it": ({"guide.md": "<!-- mcp: see below -->\n\nText.\n"}, {"name": "guide"}),
    "a bare comment": ({"guide.md": "// mcp:\n\nText.\n"}, {"name": "guide"}),
    "a URI of its own": (
        {"guide.md": "x", "guide.meta.json": '{"uri": "docs://guide"}'},
        {"uri": "docs://guide", "provider": "file", "size": 1},
    ),
    "a named provider": ({"there.meta.json": '{"uri": "x://y", "provider": "my_own-1"}'}, {"provider": "my_own-1"}),
    "the size of the file": ({"a.txt": "four", "a.meta.json": '{"size": 99}'}, {"size": 4}),
}


@pytest.mark.parametrize(("files", "expected"), SINGLE.values(), ids=SINGLE)
def test_files_make_one_resource(tree: TreeBuilder, files: dict[str, str | bytes], expected: dict[str, Any]) -> None:
    for name, content in files.items():
        tree.write(f"resources/{name}", content, mode=0o755 if name.endswith(".sh") else 0o644)

    resource = only_resource(tree)

    assert resource.registry_entry.items() >= expected.items()
    assert "description" not in resource.definition


def test_names_with_spaces_and_umlauts_are_encoded_in_the_uri(tree: TreeBuilder) -> None:
    tree.write("resources/Größe & more.txt", "x")

    assert only_resource(tree).name == "Größe & more"
    assert only_resource(tree).uri.endswith("/resources/Gr%C3%B6%C3%9Fe%20%26%20more.txt")


def test_files_in_nested_directories_are_resources_and_hidden_ones_are_not(tree: TreeBuilder) -> None:
    for path in ("a.txt", "sub/b.txt", "sub/deep/er/c.txt", ".hidden", ".git/config", "sub/.d/e.txt"):
        tree.write(f"resources/{path}", "x")

    assert [resource.relative_path for resource in resources_of(tree)] == ["a.txt", "sub/b.txt", "sub/deep/er/c.txt"]


def test_of_equal_addresses_the_first_counts_and_the_other_is_named(tree: TreeBuilder) -> None:
    for name in ("b", "a"):
        tree.write(f"resources/{name}.txt", "x")
        described(tree, f"{name}.txt.meta.json", uri="docs://same")

    resources, _, warnings = found(tree)

    assert [resource.relative_path for resource in resources] == ["a.txt"]
    assert warnings == ["resources/b.txt: skipped because a.txt already has the uri docs://same"]


def test_a_readme_beside_something_described_is_no_resource(tree: TreeBuilder) -> None:
    tree.write("resources/data.csv", "x")
    described(tree, "data.meta.json", title="Data")
    tree.write("resources/README.md", "About data.csv.")
    tree.write("resources/alone/README.md", "The only document here.")

    assert [resource.relative_path for resource in resources_of(tree)] == ["alone/README.md", "data.csv"]


@pytest.mark.parametrize("own", ["readme.meta.json", "readme.md.meta.json", None])
def test_a_readme_with_a_description_of_its_own_is_a_resource_beside_others(tree: TreeBuilder, own: str | None) -> None:
    tree.write("resources/data.csv", "x")
    described(tree, "data.meta.json", title="Data")
    inline = '<!-- mcp: {"title": "Read me"} -->\n' if own is None else ""
    tree.write("resources/readme.md", f"{inline}x")
    if own is not None:
        described(tree, own, title="Read me")

    assert [resource.definition["title"] for resource in resources_of(tree)] == ["Data", "Read me"]


def test_a_readme_that_is_left_out_is_told_to_who_asks(tree: TreeBuilder) -> None:
    """Not where it is about the one thing in its folder, as `scaffold` writes it."""
    for place in ("", "notes/", "more/"):
        tree.write(f"resources/{place}notes.txt", "x")
        described(tree, f"{place}notes.meta.json", title="Notes")
        tree.write(f"resources/{place}README.md", "About them.")

    reason = "not a resource: a README without a description, next to a file that has one"
    hints = discovered(tree)["resources"].hints
    assert sorted(hints) == [f"resources/README.md: {reason}", f"resources/more/README.md: {reason}"]


@pytest.mark.parametrize("name", ["a", "z"])
def test_a_described_resource_counts_before_the_undescribed_file_at_its_address(tree: TreeBuilder, name: str) -> None:
    tree.write("resources/data.csv", "x")
    described(tree, f"{name}.meta.json", uri=(tree.root / "resources/data.csv").as_uri(), title="Data")

    resources, _, warnings = found(tree)

    assert [(resource.name, resource.definition["title"]) for resource in resources] == [(name, "Data")]
    assert warnings == []
    hints = discovered(tree)["resources"].hints
    assert hints == [f"resources/data.csv: listed as {name}, because {name}.meta.json describes the same uri"]


def test_a_link_inside_is_followed_and_one_that_leads_out_is_named(tree: TreeBuilder, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    tree.write("resources/real.txt", "x")
    os.symlink("real.txt", tree.root / "resources/alias.md")
    os.symlink(tmp_path / "secret.txt", tree.root / "resources/out.txt")
    os.symlink("/etc", tree.root / "resources/etc")
    os.symlink("nowhere", tree.root / "resources/broken")

    resources, _, warnings = found(tree)

    assert [resource.relative_path for resource in resources] == ["alias.md", "real.txt"]
    assert sorted(warnings) == [
        "resources/etc: a symbolic link to a directory is not followed",
        "resources/out.txt: skipped because it links to a file outside resources/",
    ]


def test_what_is_no_regular_file_is_not_opened(tree: TreeBuilder) -> None:
    tree.write("resources/a.txt", "x")
    os.mkfifo(tree.root / "resources/fifo.txt")

    assert only_resource(tree).name == "a"


@pytest.mark.parametrize(
    ("uri", "provider"),
    [
        ("https://example.com/x", "https"),
        ("git+https://example.com/r#main:x", "git"),
        ("git://example.com/r#main:x", "git"),
        ("echo://hi", "echo"),
        ("file://./resources/x", "file"),
        ("weather://berlin", "weather"),
    ],
)
def test_a_description_without_a_file_is_a_resource_that_its_scheme_serves(
    tree: TreeBuilder, uri: str, provider: str
) -> None:
    described(tree, "there.meta.json", uri=uri, mimeType="text/plain", size=12)

    resource = only_resource(tree)

    assert resource.definition == {"name": "there", "uri": uri, "mimeType": "text/plain", "size": 12}
    assert (resource.provider, resource.path) == (provider, None)


def test_spaces_in_a_declared_address_are_encoded(tree: TreeBuilder) -> None:
    """Older projects wrote the path as it is; the resource was left out."""
    tree.write("resources/my notes.txt", "x")
    described(tree, "my notes.meta.json", uri="file://./resources/my notes.txt")
    described(tree, "far.meta.json", uri="https://example.com/Größe?q=a b")

    assert [resource.uri for resource in resources_of(tree)] == [
        "https://example.com/Gr%C3%B6%C3%9Fe?q=a%20b",
        "file://./resources/my%20notes.txt",
    ]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ('{"title": 3}', "title must be a string, found 3"),
        ('{"name": ["x"]}', "name must be a string, found an array"),
        ('{"mimeType": {}}', "mimeType must be a string, found an object"),
        ('{"provider": "../evil"}', "provider must be a name made of letters, digits, _ and -"),
        ('{"size": -1}', "size must be a number of bytes, found -1"),
        ('{"size": true}', "size must be a number of bytes, found true"),
        ('{"uri": "no-scheme"}', "uri: it must begin with a scheme"),
        ('{"uri": "docs://{name}"}', "uri: the character '{' must be percent-encoded"),
        ('{"uri": "docs://a\\nb"}', "uri: the character U+000A must be percent-encoded"),
        ('{"uri": "docs://50%"}', "uri: each % must be followed by two hexadecimal digits"),
        ('{"_meta": []}', "_meta must be an object"),
        ('{"annotations": "x"}', "annotations must be an object"),
        ("{", "not valid JSON"),
        ("[]", "must be an object, found an array"),
    ],
)
def test_a_bad_description_costs_one_resource_and_says_why(tree: TreeBuilder, fields: str, reason: str) -> None:
    tree.write("resources/bad.txt", "x")
    tree.write("resources/bad.txt.meta.json", fields)
    tree.write("resources/good.txt", "x")

    resources, _, (warning,) = found(tree)

    assert [resource.name for resource in resources] == ["good"]
    assert warning.startswith(f"resources/bad.txt.meta.json: {reason}")
    assert warning.endswith("; the resource is left out")


def test_a_description_of_nothing_must_say_where_it_is(tree: TreeBuilder) -> None:
    described(tree, "nothing.meta.json", title="Nothing")

    (warning,) = warnings_of(tree)
    assert warning == "resources/nothing.meta.json: uri: it is missing; the resource is left out"


@pytest.mark.requirement("P-150")
@pytest.mark.parametrize(
    ("annotations", "kept"),
    [
        ({"audience": ["user", "assistant"], "priority": 1}, True),
        ({"audience": ["model"]}, False),
        ({"audience": "user"}, False),
        ({"priority": 1.5}, False),
        ({"priority": True}, False),
        ({"lastModified": "2025-02-28T23:59:59.123Z"}, True),
        ({"lastModified": "2024-02-29T00:00:00-05:30"}, True),
        ({"lastModified": "2025-02-29T00:00:00Z"}, False),
        ({"lastModified": "2025-13-01T00:00:00Z"}, False),
        ({"lastModified": "2025-01-01T24:00:00Z"}, False),
        ({"lastModified": "2025-01-01T00:00:60Z"}, False),
        ({"lastModified": "2025-01-01T00:00:00"}, False),
        ({"lastModified": "2025-01-01"}, False),
        ({"lastModified": 7}, False),
    ],
    ids=str,
)
def test_annotations_that_clients_would_reject_are_left_out(
    tree: TreeBuilder, annotations: dict[str, Any], kept: bool
) -> None:
    """One of them makes some clients reject the whole list."""
    tree.write("resources/a.txt", "x")
    described(tree, "a.meta.json", annotations=annotations)

    (resource,), _, warnings = found(tree)

    assert resource.definition.get("annotations") == (annotations if kept else {})
    assert [("left out" in warning, "resources/a.txt" in warning) for warning in warnings] == (
        [] if kept else [(True, True)]
    )


def test_a_typo_is_pointed_out(tree: TreeBuilder) -> None:
    tree.write("resources/a.txt", "x")
    described(tree, "a.meta.json", mimetype="text/html")

    assert warnings_of(tree) == ["resources/a.txt: mimetype is unknown; did you mean mimeType?"]


def test_an_icon_of_the_project_is_sent_along(tree: TreeBuilder) -> None:
    tree.write("resources/icon.png", PNG)
    tree.write("resources/a.txt", "x")
    described(tree, "a.meta.json", icons=[{"src": "./icon.png"}])

    icons = resources_of(tree)[0].definition["icons"]

    assert icons[0]["src"].startswith("data:image/png;base64,")


def test_a_description_with_a_template_is_a_template(tree: TreeBuilder) -> None:
    fields = {"uriTemplate": "weather://{city}/now", "title": "Weather", "description": "of a city"}
    arguments = {"city": {"type": "string"}}
    described(
        tree, "weather.meta.json", **fields, mimeType="application/json", arguments={"properties": arguments}, size=3
    )

    template = only_template(tree)

    assert template.definition == {"name": "weather", **fields, "mimeType": "application/json"}
    assert (template.provider, template.arguments) == ("weather", arguments)
    assert template.template.match("weather://berlin/now") == {"city": "berlin"}
    assert template.registry_entry["provider"] == "weather"
    assert template.registry_entry["path"] == "weather.meta.json"


def test_templates_are_in_the_order_of_their_names(tree: TreeBuilder) -> None:
    for name in ("b", "c", "a"):
        described(tree, f"{name}.meta.json", uriTemplate=f"{name}://{{x}}")

    assert [template.name for template in found(tree)[1]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"uriTemplate": "x://y"}, "uriTemplate: it has no variable"),
        ({"uriTemplate": "x://{}"}, "uriTemplate: {} must contain names"),
        ({"uriTemplate": "x://{ }"}, "uriTemplate: { } must contain names"),
        ({"uriTemplate": "x://{a"}, "uriTemplate: a { is never closed"),
        ({"uriTemplate": "x://{a}", "uri": "x://y"}, "has both uri and uriTemplate"),
        ({"uriTemplate": 3}, "uriTemplate must be a string, found 3"),
        ({"uriTemplate": "x://{a}", "provider": "a/b"}, "provider must be a name"),
    ],
)
def test_a_bad_template_costs_itself_and_says_why(tree: TreeBuilder, fields: dict[str, Any], reason: str) -> None:
    described(tree, "bad.meta.json", **fields)
    tree.write("resources/good.txt", "x")

    resources, templates, (warning,) = found(tree)

    assert ([resource.name for resource in resources], templates) == (["good"], [])
    assert warning.startswith(f"resources/bad.meta.json: {reason}")


def test_a_template_with_the_name_of_a_resource_is_skipped(tree: TreeBuilder) -> None:
    tree.write("resources/same.txt", "x")
    described(tree, "sub/same.meta.json", uriTemplate="x://{y}")

    resources, templates, (warning,) = found(tree)

    assert ([resource.name for resource in resources], templates) == (["same"], [])
    assert warning == "resources/sub/same.meta.json: skipped because a resource already has the name same"


def test_of_equal_template_names_the_first_counts(tree: TreeBuilder) -> None:
    for directory in ("one", "two"):
        described(tree, f"{directory}/same.meta.json", uriTemplate=f"{directory}://{{x}}")

    _, (template,), (warning,) = found(tree)

    assert template.template.text == "one://{x}"
    assert (
        warning == "resources/two/same.meta.json: skipped because one/same.meta.json already provides the template same"
    )

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.prompts import Prompt, discover_prompts
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.text import jsontext
from tests.catalog.trees import TreeBuilder

MESSAGES = [{"role": "user", "content": "Hello"}]


def discovered(tree: TreeBuilder) -> Discovery:
    return discover_prompts(tree.project, survey(tree.project, [tree.project.prompts_dir]))


def names(tree: TreeBuilder) -> list[str]:
    return [prompt.name for prompt in discovered(tree).items]


def only_prompt(tree: TreeBuilder) -> Prompt:
    (prompt,) = discovered(tree).items
    return prompt


def described(tree: TreeBuilder, **fields: Any) -> Prompt:
    tree.write("prompts/greet.txt", "Hello {{name}}")
    tree.write("prompts/greet.meta.json", jsontext.dumps(fields))
    return only_prompt(tree)


def warnings_about(tree: TreeBuilder, **fields: Any) -> list[str]:
    tree.write("prompts/greet.txt", "Hello")
    tree.write("prompts/greet.meta.json", jsontext.dumps(fields))
    return discovered(tree).warnings


def test_every_file_is_a_prompt_at_any_depth_sorted_by_name(tree: TreeBuilder) -> None:
    for path in ("c.txt", "a/b.md", "a/deep/er/a", ".hidden", ".git/x.txt"):
        tree.write(f"prompts/{path}", "text")
    assert names(tree) == ["a", "b", "c"]


def test_a_prompt_knows_its_paths(tree: TreeBuilder) -> None:
    tree.write("prompts/greet/greet.txt", "Hello")
    prompt = only_prompt(tree)
    assert (prompt.name, prompt.relative_path) == ("greet", "greet/greet.txt")
    assert prompt.path == str(tree.root / "prompts/greet/greet.txt")
    assert prompt.registry_entry["path"] == "greet/greet.txt"
    assert prompt.definition == {"name": "greet"}


@pytest.mark.parametrize("readme", ["README.md", "readme.txt", "README"])
def test_a_readme_beside_something_described_is_no_prompt(tree: TreeBuilder, readme: str) -> None:
    tree.write(f"prompts/greet/{readme}", "How to greet")
    tree.write("prompts/greet/greet.txt", "Hello")
    assert "greet" in names(tree) and len(names(tree)) == 2
    tree.write("prompts/greet/greet.meta.json", "{}")
    assert names(tree) == ["greet"]


def test_a_readme_with_its_own_description_is_a_prompt(tree: TreeBuilder) -> None:
    tree.write("prompts/README.md", "Hello")
    tree.write("prompts/README.meta.json", '{"name": "readme"}')
    assert names(tree) == ["readme"]


@pytest.mark.parametrize("script", ["greet.completion", "greet.completion.sh", "greet.txt.completion.sh"])
def test_a_completion_script_is_no_prompt(tree: TreeBuilder, script: str) -> None:
    tree.write("prompts/greet.txt", "Hello")
    tree.write(f"prompts/{script}", "#!/bin/sh\n", mode=0o755)
    assert names(tree) == ["greet"]


def test_a_description_beside_its_completion_script_alone_needs_no_file(tree: TreeBuilder) -> None:
    """It was taken for the description of the script, and the prompt was missing."""
    tree.write("prompts/talk.meta.json", jsontext.dumps({"messages": MESSAGES}))
    tree.write("prompts/talk.completion", "#!/bin/sh\n", mode=0o755)
    assert names(tree) == ["talk"]


def test_pictures_and_sounds_belong_to_prompts_and_are_none(tree: TreeBuilder) -> None:
    """A picture that a message shows by its path was listed as a prompt of its own, and got as garbled text."""
    for name in ("logo.png", "photo.JPG", "jingle.mp3", "film.mp4"):
        tree.write(f"prompts/{name}", b"\x00\x01")
    tree.write("prompts/show.meta.json", jsontext.dumps({"messages": MESSAGES}))
    assert names(tree) == ["show"]


def test_a_description_named_as_the_picture_it_shows_is_a_prompt(tree: TreeBuilder) -> None:
    tree.write("prompts/logo.png", b"\x89PNG")
    tree.write("prompts/logo.meta.json", jsontext.dumps({"messages": MESSAGES}))
    prompt = only_prompt(tree)
    assert (prompt.name, prompt.path, prompt.messages) == ("logo", None, MESSAGES)


def test_a_link_out_of_the_directory_is_skipped_with_a_warning(tree: TreeBuilder) -> None:
    secret = tree.write("secret.txt", "secret")
    (tree.root / "prompts").mkdir()
    (tree.root / "prompts/leak.txt").symlink_to(secret)
    found = discovered(tree)
    assert found.items == []
    assert found.warnings == ["prompts/leak.txt: skipped because it links to a file outside prompts/"]


def test_of_two_prompts_with_one_name_the_first_by_path_counts(tree: TreeBuilder) -> None:
    tree.write("prompts/b/greet.txt", "second")
    tree.write("prompts/a/greet.txt", "first")
    found = discovered(tree)
    assert [prompt.relative_path for prompt in found.items] == ["a/greet.txt"]
    assert found.warnings == ["b/greet.txt: skipped because a/greet.txt already provides the prompt greet"]


@pytest.mark.parametrize(
    ("content", "mode", "is_program"),
    [
        ("#!/bin/sh\n", 0o755, True),
        (b"\x7fELF...", 0o755, True),
        ("#!/bin/sh\n", 0o644, False),
        ("Hello {{name}}", 0o755, False),
        ("", 0o755, False),
    ],
)
def test_a_program_is_executable_and_says_what_runs_it(
    tree: TreeBuilder, content: str | bytes, mode: int, is_program: bool
) -> None:
    tree.write("prompts/greet.sh", content, mode=mode)
    assert only_prompt(tree).is_program is is_program


def test_a_program_may_describe_itself_in_a_comment(tree: TreeBuilder) -> None:
    tree.write("prompts/greet.sh", '#!/bin/sh\n# mcp: {"description": "Says hello"}\n', mode=0o755)
    assert only_prompt(tree).definition["description"] == "Says hello"


def test_a_comment_in_a_template_is_part_of_its_text(tree: TreeBuilder) -> None:
    tree.write("prompts/greet.md", '# mcp: {"description": "no"}\n')
    assert only_prompt(tree).definition == {"name": "greet"}


@pytest.mark.parametrize("name", ["greet.meta.json", "greet.txt.meta.json"])
def test_a_description_in_json(tree: TreeBuilder, name: str) -> None:
    tree.write("prompts/greet.txt", "Hello")
    tree.write(f"prompts/{name}", '{"name": "say.hello", "title": "Hello", "description": "Says hello"}')
    assert only_prompt(tree).definition == {"name": "say.hello", "title": "Hello", "description": "Says hello"}


@pytest.mark.parametrize("suffix", ["yaml", "yml"])
def test_a_description_in_yaml(tree: TreeBuilder, suffix: str) -> None:
    tree.write("prompts/greet.txt", "Hello")
    tree.write(
        f"prompts/greet.meta.{suffix}",
        "description: Says hello\narguments:\n  - name: who\n    required: true\nrole: assistant\n",
    )
    prompt = only_prompt(tree)
    assert prompt.definition["arguments"] == [{"name": "who", "required": True}]
    assert (prompt.role, prompt.required) == ("assistant", ("who",))


def test_other_fields_are_kept_in_the_registry_only(tree: TreeBuilder) -> None:
    prompt = described(tree, metadata={"team": "docs"}, path="elsewhere.txt")
    assert prompt.registry_entry["metadata"] == {"team": "docs"}
    assert prompt.registry_entry["path"] == "greet.txt"
    assert prompt.definition == {"name": "greet"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be an object, found an array"),
        ('{"description": 5}', "description must be a string, found 5"),
        ('{"name": "two\\nlines"}', "name must be one line of printable text"),
        ('{"name": "nul\\u0000"}', "name must be one line of printable text"),
        ('{"timeoutSecs": 0}', "timeoutSecs must be a positive number, found 0"),
        ('{"arguments": 5}', "arguments must be an array of arguments or a schema, found 5"),
        ('{"arguments": ["who"]}', "every argument must be an object with a name"),
        ('{"arguments": [{"name": ""}]}', "every argument must be an object with a name"),
        ('{"arguments": [{"name": "who", "required": "yes"}]}', "required must be true or false"),
        ('{"arguments": [{"name": "who"}, {"name": "who"}]}', "the argument who appears twice"),
        ('{"arguments": {"properties": []}}', "arguments must have properties (an object)"),
        ('{"arguments": {"required": [5]}}', "required (an array of names)"),
        ('{"messages": []}', "messages must be an array of messages"),
        ('{"messages": ["hello"]}', "every message needs content"),
        ('{"messages": [{"role": "user"}]}', "every message needs content"),
        ('{"messages": [{"content": [{"type": "text", "text": "x"}]}]}', "every message needs content"),
        ('{"messages": [{"content": {"type": "film"}}]}', 'content type "film" is unknown'),
    ],
)
def test_a_bad_description_costs_this_prompt_and_says_why(tree: TreeBuilder, text: str, reason: str) -> None:
    tree.write("prompts/good.txt", "good")
    tree.write("prompts/bad.txt", "bad")
    tree.write("prompts/bad.meta.json", text)
    found = discovered(tree)
    assert [prompt.name for prompt in found.items] == ["good"]
    (warning,) = found.warnings
    assert warning.startswith("prompts/bad.meta.json: ") and warning.endswith("; the prompt is left out")
    assert reason in warning


def test_a_description_of_nothing_is_named(tree: TreeBuilder) -> None:
    tree.write("prompts/gone.meta.json", '{"description": "no template"}')
    found = discovered(tree)
    assert found.items == []
    assert "there is no template with the same name" in found.warnings[0]


def test_a_likely_typo_is_named(tree: TreeBuilder) -> None:
    assert "descripton is unknown; did you mean description?" in warnings_about(tree, descripton="x")[0]


def test_arguments_as_an_array_are_listed_as_they_are(tree: TreeBuilder) -> None:
    arguments = [{"name": "who", "title": "Who", "description": "Whom to greet", "required": True}, {"name": "tone"}]
    prompt = described(tree, arguments=arguments)
    assert prompt.definition["arguments"] == arguments
    assert prompt.required == ("who",)


def test_what_an_entry_of_the_array_says_besides_is_its_schema(tree: TreeBuilder) -> None:
    tone = {"name": "tone", "enum": ["warm", "cold"], "default": "warm"}
    size = {"name": "size", "schema": {"examples": ["s", "m"]}}
    prompt = described(tree, arguments=[tone, size])
    assert prompt.definition["arguments"] == [{"name": "tone"}, {"name": "size"}]
    assert prompt.schemas["tone"]["enum"] == ["warm", "cold"]
    assert prompt.schemas["size"] == {"examples": ["s", "m"]}


@pytest.mark.parametrize("field", ["arguments", "inputSchema"])
def test_a_schema_becomes_arguments_in_the_order_of_its_properties(tree: TreeBuilder, field: str) -> None:
    properties = {"who": {"title": "Who", "description": "Whom to greet"}, "tone": {"enum": ["warm"]}, "any": True}
    prompt = described(tree, **{field: {"type": "object", "properties": properties, "required": ["tone"]}})
    assert prompt.definition["arguments"] == [
        {"name": "who", "title": "Who", "description": "Whom to greet", "required": False},
        {"name": "tone", "required": True},
        {"name": "any", "required": False},
    ]
    assert prompt.required == ("tone",)
    assert prompt.schemas["tone"] == {"enum": ["warm"]}


def test_what_a_schema_only_requires_is_an_argument_too(tree: TreeBuilder) -> None:
    """It was neither listed nor enforced."""
    prompt = described(tree, arguments={"properties": {"who": {}}, "required": ["tone"]})
    assert prompt.definition["arguments"][1] == {"name": "tone", "required": True}
    assert prompt.required == ("tone",)


@pytest.mark.parametrize("arguments", [{}, {"type": "object"}, [], None])
def test_without_arguments_none_are_listed(tree: TreeBuilder, arguments: Any) -> None:
    assert "arguments" not in described(tree, arguments=arguments).definition


@pytest.mark.parametrize(
    ("fields", "role"), [({}, "user"), ({"role": "user"}, "user"), ({"role": "assistant"}, "assistant")]
)
def test_the_role_of_the_text(tree: TreeBuilder, fields: dict[str, str], role: str) -> None:
    assert described(tree, **fields).role == role


def test_a_role_that_does_not_exist_is_taken_as_user_with_a_warning(tree: TreeBuilder) -> None:
    assert described(tree, role="system").role == "user"
    (warning,) = discovered(tree).warnings
    assert warning == 'prompts/greet.txt: role must be user or assistant, found "system"; it is treated as user'


def test_the_same_goes_for_the_role_of_a_message(tree: TreeBuilder) -> None:
    """The whole prompt was left out, though a role for the whole prompt was forgiven."""
    messages = [{"role": "system", "content": "Be brief"}, {"role": "assistant", "content": "Yes"}]
    prompt = described(tree, messages=messages)
    assert prompt.messages == [{"role": "user", "content": "Be brief"}, messages[1]]
    assert "it is treated as user" in discovered(tree).warnings[0]


def test_messages_need_no_file(tree: TreeBuilder) -> None:
    tree.write("prompts/talk.meta.yaml", "messages:\n  - content: Hello {{name}}\n")
    prompt = only_prompt(tree)
    assert (prompt.name, prompt.path, prompt.relative_path) == ("talk", None, "talk.meta.yaml")
    assert prompt.messages == [{"content": "Hello {{name}}"}]

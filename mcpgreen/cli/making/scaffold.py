"""`mcpgreen new`, `init` and `scaffold`: create a project, or parts of one.

`new` makes a folder, `init` adds files to one that exists and keeps its files. `scaffold` adds a tool, resource,
template, prompt, completion, provider, MCP App, skill or test. The templates are in `templates/`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from keyword import iskeyword
from shutil import which
from typing import Any, NamedTuple

from mcpgreen.catalog.descriptions.metadata import completions_beside, described_stem
from mcpgreen.catalog.prompts import discover_prompts
from mcpgreen.catalog.resources import discover_resources
from mcpgreen.catalog.schemes import PROVIDERS
from mcpgreen.catalog.skills import MAIN_FILE, NAME, NAME_RULE
from mcpgreen.catalog.tools import SCOPES_OF_STAYS, Tool, discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli import children
from mcpgreen.cli.clients.launch import program_words, shell_words
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import Draft, filled, nearest_name, require_name, require_scheme, title_of
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import ask, can_ask, say
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import replacing
from mcpgreen.project.project import Project

TRIALS = {"tool": "run-tool {}", "prompt": "prompt {} topic=tides", "resource": "read {}", "skill": "read {}"}
VENDOR_SECS = 120.0
FIRST_TOOL = "hello"  # of a new project
TAKEN = "it already exists; choose another name, or move it out of the way"
KINDS = ("tool", "resource", "template", "prompt", "completion", "provider", "ui", "skill", "test")
MAX_SAMPLE_DEPTH = 8
MAX_SAMPLE_ITEMS = 16
MARK = "@SCHEMAS@"  # in the templates, for the directory of the schemas
_NAMED_SCHEMA = re.compile(rf"{MARK}/([a-z]+\.schema\.json)")


class Language(NamedTuple):
    name: str  # also that of its templates
    suffix: str
    program: str
    debian_package: str = ""  # if the image of the Dockerfile lacks it


LANGUAGES = {
    language.name: language
    for language in (
        Language("bash", "sh", "bash"),
        Language("sh", "sh", "sh"),
        Language("python", "py", "python3"),
        Language("node", "cjs", "node", "nodejs"),  # `.js` would be a module where a package.json says so
        Language("perl", "pl", "perl", "perl"),
        Language("ruby", "rb", "ruby", "ruby"),
    )
}
DEFAULT_LANGUAGE = "bash"


def _language_of(name: str | None) -> Language:
    try:
        return LANGUAGES[name or DEFAULT_LANGUAGE]
    except KeyError:
        raise ProjectError(f"--lang {name}", f"unknown language; choose one of {', '.join(LANGUAGES)}") from None


def run_new(options: Options) -> int:
    is_asking, folder = can_ask(), options["--project-root"]
    given = options["NAME"] or folder or (ask("Project name", "my-server") if is_asking else "")
    name = require_name(given and os.path.basename(os.path.abspath(given)), "mcpgreen new")
    root = os.path.abspath(folder or given)
    if os.path.lexists(root):
        raise ProjectError(root, "it already exists; choose another name, or run mcpgreen init in it")
    if not os.path.isdir(os.path.dirname(root)):
        raise ProjectError(os.path.dirname(root), "no such folder; create it first")
    language = _language_of(options["--lang"])  # an unknown one is an error before the first question
    title, has_hello = title_of(name), not options["--no-hello"]
    description = f"Tools for {title}"
    if is_asking:
        title, description = ask("Title", title), ask("Description", description)
    if is_asking and has_hello and options["--lang"] is None:
        language = LANGUAGES[ask("Language of the first tool", language.name, list(LANGUAGES))]
    draft = _project_draft(root, name, title, description, language if has_hello else None)
    image = name.lower()  # Docker refuses capitals
    if options["--docker"]:
        draft |= _docker_files(root, image, language.debian_package)
    draft[os.path.join(root, ".gitignore")] = filled("project/gitignore")
    draft.write()
    copies = _vendor(root) if options["--docker"] else ()
    made = "\n".join(f"  {path}" for path in sorted([*_relative(draft, root), *copies]))
    trial = shell_words(os.environ) + (
        f" run-tool {FIRST_TOOL}" if has_hello else " scaffold tool NAME    # or put your own scripts into tools/"
    )
    steps = [f"cd {shlex.quote(min(os.path.relpath(root), root, key=len))}", trial]
    if options["--docker"]:
        steps.append(f"docker build -t {image} . && docker run --rm -i {image}")
    say(f"Created project {name} at {root}\n{made}\n\nNext:\n" + "".join(f"  {step}\n" for step in steps))
    return 0


def run_init(options: Options) -> int:
    root = os.path.abspath(options["--project-root"] or os.curdir)
    if not os.path.isdir(root):
        raise ProjectError(root, "no such folder; create it with mcpgreen new NAME")
    name = require_name(options["--name"] or nearest_name(os.path.basename(root)), "--name")
    wants_tool, first_tool = not options["--no-hello"], _taken(os.path.join(root, "tools"), FIRST_TOOL)
    title = title_of(name)
    language = LANGUAGES[DEFAULT_LANGUAGE] if wants_tool and not first_tool else None
    draft = _project_draft(root, name, title, f"Tools for {title}", language)
    skipped = [path for path in draft if os.path.lexists(path)]
    for path in skipped:
        del draft[path]
    skipped += [first_tool] if wants_tool and first_tool else []
    ignored = os.path.join(root, ".gitignore")
    has_list = os.path.lexists(ignored)
    if not has_list:
        draft[ignored] = filled("project/gitignore")
    draft.write()
    lines = [f"Created {path}" for path in _relative(draft, root)]
    lines += [f"Skipped existing {path}" for path in _relative(skipped, root)]
    if has_list:
        added = _ignore_more(ignored)
        lines.append(f"Added to .gitignore: {' '.join(added)}" if added else "Skipped existing .gitignore")
    say("\n".join([*lines, f"Initialized project at {root}", ""]))
    return 0


def _project_draft(root: str, name: str, title: str, description: str, language: Language | None) -> Draft:
    """Draft the files of a project except `.gitignore`, which may exist. `language`: of the first tool, if any."""
    draft = Draft()
    server_dir = os.path.join(root, "server.d")
    meta = {"$schema": f"{MARK}/server.schema.json", "name": name, "title": title, "version": "0.1.0"}
    text = json.dumps({**meta, "description": description}, indent=2, ensure_ascii=False)
    draft[f"{server_dir}/server.meta.json"] = text + "\n"
    first_try = ""
    if language:
        _add_tool(draft, os.path.join(root, "tools"), FIRST_TOOL, language)
        _add_test(draft, root, FIRST_TOOL, {"name": "Ada"})
        first_try = f"    mcpgreen run-tool {FIRST_TOOL} name=Ada\n    mcpgreen test\n"
    elif not os.path.lexists(f"{root}/tools"):
        draft[f"{root}/tools/"] = ""
    if (program := shell_words(os.environ)) != "mcpgreen":
        first_try = f"    alias mcpgreen={shlex.quote(program)}    # unless it is on your PATH\n{first_try}"
    values = {"title": title, "description": description, "try": first_try}
    draft[f"{root}/README.md"] = filled("project/README.md", **values)
    _name_schemas(draft, server_dir)
    return draft


def _docker_files(root: str, name: str, package: str) -> Draft:
    """Draft the files for a container, with the Debian package that the first tool needs, if any."""
    install = f"apt-get update && apt-get install -y --no-install-recommends {package} && rm -rf /var/lib/apt/lists/*"
    packages = f"RUN {install}" if package else "# If your tools need more than Python and a shell, install it here."
    python = "{}.{}".format(*sys.version_info)  # for which the packages in the copy of mcpgreen are compiled
    dockerfile = filled("project/Dockerfile", name=name, python=python, packages=packages)
    return Draft({f"{root}/Dockerfile": dockerfile, f"{root}/.dockerignore": filled("project/dockerignore")})


def _vendor(root: str) -> tuple[str, ...]:
    """Put a copy of mcpgreen into a new project, and return what was added."""
    words = (*program_words(os.environ), "vendor", "--project-root", root)
    done = children.run(
        words, env=os.environ, cwd=root, stderr=subprocess.PIPE, secs=VENDOR_SECS, max_bytes=children.MAX_ANSWER_BYTES
    )
    if done.status != 0:
        reason = done.stderr.strip() or "it took too long"
        raise ProjectError(root, f"created, but its Dockerfile needs mcpgreen vendor, which failed: {reason}")
    return ".mcpgreen/", "run-server.sh"


def _ignore_more(path: str) -> list[str]:
    """Add the missing lines to an existing `.gitignore`, and return them."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read()
        missing = [line for line in filled("project/gitignore").splitlines() if line not in text.splitlines()]
        if missing:
            end_of_line = "\r\n" if "\r\n" in text else "\n"
            start = text if not text or text.endswith("\n") else text + end_of_line
            whole = start + "".join(line + end_of_line for line in missing)
            with replacing(os.path.realpath(path), mode=os.stat(path).st_mode & 0o7777) as new:
                new.write(whole.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise ProjectError(path, f"it cannot be changed: {error.strerror}") from error
    return missing


def _relative(paths: Iterable[str], root: str) -> list[str]:
    return sorted(os.path.relpath(path, root) + "/" * path.endswith("/") for path in paths)


def run(options: Options) -> int:
    """Run `mcpgreen scaffold`."""
    kind = next(kind for kind in KINDS if options[kind])
    language = _language_of(options["--lang"])
    project, _, _ = open_named(options)
    may_lack_name = kind == "test" or (kind == "ui" and options["--tool"])
    name = options["NAME"]
    if name or not may_lack_name:
        name = require_name(name, f"scaffold {kind}")
    if kind == "tool" and name[0] in "0123456789-":
        raise ProjectError(name, "some clients reject tool names that don't begin with a letter; choose another name")
    hints = [f"Try it: {shell_words(os.environ)} {TRIALS[kind].format(name)}"] if kind in TRIALS else []
    hints = [f"{hint} --repeat 3" for hint in hints] if options["--stays"] else hints
    draft = Draft()
    if kind == "tool" and name == FIRST_TOOL and not options["--stays"]:
        first = Draft()
        place = _add_tool(first, project.tools_dir, FIRST_TOOL, language)
        _name_schemas(first, project.server_dir)
        if first.on_disk() == [*first.values()]:
            say(f"The tool {name} is already at {project.shown(place)}: mcpgreen new wrote it\n{hints[0]}\n")
            return 0
    if options["--lang"] and which(language.program) is None:
        hints.append(f"{language.program} is not on the PATH; install it before you run this.")
    place = _add(draft, project, kind, name, language, options)
    _name_schemas(draft, project.server_dir)
    draft.write()
    lines = [f"Scaffolded {kind}{f' {name}' if name else ''} at {project.shown(place)}"]
    lines += [f"  {project.shown(path)}" for path in draft]
    lines += [f"Edit {project.shown(place)}"] if kind in TRIALS else []
    say("\n".join([*lines, *hints, ""]))
    return 0


def _add(draft: Draft, project: Project, kind: str, name: str, language: Language, options: Options) -> str:
    """Add an item of this kind, and return its directory or script. The functions below return the same."""
    if kind == "tool":
        _require_free(project.tools_dir, name)
        place = os.path.join(project.tools_dir, name if options["--ui"] else "").rstrip("/")
        if options["--ui"]:
            _add_page(draft, os.path.join(place, "ui"), name)
        return _add_tool(draft, place, name, language, options["--stays"] or "")
    if kind == "template":
        _require_free(project.resources_dir, name)
        scheme = require_scheme(name.lower().replace("_", "-").strip("-"))
        _add_provider(draft, project, scheme, language)
        return _fill(draft, project.resources_dir, name, {f"{name}.meta.json": "template.meta.json"}, scheme=scheme)
    if kind == "completion":
        return _add_completion(draft, project, name, language)
    if kind == "provider":
        return _add_provider(draft, project, name, language)
    if kind == "test":
        if not name:
            return _add_tests(draft, project.root)
        return _add_test(draft, project.root, name, sample_of(_tool(project, name).definition.get("inputSchema", {})))
    if kind == "ui":
        tool = options["--tool"]
        if not tool:
            return _add_page(draft, os.path.join(project.ui_dir, name), name)
        directory, script = os.path.split(_tool(project, tool).path)
        if directory == project.tools_dir:
            shown = project.shown(directory)
            move = f"mkdir {shown}/{tool} && mv {shown}/{script} {shown}/{tool}/"
            raise ProjectError(tool, f"its MCP App needs a folder; make one first: {move}")
        return _add_page(draft, os.path.join(directory, "ui"), name or tool)
    if kind == "skill":
        if not NAME.fullmatch(name):
            raise ProjectError(name, f"the name of a skill has {NAME_RULE}")
        _require_free(project.skills_dir, name)
        return _fill(draft, os.path.join(project.skills_dir, name), name, {MAIN_FILE: "skill.md"})
    home = project.prompts_dir if kind == "prompt" else project.resources_dir
    _require_free(home, name)
    suffix = "md" if kind == "prompt" else "txt"
    files = {f"{name}.{suffix}": f"{kind}.{suffix}", f"{name}.meta.json": f"{kind}.meta.json"}
    return _fill(draft, home, name, files)


def _fill(draft: Draft, place: str, name: str, files: dict[str, str], **values: str) -> str:
    """Add files to a directory, each from the named template. Return the first."""
    for file, template in files.items():
        draft[f"{place}/{file}"] = filled(f"items/{template}", name=name, title=title_of(name), **values)
    return f"{place}/{next(iter(files))}"


def _add_tool(draft: Draft, place: str, name: str, language: Language, stays: str = "") -> str:
    function = name.replace("-", "_")
    if language.name == "python" and (name in sys.stdlib_module_names or name == "mcp_tool"):
        raise ProjectError(f"{name}.py", f"it would hide the module {name} from the tools; choose another name")
    function += "_" if iskeyword(function) else ""
    if stays not in ("", *SCOPES_OF_STAYS):
        raise ProjectError(f"--stays {stays}", f"choose one of {', '.join(SCOPES_OF_STAYS)}")
    if stays and language.name == "sh":
        raise ProjectError("--lang sh", "a resident tool needs the SDK for bash; use --lang bash")
    template = f"{'staying' if stays else 'tool'}.{language.name}"
    return _fill(draft, place, name, {f"{name}.{language.suffix}": template}, function=function, stays=stays)


def _add_provider(draft: Draft, project: Project, scheme: str, language: Language) -> str:
    require_scheme(scheme)
    if scheme in PROVIDERS:
        raise ProjectError(scheme, "mcpgreen itself handles these URIs; choose another name")
    _require_free(project.providers_dir, scheme)
    script = os.path.join(project.providers_dir, f"{scheme}.{language.suffix}")
    draft[script] = filled(f"items/provider.{language.name}", scheme=scheme)
    return script


def _add_completion(draft: Draft, project: Project, name: str, language: Language) -> str:
    """Add a completion script next to the prompt, or the description of the resource template, of this name."""
    prompts, resources = project.prompts_dir, project.resources_dir
    items = [(prompts, item) for item in discover_prompts(project, survey(project, [prompts])).items]
    for found in discover_resources(project, survey(project, [resources])).values():
        items += [(resources, item) for item in found.items]
    places = [item.path or os.path.join(home, item.relative_path) for home, item in items if item.name == name]
    if not places:
        reason = f"no prompt or resource template has this name; create one with mcpgreen scaffold prompt {name}"
        raise ProjectError(name, reason)
    for script in completions_beside(places[0]):
        raise ProjectError(script, TAKEN)
    directory, file = os.path.split(places[0])
    script = f"{described_stem(file)}.completion.{language.suffix}"
    return _fill(draft, directory, name, {script: f"completion.{language.name}"})


def _add_page(draft: Draft, place: str, name: str) -> str:
    _fill(draft, place, name, {"index.html": "ui.html", "ui.meta.json": "ui.meta.json"})
    return place


def _add_tests(draft: Draft, root: str) -> str:
    """Add the script that runs all tests, and the page about them."""
    place = os.path.join(root, "test")
    draft[f"{place}/run.sh"] = filled("project/run.sh", program=shell_words(os.environ))
    draft[f"{place}/README.md"] = filled("project/test.README.md")
    return place


def _add_test(draft: Draft, root: str, tool_name: str, arguments: object) -> str:
    """Add a file with a first test of a tool."""
    place = os.path.join(root, "tests", f"{tool_name}.test.yaml")
    draft[place] = filled("items/test.yaml", name=json.dumps(tool_name), arguments=json.dumps(arguments))
    return place


def _require_free(directory: str, name: str) -> None:
    """Raise ProjectError if the directory has something of this name, in any language."""
    if path := _taken(directory, name):
        raise ProjectError(path, TAKEN)


def _taken(directory: str, name: str) -> str | None:
    try:
        entries = sorted(os.listdir(directory))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ProjectError(directory, f"it cannot be read: {error.strerror}") from error
    return next((os.path.join(directory, entry) for entry in entries if name in (entry, described_stem(entry))), None)


def _tool(project: Project, name: str) -> Tool:
    tools: Sequence[Tool] = discover_tools(project, survey(project, [project.tools_dir])).items
    for tool in tools:
        if tool.name == name:
            return tool
    known = ", ".join(tool.name for tool in tools[:20]) or "none yet"
    reason = f"this project has no such tool ({known}); create it with mcpgreen scaffold tool {name}"
    raise ProjectError(name, reason)


def _name_schemas(draft: Draft, server_dir: str) -> None:
    """Let each file of the draft that has a schema name it, and add the schemas that the project lacks.

    Schemas lie in the project and are named by a relative path, so that editors complete and check the files without a
    network, and for everyone who shares the project."""
    home = os.path.join(server_dir, "schemas")
    for path, content in list(draft.items()):
        for name in _NAMED_SCHEMA.findall(content):
            if not os.path.lexists(os.path.join(home, name)):
                draft[os.path.join(home, name)] = filled(f"schemas/{name}")
        draft[path] = content.replace(MARK, os.path.relpath(home, os.path.dirname(path)))


def sample_of(schema: object, depth: int = 0) -> Any:
    """Return a value that a plain schema admits, for a first test."""
    if not isinstance(schema, dict) or depth > MAX_SAMPLE_DEPTH:
        return {}
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    for keyword in ("examples", "enum"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return schema[keyword][0]
    wanted = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(wanted, list):
        wanted = wanted[0] if wanted else "string"
    if wanted == "object":
        properties, required = schema.get("properties"), schema.get("required")
        known = properties if isinstance(properties, dict) else {}
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        return {name: sample_of(known.get(name, {"type": "string"}), depth + 1) for name in names}
    if wanted == "array":
        count = _count(schema.get("minItems"), MAX_SAMPLE_ITEMS)
        return [sample_of(schema.get("items", {}), depth + 1) for _ in range(count)]
    if wanted in ("integer", "number"):
        lowest = schema.get("minimum", 1)
        return lowest if isinstance(lowest, (int, float)) else 1
    return {"boolean": True, "null": None}.get(wanted, "text".ljust(_count(schema.get("minLength"), 1024), "x"))


def _count(value: object, most: int) -> int:
    return min(value, most) if isinstance(value, int) and value > 0 else 0

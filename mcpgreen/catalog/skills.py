"""Read a project's skills: the folders in skills/ that have a SKILL.md.

A skill is text for a model: YAML front matter, instructions, and further files. Nothing in it is run. Clients get an
entry with the front matter and the digest of each file, and each file is a resource.

Rule: one bad skill costs this skill and a warning. A skill is served as a whole or not at all, because its entry has to
name all of its files. Links and hidden files do not belong to it.
"""

from __future__ import annotations

import codecs
import os
import re
from typing import NamedTuple

from mcpgreen.catalog.descriptions import metadata, yaml_text
from mcpgreen.catalog.descriptions.metadata import Origin, Rule
from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.prompts import Prompt, describe_prompt
from mcpgreen.catalog.resources import DEFAULT_PROVIDER, Resource, mime_type_of
from mcpgreen.catalog.tree_scan import NO_PERMISSION, Directory, Loss, Tree, stamp_of
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of, existing_file
from mcpgreen.project.project import Project
from mcpgreen.text.json_types import Json

MAIN_FILE = "SKILL.md"
SCHEME = "skill://"
DIRECTORY = "inode/directory"
NAME = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(-[a-z0-9]+)*")
NAME_RULE = "up to 64 characters from a-z 0-9 -, without - at the ends or twice in a row"
# The limits of the extension: clients need not accept more.
MAX_FILES = 512
MAX_BYTES = 16 << 20
MAX_DESCRIPTION_CHARS = 1024
# Our own limits.
MAX_SKILLS = 256
MAX_FILES_IN_ALL = 10_000  # one answer may name all of them
MAX_DEPTH = 16
MAX_FRONT_MATTER_BYTES = 65_536
MAX_PROMPT_BYTES = 1 << 20
SLICE_BYTES = 1 << 18  # hashed in less than a millisecond
A_DESCRIPTION = Rule(
    lambda value: isinstance(value, str) and bool(value.strip()) and len(value) <= MAX_DESCRIPTION_CHARS,
    f"a text of at most {MAX_DESCRIPTION_CHARS} characters that says what the skill is for and when to use it",
)
KEPT_IN_NAMES = "/!$&'()*+,;=:@~"  # which a URI may have as they are
_FRONT_MATTER = re.compile(rb"---\r?\n(.*?\r?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


class Skill(NamedTuple):
    """One skill. `path` is its SKILL.md, `definition` its entry in `skills/list`. `files` are by their paths in
    its folder. `folders` has what clients are told of the content of each folder, by its URI."""

    name: str
    path: str
    files: dict[str, Resource]
    folders: dict[str, list[Json]]
    definition: Json

    @property
    def registry_entry(self) -> Json:
        """What tells one state of the skill from another."""
        return {**self.definition, "folders": list(self.folders)}


def discover_skills(project: Project, tree: Tree) -> Discovery:
    """Read the skills in a tree of skills/, sorted by name."""
    home = project.skills_dir
    folders: dict[str, list[Directory]] = {}
    for directory in tree.directories:
        if directory.path != home:
            folders.setdefault(directory.path[len(home) + 1 :].partition("/")[0], []).append(directory)
    skills: list[Skill] = []
    # The walk has told the other warnings.
    warnings = tree._replace(warnings=[]).warnings_with_links(project, project.shown(home))
    for name in sorted(folders):
        if len(skills) >= MAX_SKILLS or sum(len(skill.files) for skill in skills) >= MAX_FILES_IN_ALL:
            reason = f"it has more than {MAX_SKILLS} skills or {MAX_FILES_IN_ALL} files"
            warnings.append(Loss(f"{project.shown(home)}: {reason}; {name} and all after it are left out"))
            break
        try:
            skills.append(_skill_in(project, tree, name, folders[name]))
        except (ProjectError, OSError) as error:
            warnings.append(_loss(project, error, "the skill is left out"))
    return Discovery(skills, warnings)


def discover_prompts_of_skills(project: Project, tree: Tree) -> Discovery:
    """Return a prompt for each skill: its name, and the text of its SKILL.md."""
    prompts: list[Prompt] = []
    warnings: list[str] = []
    for skill in discover_skills(project, tree).items:  # its warnings come with the resources
        try:
            text = content_of(skill.path, MAX_PROMPT_BYTES).decode("utf-8", "replace")
            about = {"name": skill.name, "description": skill.definition["frontmatter"]["description"]}
            fields = {**about, "placeholders": "braces", "messages": [{"role": "user", "content": text}]}
            prompts.append(describe_prompt(Origin(skill.path, project.private, []), fields))
        except ProjectError as error:
            warnings.append(_loss(project, error, "the prompt is left out"))
    return Discovery(prompts, warnings)


def _loss(project: Project, error: ProjectError | OSError, what: str) -> Loss:
    if isinstance(error, ProjectError):
        return Loss(f"{project.shown(error.path)}: {error.reason}; {what}")
    return Loss(f"{project.shown(error.filename)}: it cannot be read: {error.strerror}; {what}")


def uri_of(name: str, path: str) -> str:
    """Return the URI of a file or folder of a skill; an empty path is its root."""
    from urllib.parse import quote

    return f"{SCHEME}{name}/{quote(path, safe=KEPT_IN_NAMES)}".rstrip("/")


def _skill_in(project: Project, tree: Tree, name: str, directories: list[Directory]) -> Skill:
    """Raises ProjectError, and OSError if a file cannot be read."""
    folder = f"{project.skills_dir}/{name}"
    places = sorted(directory.path[len(folder) + 1 :] for directory in directories)
    found: dict[str, os.stat_result] = {}
    for directory in directories:
        for file, status in tree.pace.over(directory.files.items()):
            if not os.path.islink(f"{directory.path}/{file}"):
                found[f"{directory.path}/{file}"[len(folder) + 1 :]] = status
    size = sum(status.st_size for status in found.values())
    closed = [each for each in tree.warnings if each.startswith(project.shown(folder) + "/") and NO_PERMISSION in each]
    for is_broken, rule in (
        (not NAME.fullmatch(name), f"the folder of a skill must have a name of {NAME_RULE}"),
        (closed, f"it is incomplete: {', '.join(closed)}"),
        (any(each.count("/") >= MAX_DEPTH for each in places), f"it is nested deeper than {MAX_DEPTH} folders"),
        (max(len(found), len(places)) > MAX_FILES, f"it has more than {MAX_FILES} files or folders"),
        (MAIN_FILE not in found, f"it has no {MAIN_FILE}"),
        (size > MAX_BYTES, f"its files are larger than {MAX_BYTES} bytes together"),
    ):
        if is_broken:
            raise ProjectError(folder, rule)
    front_matter = _front_matter_in(f"{folder}/{MAIN_FILE}", name)
    folders: dict[str, list[Json]] = {uri_of(name, place): [] for place in places}
    for place in filter(None, places):
        entry = {"name": os.path.basename(place), "uri": uri_of(name, place), "mimeType": DIRECTORY}
        folders[uri_of(name, os.path.dirname(place))].append(entry)
    files: dict[str, Resource] = {}
    resources: list[Json] = []
    for path in sorted(found, key=lambda path: (path != MAIN_FILE, path)):
        content = _content_of(f"{folder}/{path}", found[path], tree)
        about = {"name": os.path.basename(path), "uri": uri_of(name, path), **content}
        resources.append({"uri": about["uri"], "digest": about.pop("digest"), "size": about["size"]})
        about |= {"name": name, "description": front_matter["description"]} if path == MAIN_FILE else {}
        files[path] = _resource_at(project, f"{folder}/{path}", about)
        folders[uri_of(name, os.path.dirname(path))].append(about)
    definition: Json = {"uri": uri_of(name, MAIN_FILE), "frontmatter": front_matter, "resources": resources}
    return Skill(name, f"{folder}/{MAIN_FILE}", files, folders, definition)


def _resource_at(project: Project, path: str, definition: Json) -> Resource:
    place = os.path.relpath(path, project.resources_dir)  # where the registry looks for files of resources
    entry = {"description": "", **definition, "provider": DEFAULT_PROVIDER, "path": place}
    about = definition["name"], definition["uri"], DEFAULT_PROVIDER, definition["mimeType"]
    return Resource(*about, definition, entry, path, place)


def _front_matter_in(path: str, name: str) -> Json:
    """Return the front matter of a SKILL.md as JSON. Raises ProjectError, also for one without a usable name and
    description, and OSError. `name` is that of the folder."""
    with open(existing_file(path), "rb") as file:
        match = _FRONT_MATTER.match(file.read(MAX_FRONT_MATTER_BYTES).removeprefix(codecs.BOM_UTF8))
    if match is None:
        most = f"{MAX_FRONT_MATTER_BYTES} bytes at most"
        raise ProjectError(path, f"it must begin with front matter: YAML between two lines of ---, {most}")
    try:
        match[1].decode("utf-8")
        value = yaml_text.value_of(match[1], is_strict=True)
    except ValueError as error:
        raise ProjectError(path, f"the front matter is not valid YAML: {error}") from error
    if not isinstance(value, dict):
        raise ProjectError(path, "the front matter must be an object, with name and description")
    rules = {"name": Rule(lambda given: given == name, f"{name}, as its folder"), "description": A_DESCRIPTION}
    for field, problem in metadata.violations(rules, {**dict.fromkeys(rules), **value}):
        raise ProjectError(path, f"{field} {problem}")
    return value


def _content_of(path: str, status: os.stat_result, tree: Tree) -> Json:
    """Return what clients are told of the content of a file. It is hashed in turns with other work, unless an earlier
    scan has done that. Raises ProjectError and OSError."""
    stamp = stamp_of(status)
    content: Json
    earlier_stamp, content = tree.earlier.get(path, (None, {}))
    if earlier_stamp != stamp:
        from hashlib import sha256

        digest, size = sha256(), 0
        with open(existing_file(path), "rb") as file:
            while chunk := file.read(SLICE_BYTES):
                digest.update(chunk)
                size += len(chunk)
                tree.pace.step()
                if size > MAX_BYTES:
                    raise ProjectError(path, f"it is larger than {MAX_BYTES} bytes")
        content = {"digest": f"sha256:{digest.hexdigest()}", "size": size, "mimeType": mime_type_of(path)}
    if status.st_ctime_ns <= tree.settled_ns:
        tree.memory[path] = stamp, content
    return content

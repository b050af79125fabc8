"""The language of the small jq: from the text of a filter to the filter itself.

One pass without a tree: each method reads its part of the text and returns a filter. Names are looked up while reading,
so that what does not exist is told before anything runs.
"""

from __future__ import annotations

import functools
import os

from . import bindings, filters
from .functions import OF_FILTERS, OF_VALUES, definitions
from .texts import FORMATS
from .tokens import KEYWORDS, Mistake, Tokens, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .bindings import Pattern
    from .filters import Filter

ASSIGNMENTS = ("=", "|=", "+=", "-=", "*=", "/=", "%=", "//=")
# From the weakest to the strongest; the pipe is weaker than all.
LEVELS = ((",",), ("//",), ASSIGNMENTS, ("or",), ("and",), tuple(filters.COMPARISONS), ("+", "-"), ("*", "/", "%"))
WITHOUT_COMMA = 1


def compile_filter(text: str, names: Iterable[str] = ()) -> Filter:
    """The filter that a text stands for; `names` are the variables that it may use."""
    reader = Reader(text, {"$" + name for name in names})
    if reader.peek()[0] == "end":
        return filters.identity
    found = reader.pipe()
    reader.expect("end", "")
    return found


class Reader(Tokens):
    """Reads one text from front to end. `scope`: the `$name` and `name/count` that are known at this place."""

    def __init__(self, text: str, scope: set[str]) -> None:
        super().__init__(text)
        self.scope = scope

    def inner(self, added: set[str]) -> set[str]:
        """Names become known; returns those that were known before, to be put back."""
        before = self.scope
        self.scope = before | added
        return before

    def body(self, added: set[str]) -> Filter:
        """A pipe in which these names are known."""
        before = self.inner(added)
        found = self.pipe()
        self.scope = before
        return found

    def pipe(self, lowest: int = 0) -> Filter:
        if self.accept("def"):
            key, parameters, body = self.definition()
            before = self.inner({key})
            rest = self.pipe(lowest)
            self.scope = before
            return bindings.definition(key, parameters, body, rest)
        left = self.level(lowest)
        return filters.pipe(left, self.pipe(lowest)) if self.accept("|") else left

    def definition(self) -> tuple[str, list[str], Filter]:
        name = self.expect("name", "")
        parameters: list[str] = []
        if self.accept("("):
            while not parameters or self.accept(";"):
                parameters.append(self.take() if self.peek()[0] == "variable" else self.expect("name", ""))
            self.expect("sign", ")")
        self.expect("sign", ":")
        key = f"{name}/{len(parameters)}"
        known = {each for each in parameters if each.startswith("$")}
        body = self.body({key, *known, *(each.lstrip("$") + "/0" for each in parameters)})
        self.expect("sign", ";")
        return key, parameters, body

    def level(self, at: int) -> Filter:
        """Operators of one strength, between operands that are made of stronger ones."""
        if at == len(LEVELS):
            return self.operand()
        left = self.level(at + 1)
        while operator := self.accept(*LEVELS[at]):
            if operator in ("//", *ASSIGNMENTS):  # from right to left, or not in a row at all
                right = self.level(at if operator == "//" else at + 1)
            else:
                right = self.level(at + 1)
            left = self.joined(operator, left, right)
        return left

    def joined(self, operator: str, left: Filter, right: Filter) -> Filter:
        if operator == ",":
            return filters.comma(left, right)
        if operator == "//":
            return filters.alternative(left, right)
        if operator in ("or", "and"):
            return filters.logic(left, right, operator == "or")
        if operator in ASSIGNMENTS:
            return filters.assignment(operator, left, right)
        return filters.operation(operator, left, right)

    def operand(self) -> Filter:
        if self.accept("-"):
            return filters.negation(self.operand())
        if self.accept("label"):
            return self.label()
        source = self.postfix(self.term())
        if not self.accept("as"):
            return source
        pattern, names = self.pattern()
        self.expect("sign", "|")
        return bindings.binding(source, pattern, self.body(names))

    def label(self) -> Filter:
        name = "label " + self.expect("variable", "")
        self.expect("sign", "|")
        return bindings.label(name, self.body({name}))

    def postfix(self, found: Filter) -> Filter:
        """Steps behind a term. `?` belongs to the step before it alone, and to the term if there is none."""
        while True:
            kind, text = self.peek()
            if kind == "field":
                found = self.step(found, filters.constant(self.take()[1:]))
            elif self.accept("?"):
                found = filters.attempt(found, None)
            elif self.accept("["):
                found = self.bracket(found)
            elif text == "." and self.next_is('["'):
                self.take()
                if self.accept('"'):
                    found = self.step(found, self.string("text"))
            else:
                return found

    def step(self, source: Filter, key: Filter) -> Filter:
        return filters.index(source, key, is_optional=self.accept("?") != "")

    def bracket(self, source: Filter) -> Filter:
        """`[]`, `[key]` or `[from:to]`, behind the opening bracket."""
        if self.accept("]"):
            return filters.each(source, is_optional=self.accept("?") != "")
        start = end = filters.constant(None)
        if self.peek()[1] != ":":
            start = self.pipe()
            if self.accept("]"):
                return self.step(source, start)
        self.expect("sign", ":")
        if self.peek()[1] != "]":
            end = self.pipe()
        self.expect("sign", "]")
        return filters.part(source, start, end, is_optional=self.accept("?") != "")

    def term(self) -> Filter:
        kind, text = self.peek()
        if kind == "field":
            return filters.identity
        if kind == "number":
            return filters.constant(number_of(self.take()))
        if kind == "format":
            return self.format()
        if kind == "variable":
            return self.variable()
        if kind == "name" and text not in KEYWORDS:
            return self.call()
        word = self.accept("if", "try", "reduce", "foreach", "break", "(", "[", "{", '"', "..", ".")
        if not word:
            raise Mistake(f"{self.rest()} makes no sense here")
        if word == "break":
            return self.leaving()
        if word == "..":
            return self.named("recurse/0", [])
        if word == ".":
            return filters.index(filters.identity, self.string("text")) if self.accept('"') else filters.identity
        if word == '"':
            return self.string("text")
        if word == "(":
            found = self.pipe()
            self.expect("sign", ")")
            return found
        if word == "[":
            found = OF_FILTERS["empty/0"] if self.peek()[1] == "]" else self.pipe()
            self.expect("sign", "]")
            return filters.array(found)
        if word == "{":
            return self.object()
        return self.condition() if word == "if" else self.attempt() if word == "try" else self.folding(word)

    def format(self) -> Filter:
        name = self.take()[1:]
        if name not in FORMATS:
            raise Mistake(f"the format @{name} is not known here")
        if self.accept('"'):
            return self.string(name)
        return filters.of_values(FORMATS[name], [])

    def variable(self) -> Filter:
        name = self.take()
        if name == "$ENV":
            return filters.constant(dict(os.environ))
        if name not in self.scope:
            raise Mistake(f"the variable {name} is not defined")
        return filters.variable(name)

    def leaving(self) -> Filter:
        name = self.expect("variable", "")
        if "label " + name not in self.scope:
            raise Mistake(f"the label {name} is not defined")
        return bindings.leaving("label " + name)

    def call(self) -> Filter:
        name = self.take()
        if name in ("null", "true", "false"):
            return filters.constant({"null": None, "true": True, "false": False}[name])
        arguments: list[Filter] = []
        if self.accept("("):
            while not arguments or self.accept(";"):
                arguments.append(self.pipe())
            self.expect("sign", ")")
        return self.named(f"{name}/{len(arguments)}", arguments)

    def named(self, key: str, arguments: list[Filter]) -> Filter:
        if key in self.scope:
            return bindings.call(key, arguments)
        if key in OF_VALUES:
            return filters.of_values(OF_VALUES[key], arguments)
        if key in OF_FILTERS:
            function = OF_FILTERS[key]
            return lambda env, item: function(env, item, *arguments)
        return bindings.call(key, arguments, _defined(key))

    def condition(self) -> Filter:
        question = self.pipe()
        self.expect("name", "then")
        yes = self.pipe()
        if self.accept("elif"):
            return filters.condition(question, yes, self.condition())
        no = self.pipe() if self.accept("else") else filters.identity
        self.expect("name", "end")
        return filters.condition(question, yes, no)

    def attempt(self) -> Filter:
        body = self.postfix(self.term())
        return filters.attempt(body, self.postfix(self.term()) if self.accept("catch") else None)

    def folding(self, word: str) -> Filter:
        source = self.postfix(self.term())
        self.expect("name", "as")
        pattern, names = self.pattern()
        self.expect("sign", "(")
        start = self.pipe()
        self.expect("sign", ";")
        before = self.inner(names)
        update = self.pipe()
        extract = None
        if word == "foreach":
            extract = self.pipe() if self.accept(";") else filters.identity
        self.scope = before
        self.expect("sign", ")")
        return bindings.folding(source, pattern, start, update, extract)

    def object(self) -> Filter:
        pairs: list[tuple[Filter, Filter]] = []
        while not self.accept("}"):
            if pairs:
                self.expect("sign", ",")
            pairs.append(self.member())
        return filters.members(pairs)

    def member(self) -> tuple[Filter, Filter]:
        kind, text = self.peek()
        if kind == "variable":
            return filters.constant(text[1:]), self.variable()
        if self.accept("("):
            key = self.pipe()
            self.expect("sign", ")")
        elif self.accept('"'):
            key = self.string("text")
        elif kind == "format":
            key = self.format()
        elif kind in ("name", "number"):
            key = filters.constant(self.take())
        else:
            raise Mistake(f"{self.rest()} stands where the key of an object should be")
        if self.accept(":"):
            return key, self.pipe(WITHOUT_COMMA)
        return key, filters.index(filters.identity, key)

    def pattern(self) -> tuple[Pattern, set[str]]:
        """What stands behind `as`, and the names that it binds."""
        if self.peek()[0] == "variable":
            name = self.take()
            return bindings.bound_to(name), {name}
        if self.accept("["):
            parts = [(filters.constant(0), *self.pattern())]
            while self.accept(","):
                parts.append((filters.constant(len(parts)), *self.pattern()))
            self.expect("sign", "]")
        else:
            self.expect("sign", "{")
            parts = [self.named_part()]
            while self.accept(","):
                parts.append(self.named_part())
            self.expect("sign", "}")
        return bindings.bound_to_parts(parts), {name for _, _, names in parts for name in names}

    def named_part(self) -> tuple[Filter, Pattern, set[str]]:
        kind, text = self.peek()
        if kind == "variable":
            self.take()
            return filters.constant(text[1:]), bindings.bound_to(text), {text}
        if self.accept('"'):
            key = self.string("text")
        elif self.accept("("):
            key = self.pipe()
            self.expect("sign", ")")
        else:
            key = filters.constant(self.expect("name", ""))
        self.expect("sign", ":")
        return (key, *self.pattern())

    def string(self, form: str) -> Filter:
        """A string, behind its opening quote. What stands in \\( ) takes the form."""
        parts: list[Any] = []
        letters, is_over = self.letters()
        while not is_over:
            parts += [letters, self.pipe()]
            self.expect("sign", ")")
            letters, is_over = self.letters()
        return filters.text([*parts, letters], FORMATS[form]) if parts else filters.constant(letters)


@functools.cache
def _defined(key: str) -> bindings.Function:
    """A function of `definitions.jq`, each on a line of its own."""
    line = definitions().get(key)
    if line is None:
        name, _, count = key.partition("/")
        raise Mistake(f"the function {name} with {count} arguments is not known here")
    reader = Reader(line, set())
    reader.expect("name", "def")
    _, parameters, body = reader.definition()
    return bindings.Function(key, parameters, body, {})

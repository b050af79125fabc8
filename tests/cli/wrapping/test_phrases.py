"""How help texts say things: each case is a manner of writing that some real command has, in words of our own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.wrapping.test_reading import argument, read, shown_type

# What the options are, by the help text.
OPTIONS: dict[str, tuple[str, dict[str, str]]] = {
    # -- types of values
    "columns are names, and COLS is a number": (
        "  --hide <columns>   do not print the columns\n  --wrap=COLS   after so many\n",
        {"hide": "string", "wrap": "integer"},
    ),
    "a value that ends in NUM is a number": ("  -a FILENUM   also print from it\n", {"a": "integer"}),
    "a sentence below says that a value is a number": (
        "Usage: x [OPTION]... A B\n  -j FIELD   join on it\n\nAny FIELD is a field number counted from 1.\n",
        {"j": "integer", "a": "string", "b": "string"},
    ),
    "a number with a suffix is a string": (
        "Usage: x [OPTION]...\n  --wait=TIME   so long\n\nTIME is a number with an optional suffix: s or m.\n",
        {"wait": "string"},
    ),
    "a number of things": (
        "  --indent INDENT   use this number of spaces\n  -r LIMIT_R   control the maximum recursion level\n",
        {"indent": "integer", "r": "integer"},
    ),
    "fields are no number, whatever their default": (
        "  --field=FIELDS   in these (default=1)\n",
        {"field": "string = '1'"},
    ),
    "at most so many": ("  --batch=NMERGE   merge at most NMERGE at once\n", {"batch": "integer"}),
    "a hash sign is a number": (
        "  -T#          spawn # threads\n  --size=#     so large\n",
        {"T": "integer", "size": "integer"},
    ),
    "types of openssl": (
        "Usage: x [options]\n\n -help           Display this summary\n -end intmax     in so many seconds\n"
        " -days int       so many\n -in infile      from there\n",
        {"help": "boolean", "end": "integer", "days": "integer", "in": "string"},
    ),
    "a list that is empty by default": (
        "Flags:\n  -h, --help            help for x\n      --ulimit ulimit   limits (default [])\n",
        {"help": "boolean", "ulimit": "list of string"},
    ),
    "defaults in the place of types": (
        "Options:\n    -A, --all=false:\n\tList all of it.\n\n    --size=500:\n\tIn chunks.\n\n    -f, --file=[]:\n"
        "\tFrom there.\n\n    --print=true:\n\tPrint it.\n\n    -o, --output='':\n\tOutput format.\n",
        {
            "all": "boolean = False",
            "size": "integer = 500",
            "file": "list of string",
            "print": "boolean = True",
            "output": "string",
        },
    ),
    "a value that can be repeated": (
        "  -m MODULE   for module; can repeat for more modules\n",
        {"m": "list of string"},
    ),
    # -- choices
    "choices behind a colon": (
        "  --invalid=MODE   failure mode: MODE can be:\n                     abort (default), fail, warn, ignore\n"
        "  --style=WORD   in a style.\n    Valid WORDs are: plain, shell, c.\n",
        {"invalid": "string of abort fail warn ignore = 'abort'", "style": "string of plain shell c"},
    ),
    "choices with a default among them": (
        "  --paint <when>   The value must be always (the default), never, or auto.\n",
        {"paint": "string of always never auto = 'always'"},
    ),
    "choices in square brackets": (
        "  --bar <bar>   Whether to show it [on, off] (default: on)\n",
        {"bar": "string of on off = 'on'"},
    ),
    "lists in brackets and behind a colon": (
        "  --lock HOW        use a lock (yes, no or nonblock)\n"
        "  --clock FMT       show it in a format: [delta|ctime|iso]\n"
        "  --symbols HOW     what to do. <method> is: ignore-all, report-all\n"
        "  --merge WHICH     merge [SECTION | orphan] sections\n"
        "  --key KEY         public key (PEM/DER) file, or a hash\n"
        "  --mode HOW        'ignore' that they are read-only, 'warn' (default), or 'fail'.\n",
        {
            "lock": "string of yes no nonblock",
            "clock": "string of delta ctime iso",
            "symbols": "string of ignore-all report-all",
            **dict.fromkeys(("merge", "key", "mode"), "string"),
        },
    ),
    "two formats in parentheses": (
        " -form format   File format (DER or PEM) - default PEM\n",
        {"form": "string of DER PEM = 'PEM'"},
    ),
    "choices with spaces in them": (
        "Usage: x [-h] [--speed {fast,slow,odd one}] {go,go away}\n  --speed {fast,slow,odd one}   how fast\n",
        {"speed": "string of fast slow odd one", "command": "string of go go away", "h": "boolean"},
    ),
    "one of several": (
        "  --format FORMAT   one of text, json, csv [default: text].\n"
        "  --level LEVEL     The level, one of low, middle, or high (default: low)\n"
        "  -o, --output KIND   Output format. One of: json|yaml|wide\n"
        "  --print KIND      Output format. One of: (json, yaml, go-template).\n"
        "  --show KIND       one of {a,b,c}\n"
        '  --shape SHAPE     One of: circle | square | "big square"\n'
        "  --count COUNT     Allowed values are: one, two and three.\n"
        "  --team NAME       one of us, them and others that are known\n"
        "  --who NAME        one of many\n",
        {
            "format": "string of text json csv = 'text'",
            "level": "string of low middle high = 'low'",
            "output": "string of json yaml wide",
            "print": "string of json yaml go-template",
            "show": "string of a b c",
            "shape": "string of circle square big square",
            "count": "string of one two three",
            "team": "string",
            "who": "string",
        },
    ),
    "choices with more behind one of them are only told": (
        "  -o, --output KIND   Output format. One of: json|jsonpath=EXPRESSION\n"
        "  --print KIND     One of: (json, yaml, jsonpath).\n"
        "  --as KIND        is 'json', 'yaml', or 'columns=...'\n"
        "  --sort KEY       one of name, size, field...\n"
        "  --to KIND        [possible values: json, column=NAME]\n"
        "  --from {json,column=NAME}   it\n"
        "  --by KIND        one of json, yaml (default=json)\n",
        {
            **dict.fromkeys(("output", "print", "as", "sort", "to", "from"), "string"),
            "by": "string of json yaml = 'json'",
        },
    ),
    "on or off": ("  -Y on/off   Use it\n", {"Y": "string of on off"}),
    "choices as bullets": (
        "OPTIONS\n       --mode=<mode>\n           Which files. The possible options are:\n\n"
        "           •   no - Show none.\n\n           •   all - Show all.\n",
        {"mode": "string of no all"},
    ),
    "choices in rows of their own": (
        "  --format=zip    Write zip.\n  --format=tar    Write tar.\n  --format=cpio   Write cpio.\n",
        {"format": "string of zip tar cpio"},
    ),
    "choices in a list below": (
        "Usage: x [OPTION]...\n  --from=UNIT   scale it; default is 'none'\n  -n, --form=FORM   as FORM\n"
        "  -s, --style=STYLE   in a style\n\n"
        "UNIT options:\n  none   as it is\n  si     accept\n           1K = 1000\n  iec-i  accept, too\n\n"
        "FORM is one of:\n\n  ln     left\n  rn     right\n\n"
        "STYLE is one of:\n\n  a      all\n  pBRE   those that match\n",
        {"from": "string of none si iec-i = 'none'", "form": "string of ln rn", "style": "string"},
    ),
    "choices in a sentence below": (
        "Usage: x [OPTION]...\n  --cached=MODE   how to use it\n\n"
        "The MODE argument of --cached can be: always, never, or auto.\n",
        {"cached": "string of always never auto"},
    ),
    "the values of an option below": (
        "Usage: x [OPTION]...\n  --keep[=HOW]   keep a copy\n\nThe method may be selected via the --keep option.\n"
        "Here are the values:\n\n  none, off   never\n  simple      always\n\n",
        {"keep": "string of  none off simple"},
    ),
    "choices that are words for kinds, in quotes": (
        "  --files=TYPE   as TYPE;\n                 TYPE is 'binary', 'text', or 'none'\n"
        "  --time=FMT     in a format. FMT='date', 'seconds', or 'ns'\n",
        {"files": "string of binary text none", "time": "string of date seconds ns"},
    ),
    "values in the names": (
        "  -c, --check, --check=first   check it\n  -C, --check=quiet, --check=silent   check silently\n",
        {"check": "string of  first quiet silent"},
    ),
    "a pipe in parentheses is no choice": (
        "  -o, --output=FILE   send it to a file (or |pipe)\n",
        {"output": "string"},
    ),
    # -- defaults
    "a default without brackets": (
        "  -T, --threads=NUM   use so many; the default is 1; set to 0 for all\n"
        "  --unit=N            the unit (instead of the default 3)\n"
        "  --limit n           Display so many. The default value is 16.\n"
        "  --retries <n>       so many (default 5 times)\n"
        "  -dates val          Date format. Default is rfc_822.\n"
        "  --sep SEP           between them. Default: '|'\n"
        "  --root DIR          The project. Default: the one around it.\n"
        "  --lang LANGUAGE     sh or perl. Default: bash.\n",
        {
            "threads": "integer = 1",
            "unit": "integer = 3",
            "limit": "integer = 16",
            "retries": "integer = 5",
            "dates": "string = 'rfc_822'",
            "sep": "string = '|'",
            "root": "string",
            "lang": "string = 'bash'",
        },
    ),
    # -- flags
    "given twice for more": (
        "  -q, --quiet   no warnings; specify twice for no errors\n",
        {"quiet": "integer from 0 to 10"},
    ),
    "doubled for more": ("  -q   errors only; -qq will hide these, too\n", {"q": "integer from 0 to 10"}),
    "a bundle that may be repeated": (
        "Usage: x [-abz]...\n  -a   as a\n",
        {"a": "boolean", "b": "boolean", "z": "boolean"},
    ),
    "a flag that the usage has twice": (
        "usage: x [-h] [more options, see -h]\n\n  -h, --help   help\n",
        {"help": "boolean"},
    ),
    "a range of levels": ("  -0 ... -2   preset; default is 1\n", {"0": "boolean", "1": "boolean", "2": "boolean"}),
    "options that take arguments": (
        "Options:\n    Boolean options:\n     -v,  --verbose    Print all.\n\n    Options that take arguments:\n"
        "     -I                Paths to include.\n     -e,  --exec       What to run.\n",
        {"verbose": "boolean", "I": "string", "exec": "string"},
    ),
    # -- signatures
    "a value as long as its column": (
        "  -f, --from-file=      load it from there\n      --slurp name file set it to the contents\n"
        "  -a,  --archive a.tgz  Store it.\n",
        {"from_file": "string", "slurp": "list of string", "archive": "string"},
    ),
    "a name in a line of its own": (
        "      --color[=WHEN],\n      --colour[=WHEN]   colours; WHEN is 'always' or 'never'\n",
        {"color": "string of  always never"},
    ),
    "an option called option": ("usage: x [-o option] [-Q query_option]\n", {"o": "string", "Q": "string"}),
    "a name that is explained": (
        '  -1 ("one"), --single-step\n                  one at a time\n',
        {"single_step": "boolean"},
    ),
    "no without a dash": ("   -[no]header   headers on or off\n", {"header": "boolean"}),
    "names with a slash in between": (
        "  --book-mode/--simple\n             simple mode\n"
        "  --prompt mode/--prompt-mode mode\n             that mode\n",
        {"book_mode": "boolean", "prompt": "string"},
    ),
    "a number that may be left out": (
        "  --fast[=#]   quickly\n  --abbrev[=<n>]   short\n",
        {"fast": "string", "abbrev": "string"},
    ),
    # -- operands
    "a form without anything is for the help": (
        "Usage: x [OPTION] SECS COMMAND [ARG]...\n  or:  x [OPTION]\n",
        {"secs": "number", "command": "string", "args": "list of string"},
    ),
    "operands that are one": ("usage: x [-l] [FILE|DIR ...]\n", {"l": "boolean", "files": "list of string"}),
    "an operand or an option": (
        "Usage: x [OPTIONS] <RULE|--all>\n\nOptions:\n      --all\n          All\n",
        {"all": "boolean", "rule": "string"},
    ),
    "an operand or standard input": (
        "Usage: x [OPTIONS...] [INPUT... | -] [-o OUTPUT]\n",
        {"o": "string", "inputs": "list of string"},
    ),
    "one of several operands": ("Usage:  x [OPTIONS] PATH | URL | -\n", {"path": "string"}),
    "a file or a directory": (
        "Usage:\n x [options] <file>|<directory> <command>\n",
        {"file": "string", "command": "string"},
    ),
    "an option with two names and one value": (
        "usage: x [(-O | --open) [<with>]] [(-n | -m | --most) <num> | --fix [(a|b):]<c>] <what>\n  -s N[kMG]   how\n",
        {"open": "string", "most": "integer", "fix": "string", "s": "string", "what": "string"},
    ),
    "parts of an operand": ("Usage: x [FILE] [[+]OFFSET[.][b]]\n", {"file": "string", "offset": "string"}),
    "dots behind alternatives are for operands": (
        "Usage: x ([NAME | -l label] | TYPE/NAME ...)\n",
        {"l": "string", "names": "list of string"},
    ),
    "a bracket that is not closed": (
        "Usage: x [-k START[.OFS][,END[.OFS]] [-t CHAR] [FILE]...\n",
        {"k": "string", "t": "string", "files": "list of string"},
    ),
}


@pytest.mark.parametrize("manner", OPTIONS)
def test_a_manner_of_writing_is_understood(manner: str) -> None:
    text, expected = OPTIONS[manner]

    assert {each.name: shown_type(each.schema) for each in read(text).arguments} == expected


@pytest.mark.parametrize(
    ("text", "required"),
    [
        ("Usage: x [OPTION] SECS COMMAND [ARG]...\n  or:  x [OPTION]\n", {"secs", "command"}),
        ("Usage: x [OPTIONS] <RULE|--all>\n\nOptions:\n      --all\n          All\n", set()),
        ("Usage:  x [OPTIONS] PATH | URL | -\n", {"path"}),
        ("Usage: x [-k START[.OFS][,END] [-t CHAR] [FILE]...\n", set()),
    ],
)
def test_what_a_usage_line_requires(text: str, required: set[str]) -> None:
    assert {each.name for each in read(text).arguments if each.is_required} == required


@pytest.mark.parametrize(
    ("text", "name", "words", "keywords"),
    [
        ("  --[no]paint   paint it\n", "paint", ("--paint",), (("off", "--nopaint"),)),
        ("  -[no]header   headers\n", "header", ("-header",), (("off", "-noheader"),)),
        ("  --book-mode/--simple\n             simple\n", "book_mode", ("--book-mode",), ()),
        ("  --shout/--no-shout   loud\n", "shout", ("--shout",), (("off", "--no-shout"),)),
        ("  --shout / --whisper   loud\n", "shout", ("--shout",), (("off", "--whisper"),)),
        ("  -T#   so many\n", "T", ("-T{}",), ()),
        ("  --fast[=#]   quickly\n", "fast", ("--fast={}",), (("bare", "--fast"),)),
        (
            "Flags:\n  -h, --help   help for x\n      --rm     remove it (default true)\n",
            "rm",
            ("--rm",),
            (("off", "--rm=false"),),
        ),
        ("    --print=true:\n\tPrint it.\n", "print", ("--print",), (("off", "--print=false"),)),
    ],
)
def test_the_words_that_an_argument_becomes(
    text: str, name: str, words: tuple[str, ...], keywords: tuple[tuple[str, str], ...]
) -> None:
    found = argument(read(text), name)

    assert (found.words, found.keywords) == (words, keywords)


@pytest.mark.parametrize(
    "text",
    [
        "  --name NAME   Names must be short, unique and plain.\n",
        "  --name NAME   Can be anything, such as a, b, or c.\n",
        "  --name NAME   which one [required]\n",
        "  --name NAME   where to find it (file or directory)\n",
        "  --name NAME   one of these: a file, a directory\n",
        "  --name NAME   any but one of a, b, c\n",
        "  --name NAME   any name other than one of: a|b|c\n",
        "  --name NAME   It must not be one of 'a', 'b' or 'c'.\n",
        "  --name NAME   Everything except: values are: a, b and c.\n",
        "  --name NAME   Forbidden values: a, b and c.\n",
        "  --name NAME   Pre-defined names are 'one', 'two' and 'three'.\n",
    ],
)
def test_what_only_looks_like_choices_is_a_string(text: str) -> None:
    schema: dict[str, Any] = argument(read(text), "name").schema

    assert (schema["type"], schema.get("enum")) == ("string", None)

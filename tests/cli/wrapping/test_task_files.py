"""`mcpgreen wrap` on Makefiles, justfiles and package.json: a tool for each target, recipe and script."""

from __future__ import annotations

import json
import os
import subprocess
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.cli.wrapping.justfiles import recipes_in
from mcpgreen.cli.wrapping.makefiles import targets_in
from mcpgreen.cli.wrapping.task_files import scripts_in
from mcpgreen.errors import ProjectError
from tests.cli.wrapping.test_wrap import call, text_of, validated, wrap
from tests.support.prerequisites import require_program
from tests.support.project import ProjectBuilder

MAKEFILE = """\
NAME ?= world
LOUD ?= # how loud
SECRET := $(shell touch evil)
OUT = $(shell touch evil2)

.PHONY: greet all clean lib/build

all: greet

greet: build.log ## Greet somebody
	@echo "Hello $(NAME)"

# Remove what was built,
# all of it.
clean:
	@rm -f build.log && echo clean

lib/build:
	@true

fail:
	@echo bad >&2; exit 3

build.log: main.c
	@touch $@

main.c:
	@touch $@

%.o: %.c
	cc $<

$(OUT)/x:
	true

define TEXT
inner: not a target
endef

greet: EXTRA = 1
double:: ; @echo $(LOUD)
"""

JUSTFILE = """\
set shell := ["bash", "-c"]
version := "1"
alias b := build

# Build it
build target='all' *flags:
    echo {{target}} {{flags}}

# Not this one
[private]
hidden:
    true

_also_hidden:
    true

[doc('Send it away')]
@send +names: build
    echo {{names}}

greet name greeting="a:b":
    echo {{greeting}} {{name}}
"""

PACKAGE = {
    "scripts": {
        "build": "node build.js",
        "prebuild": "rm -rf dist",
        "test:unit": "node --test",
        "//lint": "Look for mistakes",
        "lint": "eslint .",
        "-x": "evil",
        "odd": 5,
    },
    "scripts-info": {"build": "Build everything"},
}


@pytest.fixture
def made(project: ProjectBuilder) -> ProjectBuilder:
    require_program("make")
    project.write("Makefile", MAKEFILE)
    done = wrap(project, "--makefile", "Makefile")
    assert done.returncode == 0, done.stderr
    return project


def described(project: ProjectBuilder, name: str) -> dict[str, Any]:
    return json.loads(project.read(f"tools/{name}.meta.json"))  # type: ignore[no-any-return]


def test_targets_are_words_phony_or_documented(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE, encoding="utf-8")

    tasks = {task.name: task for task in targets_in(str(tmp_path / "Makefile"))}

    assert list(tasks) == ["all", "greet", "clean", "lib/build", "fail", "double"]
    assert tasks["greet"].text == "Greet somebody"
    assert tasks["clean"].text == "Remove what was built, all of it."
    assert [(each.name, each.text) for each in tasks["greet"].parameters] == [("NAME", "world by default.")]
    assert [(each.name, each.text) for each in tasks["double"].parameters] == [("LOUD", "how loud")]


# Recipes in which X is a word for a program that runs nothing, or for a script of the project.
HARMLESS = """\
echo $(X)
@echo "Hello $(X)"
-@echo '$(X)'
+echo ${X}
echo a$(X)b "c $(X) d"
echo \\" $(X) # say it
printf '%s' "$(X)" > /dev/null 2>&1
A=1 B=2 ./deploy.sh --to $(X)
./deploy.sh --to=$(X) --quiet
scripts/deploy.sh $(X) >&2
python3 tool.py $(X)
node build.js --name $(X)
sh ./install.sh $(X)
cd sub && ./deploy.sh $(X)
mkdir -p out; rm -f $@ $(@D); cat list | grep -v a; echo $(X)
if [ "$(X)" = y ]; then echo $(X); else echo no; fi
test -n "$(X)" || echo none
test -n "$(X)" || (echo none; exit 1)
[ "$(X)" ] || { echo none; exit 1; }
(cd sub; ./deploy.sh $(X))
echo $(X) | tr a b | wc -l
grep -e a Makefile && echo $(X) || true
head -n 1 Makefile | sha256sum; basename $(X)
echo $(NAME)/$(X) $(CURDIR)
"""
# In these it is the program, or a word that another program runs, or any file to delete, write or show, or it cannot be
# told.
HARMFUL = """\
rm -rf $(X)
rm -rf $(X)/*
rm -f build/$(X)
rmdir $(X)
mkdir -p $(X)
touch $(X)
cat $(X)
head -n 1 $(X) | sha256sum
grep root $(X)
grep -e $(X) Makefile
diff $(X) Makefile
ls $(X)
date $(X)
echo "$${X}"
echo $$X
echo a &> log $(X)
*.sh $(X)
~/bin/*/x $(X)
[a-z] $(X)
$(X)
$X
${X} file
@$(X) file
-@ $(X)
+$(X)
"$(X)" file
'$(X)'
./$(X)
bin/$(X).sh
$(Q)$(X)
$(Q)$(PYTHON) $(X)
$(Q)echo $(X)
$(UNKNOWN) $(X)
echo $(SEP) $(X)
echo $(DASH)$(X)
cd here && $(X)
cd $(X) && ./run.sh
true; $(X)
true | $(X)
true || $(X)
true & $(X)
A=1 $(X)
A=$(X) ./run.sh
PATH=$(X) ls
if $(X); then true; fi
if true; then $(X); fi
if true; then true; else $(X); fi
! $(X)
while $(X); do true; done
until $(X); do true; done
for x in a b; do $(X) $$x; done
for x in $(X); do $$x; done
case a in a) $(X);; esac
{ $(X); }
(cd sub; $(X))
($(X))
f() { $(X); }; f
f() { echo $(X); }; f
A=(echo $(X))
echo{ $(X)
echo $$(info a) $(X)
sudo $(X)
sudo -u me $(X)
env A=1 $(X)
/usr/bin/env $(X)
nice -n 5 $(X)
nohup $(X) &
start-stop-daemon --start $(X)
env-cmd -f .env $(X)
xdg-open $(X)
time $(X)
timeout 5 $(X)
timeout -k 1 5 $(X)
exec $(X)
eval $(X)
eval "$(X)"
command $(X)
xargs $(X) < list
ls | xargs -n 1 $(X)
echo $(X) | sh
echo "$(X)" | bash -s
cat list | while read x; do $(X) $$x; done
sh -c "$(X)"
sh -c '$(X)'
bash -lc "$(X)"
bash $(X)
. $(X)
source $(X)
python3 $(X)
python3 -m $(X)
python3 -c "import $(X)"
node $(X)
node -e "$(X)"
perl -e '$(X)'
awk '$(X)' file
sed $(X) file
find . -exec $(X) {} +
find . -name '*' -exec $(X) ;
git -c $(X) status
git -c core.pager=$(X) log
git --exec-path=$(X) log
tar -cf a.tar --to-command=$(X) b
tar -I $(X) -xf a.tar
tar -x$(X) a.tar
rsync -e $(X) a b
ssh -o ProxyCommand=$(X) host
ssh host $(X)
make -f $(X)
$(MAKE) $(X)
docker run $(X)
npx $(X)
npm run $(X)
go run $(X)
unknown-wrapper timeout 5 $(X)
ls -$(X)
ls --$(X)=a
export $(X)
set -- $(X); $$1
trap $(X) EXIT
alias ls=$(X)
`$(X)`
echo `$(X)`
echo $$($(X))
echo "$$($(X))"
echo $(shell $(X))
echo '$(shell $(X))'
echo $(call run,$(X))
echo $($(X))
echo $(X:.c=.o)
echo $(value X)
echo $$(X)
$$X
"$${X}" file
echo "$${X:-ls}"; $${X:-ls}
cat <<< $(X)
diff <($(X)) a
cat > $(X)
echo "$(X)
git -C $(X) status
git tag $(X)
unknown-program $(X)
setarch x86_64 $(X)
linux64 $(X)
choom -n 0 $(X)
chronic $(X)
ccache $(X)
distcc $(X)
tini $(X)
mpirun $(X)
pkexec $(X)
eatmydata $(X)
cgexec -g cpu:a $(X)
/lib64/ld-linux-x86-64.so.2 $(X)
ip netns exec foo $(X)
.venv/bin/python $(X)
venv/bin/run.sh $(X)
./node_modules/.bin/ts-node $(X)
node node_modules/c8/bin/c8.js $(X)
./bin/timeout 5 $(X)
/usr/lib/wrapper.sh $(X)
../wrapper.sh $(X)
wrapper.sh $(X)
cd /usr/lib && ./wrapper.sh $(X)
cd node_modules/x && ./wrapper.sh $(X)
cd venv && ./wrapper.sh $(X)
cd .. && ./wrapper.sh $(X)
cd / && ./wrapper.sh $(X)
cd && ./wrapper.sh $(X)
python3 -X dev $(X)
node --require ./a.js $(X)
scp -S $(X) a:b c
sftp -S $(X) a
zip o.zip Makefile -T -TT $(X)
wget --use-askpass=$(X) http://x
rsync --rsync-path=$(X) a: b
sort --compress-program=$(X) -S 1 Makefile
sort -o ./b $(X) && ./b
uniq $(X) ./b
jq $(X) Makefile
curl --output $(X) https://example.com
cp $(X) ./b && ./b
cp $< $(X)
mv $(X) b.sh
install -m 755 $(X) ./b; ./b
ln -sf $(X) ./b && ./b
dd if=$(X) of=b.sh
echo $(X) > f.sh; ./f.sh
echo $(X) >f.sh
echo $(X) >> f.sh
echo $(X) >/dev/null.sh
echo $(X) >&f.sh
echo $(X) | tee f.sh; . ./f.sh
echo $(X) | ./b
echo $(X); ./b
echo $(X); $$_
echo $(X); "$$_"
echo $(X); $${_}
: $(X); $$_
printf -v P %s $(X); $$P
printf -v PATH %s $(X); ls
printf \\-v PATH %s $(X); ls
printf ''-v PATH %s $(X); ls
printf {-v,PATH} %s $(X); ls
test -x $(X) && eval "$$0"
echo $(X); !$$
echo $(X); !!
echo $$HOME $(X)
P=X; $${!P}
P=$(N); $${!P}
eval "$$$(N)"
$$$(N)
"$${$(N)}"
`printenv $(N)`
$($(N))
$(${N})
$($N)
$($(N):a=b)
$(value $(N))
$(call $(N))
$(eval Y = $$($(N)))
$(foreach name,X,$($(name)))
"""
PREAMBLE = "X ?= harmless\nN = X\nNAME := plain\nQ = @\nPYTHON ?= python3\nSEP = ;\nDASH := -\n\n"
OBEYED = "SHELL MAKEFLAGS GNUMAKEFLAGS MAKEFILES MAKE PATH VPATH CC CFLAGS F77 OBJC TARGET_ARCH LDLIBS HOME"


def parameters_of(path: Path, text: str) -> list[list[str]]:
    path.write_text(text, encoding="utf-8")
    return [[each.name for each in task.parameters] for task in targets_in(str(path))]


def is_offered(path: Path, recipe: str) -> bool:
    return any(parameters_of(path, f"{PREAMBLE}build:\n\t{recipe}\n"))


@pytest.mark.parametrize("recipe", HARMLESS.splitlines())
def test_a_word_for_a_program_is_an_argument(tmp_path: Path, recipe: str) -> None:
    assert parameters_of(tmp_path / "Makefile", f"{PREAMBLE}build: ; {recipe}\n") == [["X"]]
    assert parameters_of(tmp_path / "Makefile", f"{PREAMBLE}build:\n\t{recipe}\n") == [["X"]]


@pytest.mark.parametrize("recipe", HARMFUL.splitlines())
def test_what_a_target_runs_is_no_argument(tmp_path: Path, recipe: str) -> None:
    """A client could have chosen the program: CC=/tmp/evil has nothing in it that a shell would read."""
    for text in (f"build:\n\t{recipe}\n", f"build:\n\techo $(X)\n\t{recipe}\n", f"a:\n\techo $(X)\nb: ; {recipe}\n"):
        assert not any(parameters_of(tmp_path / "Makefile", PREAMBLE + text)), text


@pytest.mark.parametrize(
    "recipe", ["# a \\\n\t$(X)", "false\\\n\tA=1 $(X)", "echo \\\\\n\t$(X)", "echo\\\n\t$(X)", "timeout \\\n\t5 $(X)"]
)
def test_a_line_that_goes_on_is_read_as_the_shell_reads_it(tmp_path: Path, recipe: str) -> None:
    assert not any(parameters_of(tmp_path / "Makefile", f"{PREAMBLE}build:\n\techo $(X)\n\t{recipe}\n"))
    assert parameters_of(tmp_path / "Makefile", f"{PREAMBLE}build:\n\techo \\\n\t  a \\\n\t  $(X)\n") == [["X"]]


@pytest.mark.parametrize(
    "text",
    [
        "CMD = $(X) file",
        "CMD := $(shell $(X))",
        "CMD != $(X)",
        "export CMD = $X",
        "define CMD\n$(X)\nendef",
        "define CMD =\n$(call f,X)\nendef",
        "ifeq ($(X),a)\nendif",
        "$(eval $(X))",
        "$(X): ; true",
        "other: $(X)\n\ttrue",
        "other: CMD = $(X)",
        "\tCMD = $(X)",
        "CMD = $($(N))",
        "CMD := $(shell $$$(N))",
        "D = $$\nother:\n\t$(D)$(N)",
        "other: ; echo '##'; $(X)",
        "other:\n\ttrue\noverride define CMD\n\techo $(X)\nendef",
        "CMD = $(X$(NONE))",
        "define CMD\n# $($(N))\nendef",
        "f = $($(1))",
        ".SECONDEXPANSION:",
        "SHELL := /bin/csh",
        "include other.mk",
        "-include .env",
        "sinclude a.mk",
        ".ONESHELL:",
        ".RECIPEPREFIX = >",
        "SHELL := python3",
        "SHELL = /usr/bin/env perl",
        "other: SHELL = python3",
        "other:SHELL=python3",
        "other:\n\t$(MAKE) -C sub",
        "other:\n\tcd sub && make",
        "other:\n\ttimeout 5 make -C sub",
        "other:\n\tbash -c 'make -C sub'",
        "other:\n\techo 'make' | sh",
        'other:\n\techo "$$(make -s version)"',
        "other:\n\techo $(shell make -s version)",
        "other:\n\t# a \\\n\tmake",
    ],
)
def test_what_is_used_elsewhere_is_no_argument(tmp_path: Path, text: str) -> None:
    build = "build:\n\techo $(X)\n"
    assert not any(parameters_of(tmp_path / "Makefile", f"{PREAMBLE}{text}\n{build}"))
    assert not any(parameters_of(tmp_path / "Makefile", f"{PREAMBLE}{build}\n{text}\n")) or text.startswith("\t")


def test_what_harms_nobody_takes_no_argument_away(tmp_path: Path) -> None:
    text = "SHELL := /bin/bash\n.SHELLFLAGS := -eu -c\nexport OTHER := a\nhelp:\n\t@echo 'Usage: make build X=a'\n"
    text += "FILES := $(wildcard $(NAME)/*.c)\nOBJECTS = $(FILES:%.c=$(NAME)/%.o)\nf = $(1)\nG = $(call f,$(FILES))\n"
    text += "other:\n\tdocker build $(FILES) .\n\tfor f in *.c; do cc $$f > $${f%.c}; done\n"
    text += "\tgit commit -m 'make it' # make it\n\t$(error Run make build)\n\ttest -f a || echo Run make; false\n"
    text += "unexport X\nexport\nbuild: X = b\n# $(X) export X\nbuild: ## export X\n\techo $(X)\n\nifdef X\nendif\n"
    assert parameters_of(tmp_path / "Makefile", PREAMBLE + text) == [[], [], ["X"]]


@pytest.mark.parametrize(
    ("text", "given", "left"),
    [
        ("a:\n\t./a.sh $(TO)", {"TO": True}, False),
        ("a:\n\t./a.sh $(ARGS)", {"ARGS": False}, False),
        ("a:\nifndef TO\n\t$(error TO is not set)\nendif\n\t./a.sh $(TO)", {"TO": True}, False),
        ("a:\n\tgit tag $(TO)", {}, True),
        ("a:\n\t./a.sh $(TO)\nb:\n\tmake c", {}, True),
        ("a:\n\tpytest $(ARGS) $(DESTDIR) $(V)", {}, False),
        ("a:\n\tgit tag $(TO)\n-include .env", {}, False),
        ("a:\n\tcc $(TO) $(FROM) $(X) $(HOME) $(API_TOKEN)\nTO = a\ndefine FROM\nendef\nexport X", {}, False),
        ("a:\n\techo $$TO $(foreach each,a b,rm $(each))", {}, False),
    ],
)
def test_a_variable_without_a_value_is_needed(tmp_path: Path, text: str, given: dict[str, bool], left: bool) -> None:
    (tmp_path / "Makefile").write_text(f"{text}\n", encoding="utf-8")
    task = targets_in(str(tmp_path / "Makefile"))[0]
    assert ({each.name: each.is_required for each in task.parameters}, task.needs_refused) == (given, left)


DESTRUCTIVE = [
    "rm -f a",
    "cd a && git push",
    "terraform apply",
    "sh -c 'rm a'",
    "(npm publish)",
    "true | kubectl delete",
]
OTHERS = ["echo rm a", "git log 'git push'", "cargo build --release", "docker run --rm a", "cat rm.txt # rm"]


@pytest.mark.parametrize("name", ["clean", "docker-push", "db:drop", "Release", "uninstall_all", "x", "preview"])
def test_what_deletes_or_publishes_is_said_to_be_destructive(tmp_path: Path, name: str) -> None:
    for line in (*DESTRUCTIVE, *OTHERS):
        scripts = {"scripts": {name: "node a.js", f"post{name}": line}}
        just = f"{name.replace(':', '-')}:\n    @{line}\n"
        texts = {targets_in: f"{name}:\n\t@{line}\n", recipes_in: just, scripts_in: json.dumps(scripts)}
        for read, text in texts.items():
            (tmp_path / "file").write_text(text, encoding="utf-8")
            expected = name not in ("x", "preview") or line in DESTRUCTIVE
            assert [task.is_destructive for task in read(str(tmp_path / "file"))] == [expected], text


def test_no_value_is_ever_run(tmp_path: Path) -> None:
    """make is asked, with a program as the value of every argument that `wrap` finds in the tables."""
    require_program("make")
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n", encoding="utf-8")
    program.chmod(0o755)
    recipes = [recipe for recipe in (HARMLESS + HARMFUL).splitlines() if is_offered(tmp_path / "Makefile", recipe)]
    assert len(recipes) == len(HARMLESS.splitlines())
    rules = "".join(f"t{number}: ; {recipe}\n" for number, recipe in enumerate(recipes))
    (tmp_path / "Makefile").write_text(f"SHELL := /bin/bash\n{PREAMBLE}{rules}", encoding="utf-8")
    names = [f"t{number}" for number in range(len(recipes))]
    for script in ("deploy.sh", "scripts/deploy.sh", "sub/deploy.sh", "install.sh", "tool.py", "build.js"):
        (tmp_path / script).parent.mkdir(exist_ok=True)
        (tmp_path / script).write_text("", encoding="utf-8")
        (tmp_path / script).chmod(0o755)
    (tmp_path / "bin").mkdir()
    for name in ("mkdir", "node", "python3", "rm"):
        (tmp_path / "bin" / name).symlink_to("/bin/true")
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}

    for value in (str(program), "./evil"):
        subprocess.run(["make", "-k", f"X={value}", *names], cwd=tmp_path, env=env, capture_output=True, check=False)

    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("r a:\n    echo {{a}} a", ["a"]),
        ("r a=`date` b='y':\n    echo {{a}} {{b}}", ["a", "b"]),
        ("set export := false\n[doc('a script for a')]\nr a='x':\n    echo {{a}}", ["a"]),
        ("[script('python3')]\nother:\n    print()\n\n[linux]\nr a='x':\n    echo {{a}}", ["a"]),
        ("r a='x':\n    echo {{a}} $a", []),
        ("r a='x':\n    cat {{a}}", []),
        ("r a='x':\n    rm -rf build/{{a}}", []),
        ("r $FLASK_APP='x':\n    echo {{FLASK_APP}}\n    flask routes", []),
        ("r +$a='x':\n    echo {{a}}", []),
        ("set export\nr a='x':\n    echo {{a}}", []),
        ("set export := true\nr a='x':\n    echo {{a}}", []),
        ("import 'other.just'\nr a='x':\n    echo {{a}}", []),
        ("import? 'other.just'\nr a='x':\n    echo {{a}}", []),
        ("set shell := [\n  'python3', '-c']\nr a='x':\n    echo {{a}}", []),
        ("set shell := [interpreter, '-c']\nr a='x':\n    echo {{a}}", []),
        ("[working-directory(a)]\nr a='x':\n    ./run.sh", []),
        ("[working-directory(f'{{a}}')]\nr a='x':\n    ./run.sh", []),
        ("[script(\n'python3'\n)]\nr a='x':\n    echo {{a}}", []),
        ("r a='x': (other f'{{a}}')\n    echo {{a}}", []),
        ("r a='x': (other\na)\n    {{a}}", []),
        ("r a='x': (other ')\n' a)\n    {{a}}", []),
        ("r a b='x':\n    @./x.sh --to={{ a }} '{{b}}'", ["a", "b"]),
        ('r *a:\n    ./x.sh "$@"', ["a"]),
        ("v := 'plain'\nr a:\n    echo {{v}}/{{a}}", ["a"]),
        ("set shell := ['bash', '-uc']\nr a:\n    echo {{a}}", ["a"]),
        ("r a='x' b='y':\n    echo {{a}}\n    {{b}}", ["a"]),
        ("r a='x' b='y':\n    echo {{a}}; {{b}}", []),
        ("r a='x' b='y':\n    echo {{b}}; {{a}}", []),
        ("r a='x':\n    {{a}} file", []),
        ("r a='x':\n    sh -c '{{a}}'", []),
        ("r a='x':\n    timeout 5 {{a}}", []),
        ("r a='x':\n    setarch x86_64 {{a}}", []),
        ("r a='x':\n    @echo {{a}}; $_", []),
        ("r a='x':\n    echo {{a}} > f.sh", []),
        ("v := 'a'\nr $a='x':\n    echo {{a}}\n    P={{v}}; ${!P}", []),
        ("v := 'a'\nr $a='x':\n    echo {{a}}\n    ${{v}}", []),
        ("r a='x':\n    echo {{a}}\n    ${1:-ls}", []),
        ("r a='x':\n    echo {{a}}\n    for p; do $p; done", []),
        ("r a='x':\n    $a file", []),
        ("r a='x':\n    \"${a}\" file", []),
        ('r *a:\n    "$@"', []),
        ("r a='x':\n    $1", []),
        ("r a='x':\n    echo {{uppercase(a)}}", []),
        ("r a='x':\n    echo {{ if a == 'b' { 'c' } else { a } }}", []),
        ("r a='x':\n    echo {{v}} {{a}}", []),
        ("v := 'b'\nv := '; sh'\nr a='x':\n    echo {{v}} {{a}}", []),
        ("v := `date`\nr a='x':\n    echo {{v}} {{a}}", []),
        ("r a='x':\n    #!/usr/bin/env python3\n    print('{{a}}')", []),
        ("[script('python3')]\nr a='x':\n    print('{{a}}')", []),
        ("set shell := ['python3', '-c']\nr a='x':\n    print('{{a}}')", []),
        ("r a='x': (other a)\n    echo {{a}}", []),
        ("r a='x' b=a:\n    echo {{a}} {{b}}", []),
        ("r $PATH='x':\n    echo hello", []),
        ("r a='x':\n    echo \\\n    && {{a}}", []),
        ("r a='x':\n    echo {{a}}\n\n    {{a}}", []),
    ],
)
def test_a_parameter_of_a_recipe_is_a_word_for_a_program(tmp_path: Path, text: str, given: list[str]) -> None:
    (tmp_path / "justfile").write_text(f"{text}\n", encoding="utf-8")
    task = recipes_in(str(tmp_path / "justfile"))[-1]
    assert [each.name for each in task.parameters] == given


@pytest.mark.parametrize(
    ("first", "second", "given"),
    [
        ("r a='x':\n    echo {{a}}", "r a='y':\n    ./r.sh {{a}}", ["a"]),
        ("r a='x':\n    echo {{a}}", "r a='x':\n    {{a}}", []),
        ("r a='x':\n    echo {{a}}", "[private]\nr a='x':\n    {{a}}", []),
        ("r a='x':\n    echo {{a}}", "[script]\nr a='x':\n    echo {{a}}", []),
        ("r a='x':\n    echo {{a}}", "r $a='x':\n    env", []),
        ("r a='x':\n    echo {{a}}", "r a=('x' + f('y')):\n    {{a}}", []),
        ("r a='x' b='y':\n    echo {{a}}", "r b='x' a='y':\n    {{b}}", []),
        ("r *a:\n    echo {{a}}", "r:\n    echo", []),  # just would run the words as recipes
    ],
)
def test_every_definition_of_a_recipe_counts(tmp_path: Path, first: str, second: str, given: list[str]) -> None:
    """just chooses one of them: by the system, or the last."""
    for one, other in ((first, second), (second, first)):
        text = f"set allow-duplicate-recipes\n[macos]\n{one}\n\n[linux]\n{other}\n"
        (tmp_path / "justfile").write_text(text, encoding="utf-8")
        for task in recipes_in(str(tmp_path / "justfile")):
            assert [each.name for each in task.parameters] == given


def test_a_recipe_that_needs_what_no_client_may_choose_is_no_tool(project: ProjectBuilder) -> None:
    project.write("justfile", "run program:\n    {{program}}\n\ngreet:\n    echo hi\n")

    done = wrap(project, "--justfile", "justfile")

    assert [Path(line).name for line in done.stdout.splitlines()] == ["just-greet.py", "just-greet.meta.json"]
    assert "choose a program or file: program of run.\n" in done.stderr
    assert "write a tool that runs the task, with an enum or a pattern" in done.stderr
    assert "These tasks are left out, because they need such an argument: run.\n" in done.stderr


# Scripts in a package.json, with two spaces between them.
TAKING_WORDS = """\
node build.js  NODE_ENV=production node ./scripts/serve.mjs --quiet  echo built  tsx tool.ts
rm -rf dist && node build.js
"""
TAKING_NONE = """\
rm -rf dist  cat README.md  node build.js && rm -rf dist  mkdir -p  grep -r TODO  eslint .
NODE_ENV=production webpack --mode production  tsc && cp -r a b  setarch x86_64  c8  nyc  ts-node-dev
babel-node  electron  shx  zx  per-env  start-server-and-test  ./node_modules/.bin/ts-node  node  node --test
cross-env A=1 node  npm run build --  sh -c  bash  env  timeout 5  tsc &&  tsc;  tsc |  A=1  git -c
tar --to-command  cat >  echo `  echo $(  echo '  $npm_execpath  npx  concurrently a b  echo "$npm_version"
"""


def scripts_of(table: str) -> list[str]:
    return [script for line in table.splitlines() for script in line.split("  ")]


@pytest.mark.parametrize("script", [*scripts_of(TAKING_WORDS), *scripts_of(TAKING_NONE), "a\nb", ""])
def test_words_are_added_to_a_script_only_behind_a_program(tmp_path: Path, script: str) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"scripts": {"x": script}}), encoding="utf-8")
    (task,) = scripts_in(str(tmp_path / "package.json"))
    assert [each.name for each in task.parameters] == ["arguments"] * (script in scripts_of(TAKING_WORDS))


@pytest.mark.parametrize("name", OBEYED.split())
def test_what_make_itself_obeys_is_no_argument(tmp_path: Path, name: str) -> None:
    for text in (f"{name} ?= x\n\nbuild:\n\techo $({name})\n", f"build:\n\techo $({name})\n"):
        assert parameters_of(tmp_path / "Makefile", text) == [[]]


IN_THE_ENVIRONMENT = """\
ZDOTDIR FLASK_APP http_proxy DJANGO_SETTINGS_MODULE COMPOSE_FILE BUNDLE_GEMFILE GOPROXY GOTOOLCHAIN GOCACHEPROG GOENV
LD_PRELOAD PYTHONSTARTUP BASH_ENV ENV IFS PAGER HOOK
"""


def test_no_program_finds_a_value_in_its_environment(project: ProjectBuilder) -> None:
    """Programs obey more variables than a list can hold, and a script may run another make."""
    require_program("make")
    names = IN_THE_ENVIRONMENT.split()
    text = "".join(f"{name} ?= none\n" for name in names)
    project.write("inner.mk", text + "all: ; @env; echo inner $(HOOK)\n")
    project.program("inner.sh", "make -f inner.mk")
    text += "export\n.EXPORT_ALL_VARIABLES:\nMAKEFLAGS += --no-print-directory\nneeded: ; @env; ./inner.sh\n"
    project.write("Makefile", text + "show: needed\n" + "".join(f"\t@echo $({name})\n" for name in names))
    assert wrap(project, "--makefile", "Makefile").returncode == 0

    shown = text_of(call(project, "make-show", **dict.fromkeys(names, "chosen"))).splitlines()

    assert shown[-len(names) :] == ["chosen"] * len(names)
    others = [line for line in shown[: -len(names)] if not line.startswith("MCP_")]  # the call itself
    assert "inner none" in others
    assert [line for line in others if "chosen" in line] == []


def test_a_value_is_not_run_by_what_looks_it_up(project: ProjectBuilder) -> None:
    require_program("make")
    code = "import os; os.system(os.environ.get('HOOK', 'true'))"
    project.write("Makefile", f'HOOK ?= none\n\nhook:\n\t@echo $(HOOK)\n\t@python3 -c "{code}"\n')
    project.program("evil.sh", "touch was-run")
    assert wrap(project, "--makefile", "Makefile").returncode == 0

    assert text_of(call(project, "make-hook", HOOK="./evil.sh")) == "./evil.sh\n"
    assert not (project.root / "was-run").exists()


@pytest.mark.parametrize(
    "text",
    [
        "export X",
        "export A X B",
        "export X = a",
        "  export\tX",
        "override export X = a",
        "other: export X = a",
        "other:export X = a",
        "export define X\na\nendef",
        "export $(NAMES)",
        "export MAKEFLAGS",
    ],
)
def test_what_the_file_exports_is_no_argument(tmp_path: Path, text: str) -> None:
    assert parameters_of(tmp_path / "Makefile", f"{PREAMBLE}{text}\nbuild: ; echo $(X)\n")[-1] == []
    assert parameters_of(tmp_path / "Makefile", f"{PREAMBLE}build: ; echo $(X)\n{text}\n")[0] == []


@pytest.mark.parametrize(
    "line", ["other: A = 1", "vpath %.c a", "define A\nendef", "undefine A", "export A", "iffy = 1", "$(info)"]
)
def test_a_tab_is_no_recipe_where_no_rule_goes_on(tmp_path: Path, line: str) -> None:
    """make takes what follows for a line of its own, and exports X."""
    text = f"{PREAMBLE}build: ; echo $(X)\n{line}\n\texport X\n"
    assert parameters_of(tmp_path / "Makefile", text) == [[]]


def test_lines_are_kept_once_for_however_many_targets(tmp_path: Path) -> None:
    """A megabyte of them became gigabytes, and minutes."""
    path = tmp_path / "Makefile"
    names = " ".join(f"a{number}" for number in range(110))
    path.write_text(f"A ?= 1\n{names}:\n" + "\techo $(A)\n" * 20_000)

    tracemalloc.start()
    try:
        tasks = targets_in(str(path))
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(tasks) == 110
    assert most_bytes < 10_000_000


HOSTILE = {
    "spaces": "a" + " " * 1_000_000,
    "lines of spaces": ("a" + " " * 5000 + "x:\n") * 200,
    "references": "A ?= 1\nb:\n\t" + "A=;$(A)" * 140_000,
    "colons": ":" * 1_000_000,
    "comments": "a:\n\tmake " + "# " * 400_000 + "\\\n",
    "targets": "".join(f"t{at}:\n\techo $(V{at})\n" for at in range(30_000)),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_makefile_takes_little_time(tmp_path: Path, text: str) -> None:
    began = time.process_time()
    parameters_of(tmp_path / "Makefile", text)
    assert time.process_time() - began < 20


def test_recipes_have_their_parameters_and_comments(tmp_path: Path) -> None:
    (tmp_path / "justfile").write_text(JUSTFILE, encoding="utf-8")

    tasks = {task.name: task for task in recipes_in(str(tmp_path / "justfile"))}

    assert {name: task.text for name, task in tasks.items()} == {
        "build": "Build it",
        "send": "Send it away",
        "greet": "",
    }
    parameters = {
        name: [(each.name, each.is_required, each.is_repeated) for each in task.parameters]
        for name, task in tasks.items()
    }
    assert parameters == {
        "build": [("target", False, False), ("flags", False, True)],
        "send": [("names", True, True)],
        "greet": [("name", True, False), ("greeting", False, False)],
    }


def test_scripts_have_what_is_said_about_them(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(json.dumps(PACKAGE), encoding="utf-8")

    tasks = {task.name: task.text for task in scripts_in(str(tmp_path / "package.json"))}

    assert tasks == {
        "build": "Build everything",
        "test:unit": "Run the script test:unit: node --test",
        "lint": "Look for mistakes",
    }


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"scripts": []}'])
def test_a_package_without_scripts_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "package.json").write_text(text, encoding="utf-8")

    with pytest.raises(ProjectError):
        scripts_in(str(tmp_path / "package.json"))


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        ("a:\n\techo $(A)\nb:\n\t@rm -rf $(A)\n", ["A (@rm -rf $(A))"]),
        ("export A\na:\n\techo $(A)\n", ["A (export A)"]),
        ("include other.mk\na:\n\techo $(A)\n", ["A (include other.mk)"]),
        ("a:\n\techo $(A)\nb:\n\techo $($(X))\n", ["A (echo $($(X)))"]),
        ("a:\n\ttest $(if $(ONLY),-k $(ONLY))\n", ["ONLY (test $(if $(ONLY),-k $(ONLY)))"]),
        ("a: b.txt\n\tls\nb.txt:\n\techo $(A) > b.txt\n", ["A (it writes to a file: echo $(A) > b.txt)"]),
        ("A ?= $(shell date)\na:\n\techo $(A)\n", ["A (a computed value: A ?= $(shell date))"]),
        ("a:\n\tcat $(T)\n", ["T (cat $(T))"]),
        ("CC ?= cc\na:\n\techo $(CC)\n", ["CC (make uses it)"]),
    ],
)
def test_the_line_that_makes_a_variable_unsafe_is_named(tmp_path: Path, lines: str, refused: list[str]) -> None:
    (tmp_path / "Makefile").write_text(f"A ?= 1\n{lines}", encoding="utf-8")

    tasks = targets_in(str(tmp_path / "Makefile"))

    assert list(tasks[0].refused) == refused
    assert tasks[0].parameters == ()


def test_without_a_comment_the_description_is_what_it_runs(made: ProjectBuilder) -> None:
    assert described(made, "make-all")["description"] == "Run make all."
    assert described(made, "make-clean")["annotations"] == {"destructiveHint": True}
    assert described(made, "make-clean")["description"] == "Remove what was built, all of it. (Runs make clean.)"


def test_a_makefile_is_never_evaluated(made: ProjectBuilder) -> None:
    assert not list(made.root.glob("evil*"))


def test_a_target_is_run(made: ProjectBuilder) -> None:
    assert text_of(call(made, "make-greet")) == "Hello world\n"
    assert text_of(call(made, "make-greet", NAME="Ada")) == "Hello Ada\n"


def test_a_target_that_fails_says_why(made: ProjectBuilder) -> None:
    result = call(made, "make-fail")

    assert result["isError"]
    assert text_of(result).startswith("make failed with exit status 2.\nbad\n")


@pytest.mark.parametrize(
    "value", ["$(shell touch evil3)", "a; touch evil3", "`touch evil3`", "-x", "a b", "$$x", "a\nb", "a\n", "\n"]
)
def test_a_value_that_a_shell_would_read_is_refused(made: ProjectBuilder, value: str) -> None:
    result = call(made, "make-greet", NAME=value)

    assert result["isError"]
    assert "NAME must match the pattern" in text_of(result)
    assert not (made.root / "evil3").exists()


def test_all_that_was_written_is_valid(made: ProjectBuilder) -> None:
    made.write("justfile", JUSTFILE)
    made.write("package.json", json.dumps(PACKAGE))
    assert wrap(made, "--justfile", "justfile").returncode == 0
    assert wrap(made, "--package-json", "package.json").returncode == 0

    assert validated(made)["warnings"] == 0
    assert described(made, "just-greet")["inputSchema"]["required"] == ["name"]
    assert described(made, "npm-test-unit")["description"].startswith("Run the script test:unit: node --test.")


def test_a_file_elsewhere_is_found_by_the_tool(project: ProjectBuilder) -> None:
    require_program("make")
    project.write("sub/rules.mk", "where: ## Say where we are\n\t@pwd\n")

    done = wrap(project, "--makefile", "rules.mk", "--name", "sub", cwd=project.root / "sub")

    assert done.returncode == 0, done.stderr
    assert f"{project.root / 'sub'}\n" in text_of(call(project, "sub-where"))


@pytest.mark.parametrize(
    ("option", "name", "text"),
    [
        ("--makefile", "Makefile", "where: ; @true\n"),
        ("--makefile", "rules.mk", "where: ; @true\n"),
        ("--justfile", "justfile", "where:\n    true\n"),
        ("--package-json", "package.json", '{"scripts": {"where": "true"}}'),
    ],
)
def test_no_place_of_this_machine_is_described(
    project: ProjectBuilder, tmp_path: Path, option: str, name: str, text: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / name).write_text(text, encoding="utf-8")

    assert wrap(project, option, str(elsewhere / name), "--name", "x").returncode == 0

    assert "elsewhere" in described(project, "x-where")["description"]
    assert str(tmp_path) not in project.read("tools/x-where.meta.json")
    assert str(elsewhere) in project.read("tools/x-where.py")


def test_a_recipe_is_run_with_its_words(project: ProjectBuilder) -> None:
    project.program("bin/just", "printf '[%s]' \"$@\"")
    project.write("justfile", JUSTFILE)
    wrap(project, "--justfile", "justfile")

    assert text_of(call(project, "just-greet", name="Ada", greeting="Hi")) == "[greet][Ada][Hi]"
    assert text_of(call(project, "just-send", names=["a", "b"])) == "[send][a][b]"


def test_a_script_is_run_by_npm(project: ProjectBuilder) -> None:
    project.program("bin/npm", "printf '[%s]' \"$@\"")
    project.write("package.json", json.dumps(PACKAGE))
    wrap(project, "--package-json", "package.json")

    assert text_of(call(project, "npm-build")) == "[run][--silent][build]"
    assert text_of(call(project, "npm-build", arguments=["a"])) == "[run][--silent][build][--][a]"


def test_what_exists_is_left_and_what_is_new_is_added(made: ProjectBuilder) -> None:
    before = made.read("tools/make-greet.py")
    made.write("Makefile", MAKEFILE + "\nlater: ; @true\n")

    done = wrap(made, "--makefile", "Makefile")

    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)
    assert done.stderr.endswith("1 tool from Makefile.\n") and "make-greet.py" not in done.stderr
    assert made.read("tools/make-greet.py") == before
    again = wrap(made, "--makefile", "Makefile")
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr.endswith("No new tools from Makefile.\n")


def test_only_chosen_targets_become_tools(project: ProjectBuilder) -> None:
    project.write("Makefile", MAKEFILE)
    done = wrap(project, "--makefile", "Makefile", "--only", "greet")
    assert [Path(line).name for line in done.stdout.splitlines()] == ["make-greet.py", "make-greet.meta.json"]
    assert "Makefile has no nothing" in wrap(project, "--makefile", "Makefile", "--only", "nothing").stderr
    assert "use mcpgreen wrap --makefile Makefile" in wrap(project, "--", "make", "greet").stderr


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--makefile", None, "it cannot be read: No such file or directory"),
        ("--makefile", "# nothing\n", "nothing in it can become a tool"),
        ("--makefile", "a" * 1_100_000, "it is larger than 1048576 bytes"),
        ("--justfile", "\0\1", "nothing in it can become a tool"),
        ("--package-json", "{", "it is not JSON"),
    ],
)
def test_a_file_that_is_none_is_told_of(
    project: ProjectBuilder, option: str, content: str | None, message: str
) -> None:
    if content is not None:
        project.write("file", content)

    done = wrap(project, option, "file")

    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr

"""Faults in forking Python scripts from a running interpreter."""

from __future__ import annotations

from tests.planted_faults.fault import fault

TESTS = "tests/running/warm/test_warm_python.py::"

FAULTS = [
    fault(
        "old-code-of-a-changed-script",
        "mcpgreen/sdk/warm/mcpgreen_warm/spare.py",
        "        if kept is not None and kept.code is not None and kept.signature == signature:",
        "        if kept is not None and kept.code is not None:",
        "tests/running/warm/test_programs.py::test_a_script_that_was_edited_is_the_new_one",
    ),
    fault(
        "old-code-of-a-script-that-has-just-changed",
        "mcpgreen/sdk/warm/mcpgreen_warm/spare.py",
        " and kept.is_fit and kept.signature == signature else None",
        " and kept.is_fit else None",
        "tests/running/warm/test_programs.py::test_a_script_that_was_edited_is_the_new_one",
    ),
    fault(
        "interpreter-of-an-earlier-path",
        "mcpgreen/sdk/warm/mcpgreen_warm/surroundings.py",
        "            if looks_at(path) != looks:",
        "            if False:",
        TESTS + "test_another_interpreter_on_the_path_is_another_helper",
    ),
    fault(
        "warm-against-its-will",
        "mcpgreen/features/prepared_tool.py",
        "        return () if warm else None",
        "        return ()",
        TESTS + "test_a_description_or_the_setting_switches_it_off",
    ),
    fault(
        "spares-taken-for-strays",
        "mcpgreen/running/processes/strays.py",
        "        elif pid not in self._expected and tag_of(pid) in self._expected_tags:",
        "        elif False:",
        "tests/running/test_strays.py::test_one_that_is_about_to_be_known_is_left_alone",
    ),
    fault(
        "forked-outside-of-a-session",
        "mcpgreen/sdk/warm/mcpgreen_warm/spare.py",
        "            setsid()\n",
        "            pass\n",
        TESTS + "test_every_script_has_a_process_of_its_own_that_is_a_child_of_the_server",
    ),
    fault(
        "stopped-helper-kept",
        "mcpgreen/running/warm/helpers.py",
        "        self._misses += 1\n",
        "",
        TESTS + "test_a_helper_that_is_stopped_delays_a_few_calls_and_is_given_up",
    ),
    fault(
        "forked-script-leaves-files-unwritten",
        "mcpgreen/sdk/warm/mcpgreen_warm/script.py",
        "    return any(_is_telling(each) for each in objects if type(each) in telling)",
        "    return False and any(_is_telling(each) for each in objects if type(each) in telling)",
        "tests/running/warm/test_programs.py::test_a_program_is_the_same_forked_as_started[ends with a __del__]",
    ),
    fault(
        "forked-script-shows-our-frame",
        "mcpgreen/sdk/warm/mcpgreen_warm/script.py",
        "    trace = error.__traceback__.tb_next if error.__traceback__ is not None else None",
        "    trace = error.__traceback__",
        "tests/running/warm/test_programs.py::test_a_program_is_the_same_forked_as_started[raises in a function]",
    ),
    fault(
        "forked-script-has-modules-beside-it-shadowed",
        "mcpgreen/sdk/warm/mcpgreen_warm/preparing/preloading.py",
        "        return not modules.isdisjoint(self._names)",
        "        return False",
        "tests/running/warm/test_programs.py::test_a_program_is_the_same_forked_as_started[shadows json]",
    ),
    fault(
        "python-with-options-is-forked",
        "mcpgreen/running/warm/interpreters.py",
        "    return tuple(words) if len(names) == 1 and",
        "    return tuple(words) if names and",
        "tests/running/warm/test_interpreters.py",
    ),
    fault(
        "forked-scripts-share-a-key",
        "mcpgreen/sdk/warm/mcpgreen_warm/spare.py",
        ".current_process().authkey = os.urandom(AUTHKEY_BYTES)",
        ".current_process()",
        "tests/running/warm/test_programs.py::test_chance_is_another_in_each_run",
    ),
    fault(
        "forked-scripts-share-their-chance",
        "mcpgreen/sdk/warm/mcpgreen_warm/spare.py",
        "            self._seed_chance()\n",
        "            pass\n",
        "tests/running/warm/test_programs.py::test_chance_is_another_in_each_run",
    ),
    fault(
        "nobody-is-told-of-forks",
        "mcpgreen/sdk/warm/mcpgreen_warm/forking.py",
        "self._clone if self._clone and needs_no_word else",
        "self._clone if self._clone else",
        "tests/running/warm/test_programs.py::test_who_wants_to_know_of_forks_is_told",
    ),
    fault(
        "spare-does-not-look-again",
        "mcpgreen/sdk/warm/mcpgreen_warm/spare.py",
        " and monotonic() < helper.look_at:",
        ":",
        "tests/running/warm/test_programs.py::test_a_spare_that_has_waited_looks_again",
    ),
    fault(
        "libraries-that-know-of-forks-are-not-told",
        "mcpgreen/sdk/warm/mcpgreen_warm/forking.py",
        '                if b"atfork" in file.read():',
        "                if False:",
        "tests/running/warm/test_forks.py",
    ),
    fault(
        "child-of-a-forked-script-says-its-last-word",
        "mcpgreen/sdk/warm/mcpgreen_warm/script.py",
        " and getpid() == self._pid and",
        " and",
        TESTS + "test_a_child_of_the_script_that_comes_to_its_end_does_not_end_the_call",
    ),
    fault(
        "exit-functions-of-scripts-run-ahead",
        "mcpgreen/sdk/warm/mcpgreen_warm/rehearsal.py",
        "        if count_of_exit_functions():",
        "        if False:",
        "tests/running/warm/test_programs.py::test_what_happens_at_the_end_happens_at_the_end_of_each_script",
    ),
    fault(
        "forked-script-that-says-it-is-over-is-left",
        "mcpgreen/running/processes/runner.py",
        "            self._in_background(self._end_late, child)",
        "            pass",
        TESTS + "test_who_says_too_early_that_it_is_over_is_ended",
    ),
    fault(
        "last-word-into-a-file-of-the-script",
        "mcpgreen/sdk/warm/mcpgreen_warm/script.py",
        "                if fstat(self._control)[1:3] == self._looks:",
        "                if True:",
        TESTS + "test_a_file_in_the_place_of_the_control_pipe_gets_nothing_but_its_own",
    ),
    fault(
        "environment-of-c-with-a-gap",
        "mcpgreen/sdk/warm/mcpgreen_warm/jobs.py",
        "            self._put_into_c()  # without a gap where a variable was\n",
        "",
        "tests/running/warm/test_programs.py::test_c_has_the_environment_of_the_call_when_the_sdk_is_loaded",
    ),
]

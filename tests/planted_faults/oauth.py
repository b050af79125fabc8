"""Faults in who is let in with a token, and what others are told."""

from __future__ import annotations

from tests.planted_faults.fault import fault

FAULTS = [
    fault(
        "remembered-tokens-keep-old-keys",
        "mcpgreen/transports/http/oauth/resource_server.py",
        "        self._keys.stay_current()\n",
        "",
        "tests/transports/oauth/test_keys.py::test_a_key_that_was_taken_back_is_good_no_more",
    ),
    fault(
        "token-for-anybody",
        "mcpgreen/transports/http/oauth/tokens.py",
        "                audience=self._audiences,\n",
        '                audience=json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))["aud"],\n',
        "tests/transports/oauth/test_tokens.py::test_a_token_is_refused",
    ),
    fault(
        "any-algorithm-will-do",
        "mcpgreen/transports/http/oauth/tokens.py",
        " or algorithm not in self._algorithms:",
        ":",
        "tests/transports/oauth/test_tokens.py::test_an_algorithm_that_is_not_on_the_list",
    ),
    fault(
        "claims-may-occur-twice",
        "mcpgreen/transports/http/oauth/tokens.py",
        "object_pairs_hook=_without_doubles, ",
        "",
        "tests/transports/oauth/test_tokens.py::test_a_claim_that_occurs_twice",
    ),
    fault(
        "critical-extensions-ignored",
        "mcpgreen/transports/http/oauth/tokens.py",
        '        if "crit" in header or "b64" in header:\n',
        "        if False:\n",
        "tests/transports/oauth/test_tokens.py::test_an_extension_that_is_critical_is_not_understood",
    ),
    fault(
        "bound-token-for-everybody",
        "mcpgreen/transports/http/oauth/tokens.py",
        '    if "cnf" in claims:\n',
        "    if False:\n",
        "tests/transports/oauth/test_tokens.py::test_a_token_is_refused",
    ),
    fault(
        "other-kinds-of-jwt",
        "mcpgreen/transports/http/oauth/tokens.py",
        "not in TOKEN_TYPES:",
        "is False:",
        "tests/transports/oauth/test_tokens.py::test_another_kind_of_jwt_is_no_access_token",
    ),
    fault(
        "key-good-for-all-algorithms",
        "mcpgreen/transports/http/oauth/keys.py",
        "        and (named is None or algorithm == named)\n",
        "",
        "tests/transports/oauth/test_tokens.py::test_a_key_is_good_for_its_own_algorithm_alone",
    ),
    fault(
        "flood-of-looks",
        "mcpgreen/transports/http/oauth/keys.py",
        "now - self._has_looked_at >= LOOK_PAUSE_SECS",
        "True",
        "tests/transports/oauth/test_keys.py::test_unknown_keys_are_looked_for_once_in_a_while",
    ),
    fault(
        "look-without-an-end",
        "mcpgreen/transports/http/oauth/keys.py",
        "            with bound:\n",
        "            if bound:\n",
        "tests/transports/oauth/test_keys.py::test_a_bad_answer_costs_little_and_is_told",
    ),
    fault(
        "old-keys-for-ever",
        "mcpgreen/transports/http/oauth/keys.py",
        "            self.generation += 1\n",
        "            pass\n",
        "tests/transports/oauth/test_keys.py::test_a_key_that_was_taken_back_is_good_no_more",
    ),
    fault(
        "issuer-speaks-for-another",
        "mcpgreen/transports/http/oauth/fetching.py",
        '        if metadata.get("issuer") != issuer:',
        "        if False:",
        "tests/transports/oauth/test_keys.py::test_an_issuer_does_not_speak_for_another",
    ),
    fault(
        "documents-of-any-size",
        "mcpgreen/transports/http/oauth/fetching.py",
        "    if len(raw) > MAX_DOCUMENT_BYTES:\n",
        "    if False:\n",
        "tests/transports/oauth/test_keys.py::test_a_bad_answer_costs_little_and_is_told",
    ),
    fault(
        "name-of-the-issuer-not-checked",
        "mcpgreen/transports/http/oauth/fetching.py",
        "    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)\n",
        "    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)\n    context.check_hostname = False\n",
        "tests/transports/oauth/test_keys.py::test_an_issuer_has_to_prove_its_name",
    ),
    fault(
        "challenge-broken-open",
        "mcpgreen/transports/http/oauth/resource_server.py",
        "{_quotable(value)}",
        "{value}",
        "tests/transports/oauth/test_resource_server.py::test_nothing_breaks_out_of_a_challenge",
    ),
    fault(
        "issuer-without-tls",
        "mcpgreen/transports/http/oauth/fetching.py",
        'parts.scheme == "http" and parts.hostname in LOOPBACK',
        'parts.scheme == "http"',
        "tests/transports/oauth/test_resource_server.py::test_what_is_wrong_keeps_the_server_from_starting",
    ),
    fault(
        "half-configured-is-open",
        "mcpgreen/transports/http/oauth/configuration.py",
        '            if getattr(settings, f"http_oauth_{each}"):\n',
        "            if False:\n",
        "tests/transports/oauth/test_resource_server.py::test_what_is_wrong_keeps_the_server_from_starting",
    ),
]

"""Faults in what protects the HTTP transport: heads, bodies, the door, places, and what waits for readers."""

from __future__ import annotations

from tests.planted_faults.fault import fault

HTTP = "mcpgreen/transports/http"
WIRE = f"{HTTP}/wire"
TESTS = "tests/transports/http"

FAULTS = [
    fault(
        "http-length-beside-an-encoding",
        f"{WIRE}/heads.py",
        "    if length is not None:\n",
        '    if length == "":\n',
        f"{TESTS}/test_attacks_framing.py::test_a_body_that_one_of_two_readings_would_find_is_not_looked_for",
    ),
    fault(
        "http-headers-said-twice",
        f"{WIRE}/heads.py",
        "elif name in SINGLE or name.startswith(PARAM):",
        "elif name.startswith(PARAM):",
        f"{TESTS}/test_heads.py::test_what_means_one_thing_is_not_said_twice",
    ),
    fault(
        "http-underscores-are-hyphens",
        f"{WIRE}/heads.py",
        'if "_" in name:',
        'if "_" in value:',
        f"{TESTS}/test_heads.py::test_a_name_with_an_underscore_counts_for_nothing",
    ),
    fault(
        "http-target-with-a-host",
        f"{WIRE}/heads.py",
        'if not target.startswith(b"/"):',
        "if not target:",
        f"{TESTS}/test_attacks_framing.py::test_a_request_line_that_is_none_is_refused",
    ),
    fault(
        "http-chunks-with-extensions",
        f"{WIRE}/bodies.py",
        'CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")',
        'CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}(?:;.*)?")',
        f"{TESTS}/test_bodies.py::test_chunks_are_as_they_should_be_or_refused",
    ),
    fault(
        "http-chunks-that-end-elsewhere",
        f"{WIRE}/bodies.py",
        "elif self._line():",
        'elif self._line() == b"?":',
        f"{TESTS}/test_attacks_framing.py::test_chunked_nonsense_is_refused",
    ),
    fault(
        "http-chunks-without-end",
        f"{WIRE}/bodies.py",
        "if self._read_bytes + self._left_bytes > self._limit_bytes:",
        "if self._left_bytes > self._limit_bytes:",
        f"{TESTS}/test_attacks_framing.py::test_an_endless_body_in_chunks_is_refused_as_soon_as_it_is_too_long",
    ),
    fault(
        "http-tiny-chunks",
        f"{WIRE}/bodies.py",
        "if self._chunks > FREE_CHUNKS + self._read_bytes // BYTES_A_CHUNK:",
        "if self._chunks > self._limit_bytes:",
        f"{TESTS}/test_attacks_framing.py::test_a_body_in_tiny_chunks_is_refused",
    ),
    fault(
        "http-body-nobody-read-is-a-request",
        f"{WIRE}/connection.py",
        "            if self._is_kept and not body.is_at_end:\n",
        "            if not self._is_kept and not body.is_at_end:\n",
        f"{TESTS}/test_attacks_framing.py::test_a_small_body_that_nobody_wanted_is_passed_over",
    ),
    fault(
        "http-headers-that-begin-an-answer",
        f"{WIRE}/connection.py",
        "{_in_one_line(value)}",
        "{value}",
        f"{TESTS}/test_connection.py::test_a_header_is_one_line_whatever_the_application_says",
    ),
    fault(
        "http-slow-bodies-keep-their-place",
        f"{WIRE}/connection.py",
        "        self._server.begin_waiting(self)\n        try:\n            data = self._recv()\n",
        "        try:\n            data = self._recv()\n",
        f"{TESTS}/test_attacks_slow.py::test_slow_bodies_keep_nobody_out",
    ),
    fault(
        "http-readers-that-stop-keep-their-place",
        f"{WIRE}/connection.py",
        "            self._server.begin_waiting(self)\n            view = ",
        "            view = ",
        f"{TESTS}/test_attacks_slow.py::test_readers_that_stop_keep_nobody_out",
    ),
    fault(
        "http-handshakes-keep-their-place",
        f"{WIRE}/listening.py",
        "            self.begin_waiting(guest)\n",
        "",
        f"{TESTS}/test_tls.py::test_handshakes_that_stall_keep_nobody_out",
    ),
    fault(
        "http-host-may-be-missing",
        f"{HTTP}/door.py",
        "if not self._takes_any_host and not self._is_our_host(host):",
        "if host and not self._takes_any_host and not self._is_our_host(host):",
        f"{TESTS}/test_door.py::test_an_old_client_without_a_host_gets_nowhere",
    ),
    fault(
        "http-any-origin-is-also-none",
        f"{HTTP}/door.py",
        "(ANY in self._origins and found is not None)",
        "ANY in self._origins",
        f"{TESTS}/test_door.py::test_any_origin_is_any_page_with_an_address",
    ),
    fault(
        "http-short-token",
        f"{HTTP}/door.py",
        "if self._token and len(self._token) < MIN_TOKEN_CHARS:",
        "if self._token and len(self._token) < 2:",
        f"{TESTS}/test_door.py::test_a_server_that_could_not_be_guarded_does_not_start",
    ),
    fault(
        "http-lost-parts-count-for-ever",
        f"{HTTP}/streams/outlet.py",
        "                    finally:  # only now is it read, as far as we can know, or never will be\n",
        "                    except ZeroDivisionError:\n                        pass\n                    else:\n",
        f"{TESTS}/test_outlet.py::test_what_a_client_has_left_on_the_way_is_not_unread_for_ever",
    ),
    fault(
        "http-first-connection-loses-the-second",
        f"{HTTP}/streams/outlet.py",
        "if carrier is not None and carrier is not self._carrier:",
        "if carrier is not None and self._carrier is None:",
        f"{TESTS}/test_outlet.py::test_a_connection_that_carried_it_once_cannot_lose_it",
    ),
    fault(
        "http-stream-forgotten-while-it-is-sent",
        f"{HTTP}/sessions.py",
        "if kept.is_left), too_many)",
        "if kept.is_over), too_many)",
        f"{TESTS}/test_attacks_sessions.py::test_a_slow_reader_gets_all_of_a_stream_however_many_come_after",
        f"{TESTS}/test_sessions.py::test_an_answer_that_is_about_to_be_sent_makes_way_for_no_other_stream",
    ),
    fault(
        "http-socket-of-a-successor-removed",
        f"{HTTP}/serving.py",
        "if ours is not None and os.path.samestat(os.stat(path), ours):",
        "if ours is not None:",
        f"{TESTS}/test_unix_socket.py::test_the_socket_of_a_later_server_is_not_removed",
    ),
]

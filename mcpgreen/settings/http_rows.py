"""The settings of the HTTP transport, a row each; `table` has all others, and says how a row is written."""

from __future__ import annotations

from mcpgreen.settings.settings import Setting, directory, flag, integer, names, seconds, text

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
DAY_SECS = 86_400

# fmt: off
HTTP_ROWS = (
    Setting("http_token", text, "", secret=True, doc=
        "A secret of at least 32 characters that HTTP clients send as a bearer token. Empty: none is required, "
        "but then only this machine can be served."),
    Setting("http_allow_anonymous", flag, False, doc=
        "Whether everybody who can reach the address is served without a token, also from other machines."),
    Setting("http_allowed_hosts", names, (), doc=
        "The names by which clients may address the server over HTTP, besides localhost and its addresses, e.g. "
        "mcp.example.com; *: any."),
    Setting("http_allowed_origins", names, (), doc=
        "The web pages that may use the server from a browser, besides those on this machine, e.g. "
        "https://app.example.com; *: any."),
    Setting("http_max_body_bytes", integer, 4 * MIB, low=KIB, high=GIB, doc=
        "How long the body of an HTTP request may be."),
    Setting("http_header_timeout_secs", seconds, 10.0, low=0.1, high=600, doc=
        "How many seconds the head of an HTTP request may take to arrive."),
    Setting("http_body_timeout_secs", seconds, 30.0, low=0.1, high=3600, doc=
        "How many seconds the body of an HTTP request may take to arrive."),
    Setting("http_send_timeout_secs", seconds, 30.0, low=0.1, high=3600, doc=
        "After how many seconds a client that does not read what it is sent loses its connection."),
    Setting("http_idle_secs", seconds, 75.0, low=0.1, high=DAY_SECS, doc=
        "How many seconds an HTTP connection may be open between two requests."),
    Setting("http_keepalive_secs", seconds, 15.0, low=0.1, high=3600, doc=
        "After how many seconds of silence a stream gets a comment, so that proxies keep it open."),
    Setting("http_session_idle_secs", seconds, 1800.0, low=0.1, high=30 * DAY_SECS, doc=
        "After how many seconds a session that nobody uses ends."),
    Setting("http_max_sessions", integer, 2000, low=1, high=1_000_000, doc=
        "How many sessions there may be at the same time. Further clients are told to come back later."),
    Setting("http_max_sessions_per_principal", integer, 500, low=1, high=1_000_000, doc=
        "How many sessions one caller, as its token names it, may have at the same time."),
    Setting("http_max_connections", integer, 1024, low=1, high=100_000, doc=
        "How many HTTP connections may be open. For a further one, the one that has been idle longest is closed."),
    Setting("http_legacy_sse", flag, False, doc=
        "Whether the server also offers /sse and /messages, for clients of the first revision."),
    Setting("http_trust_client_roots", flag, False, doc=
        "Whether the roots that an HTTP client names count as directories of this machine. Otherwise it is not "
        "asked for them."),
    Setting("http_accept_session_ids", flag, False, doc=
        "Whether a proxy may choose the id of a new session, by sending Mcp-Session-Id with initialize (32 "
        "hexadecimal digits). It can then send all requests of a session to the same server."),
    Setting("http_cert", directory, "", doc=
        "A file with the certificate (PEM) for HTTPS. Empty: plain HTTP, as behind a proxy."),
    Setting("http_key", directory, "", doc=
        "A file with the key of http_cert. Empty: it is in the same file."),
    Setting("http_public_url", text, "", doc=
        "How clients reach the endpoint, if not at the address that it listens at, e.g. "
        "https://mcp.example.com/mcp. Its host is allowed, and tokens have to be for this URL, unless "
        "http_oauth_audience says otherwise."),
    Setting("http_oauth_issuer", text, "", doc=
        "The authorization server whose access tokens are accepted, as it calls itself in `iss`: an https URL. "
        "Needs the extra oauth. Empty: none."),
    Setting("http_oauth_jwks_url", text, "", doc=
        "Where the keys of the issuer are: an https URL, or a file. Empty: where the metadata of the issuer says."),
    Setting("http_oauth_audience", names, (), doc=
        "Whom tokens must be for (`aud`): one of these. Empty: the URL of the endpoint."),
    Setting("http_oauth_algorithms", names, (), doc=
        "How tokens may be signed. Only algorithms with a public key are possible. Empty: RS256, RS384, RS512, "
        "ES256, ES384, PS256 and EdDSA."),
    Setting("http_oauth_required_scopes", names, (), doc=
        "The scopes that every token must have, whatever is called. Empty: none."),
    Setting("http_oauth_clock_skew_secs", seconds, 60.0, low=0, high=600, doc=
        "How many seconds the clock of the issuer may differ from ours."),
)
# fmt: on

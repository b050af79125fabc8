"""Calls as spans of OpenTelemetry, and how long they take as a metric, exported by its official SDK: an extra.

The SDK collects spans in memory and sends them from threads of its own. Loading it takes longer than a client should
wait, so that happens in a thread, too: the calls of the first second have no span. Where spans go, the SDK reads from
the usual variables (`OTEL_EXPORTER_OTLP_ENDPOINT`).

Rule: nothing here waits, apart from `close`, and the names and reasons that leave the server have no secrets.
"""

from __future__ import annotations

from typing import Any

import gevent

from mcpgreen import __version__, journal
from mcpgreen.events.conventions import PARTS, attributes, span_name
from mcpgreen.events.stream import Event
from mcpgreen.features.services import Services
from mcpgreen.running.scripts.environment import trace_variables

MAX_OPEN = 4096  # calls whose end is not known yet
CLOSE_SECS = 2.0  # for what has not been sent yet
METRIC_ATTRIBUTES = ("mcp.method.name", "gen_ai.tool.name", "error.type")
NS = 1_000_000_000


class Spans:
    """A reader of `queued` and `ended`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._open: dict[int, Any] = {}  # spans by the numbers of calls
        self._providers: tuple[Any, ...] = ()
        self._loading = gevent.spawn(self._load)

    def traceparent(self, number: int) -> str:
        """Return the context for the script of a call; empty if the call has no span."""
        if (span := self._open.get(number)) is None:
            return ""
        context = span.get_span_context()
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"

    def close(self) -> None:
        """Send what has not been sent. Waits, but not for long."""
        self._loading.kill()
        self._services.events.read(self._take, ())
        with gevent.Timeout(CLOSE_SECS, False):
            for provider in self._providers:
                gevent.get_hub().threadpool.apply(provider.shutdown)

    def _load(self) -> None:
        try:
            gevent.get_hub().threadpool.apply(self._load_sdk)
        except ImportError:
            journal.error("otel needs the [otel] extra; see docs/install.md#extras")
        else:
            self._services.events.read(self._take, {"queued", "ended"})

    def _load_sdk(self) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        info = self._services.identity.info
        resource = Resource.create({"service.name": str(info["name"]), "service.version": str(info["version"])})
        traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        metrics = MeterProvider(metric_readers=[reader], resource=resource, shutdown_on_exit=False)
        meter = metrics.get_meter("mcpgreen", __version__)
        self._duration = meter.create_histogram("mcp.server.operation.duration", "s", "How long calls take.")
        self._tracer = traces.get_tracer("mcpgreen", __version__)
        self._server_kind, self._error = SpanKind.SERVER, StatusCode.ERROR
        self._context = TraceContextTextMapPropagator().extract
        self._providers = traces, metrics

    def _take(self, event: Event) -> None:
        call, at_ns = event.call, int(event.at * NS)
        if call is None:
            return
        secrets = self._services.confidential.shown_of(call)
        told = {**event.fields, **{key: secrets.text(event.fields.get(key) or "") for key in ("name", "reason")}}
        if event.kind == "queued":
            meta = call.params.get("_meta")
            known = trace_variables(meta) if type(meta) is dict else {}
            parent = self._context({name.lower(): value for name, value in known.items()})
            name = span_name(told["method"], told["name"])
            self._open[call.number] = self._tracer.start_span(name, parent, self._server_kind, start_time=at_ns)
            if len(self._open) > MAX_OPEN:
                del self._open[next(iter(self._open))]
        elif told["outcome"] != "task" and (span := self._open.pop(call.number, None)) is not None:
            client = {"transport": call.stream.transport, "revision": call.view.revision.name}
            about = attributes(told, client, id=call.id)
            span.set_attributes(about)
            if "error.type" in about:
                span.set_status(self._error, told["reason"])
            span.end(at_ns)
            took_secs = sum(told[part] for part in PARTS) / 1000
            self._duration.record(took_secs, {key: about[key] for key in METRIC_ATTRIBUTES if key in about})
